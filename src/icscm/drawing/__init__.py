"""Drawings as SVG: those on the pages of reports, in notebooks and in files.

A drawing is made of typed records of what is shown: rows with intervals, curves, nodes of a tree.
There is a module for each kind of figure; `shapes`, `axes` and `svg` are what they share. Nothing
here knows a model, a learner or a summary: whoever draws makes the records.
"""

from icscm.drawing.svg import Figure

__all__ = ["Figure"]
