"""How a model is found: pure functions of (RowSource, settings) -> (model, trace).

A search uses counts, never rows. May import `sources` (their protocol), `stats`, `engine`, `model`
and the base modules.
"""
