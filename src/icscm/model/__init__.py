"""What is learned, immutable: rules, rule sets, the protocol of a fitted learner, model files.

Predicting needs no engine. May import `tables` and the ground.
"""
