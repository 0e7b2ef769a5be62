"""A hostile trial that keeps finding: `make fuzz`, and a short version among the tests.

An area makes cases from random numbers, runs `icscm` on each in a process of its own, and says what
was violated. A case is a small JSON document; kept with the smallest input that still fails, it can
be run again: `python tests/fuzz --replay FOLDER`.
"""
