"""Immutable models: rules, trees (a rule set is a chain), forests, scores; model files.

Predicting needs no engine. May import `tables` and lower layers.
"""
