"""Immutable models: rules, trees (a rule set is a chain), forests; learners' interface; files.

Predicting needs no engine. May import `tables` and what is below it.
"""
