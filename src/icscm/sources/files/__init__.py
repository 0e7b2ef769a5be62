"""Files larger than memory: read in passes, coded into a temporary file, counted there.

May import what `sources` may, and no other source.
"""
