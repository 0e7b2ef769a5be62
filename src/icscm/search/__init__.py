"""How a model is found: pure functions of (CountSource, settings) -> (model, trace).

A search sees counts, never rows. May import `sources` (their protocol), `stats`, `engine`, `model`
and the ground.
"""
