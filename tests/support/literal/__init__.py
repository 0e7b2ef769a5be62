"""Literal twins: slow and short, written from the definitions; the package is held to them."""
