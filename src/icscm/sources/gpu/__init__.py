"""Samples on a graphics card, where they are counted and screened.

Sources that store samples use it for `device="cuda"`; it imports none of them.
"""
