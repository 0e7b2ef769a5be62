"""Input tables made uniform: columns, labels, environments, weights; coding and column checks.

Imports only the base modules: parameters, formatting, exceptions, constants.
"""
