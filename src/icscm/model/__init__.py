"""What is learned, immutable: rules, rule sets, trees, forests; a learner's protocol; model files.

Predicting needs no engine. May import `tables` and the ground.
"""
