"""Files larger than memory: read in passes, coded into a temporary file, counted there.

May import the same packages as `sources`, but no other source.
"""
