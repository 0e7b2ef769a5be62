"""Data to learn from: simulated, with known parents."""

from icscm.datasets.simulated import Simulation, make_conjunction

__all__ = ["Simulation", "make_conjunction"]
