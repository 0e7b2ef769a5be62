"""What a caller hands over, made uniform: columns, labels and environments, arrays, coding.

Suspicious columns are judged here, once for all sources. Imports only the ground: parameters,
writing, text, exceptions, constants.
"""
