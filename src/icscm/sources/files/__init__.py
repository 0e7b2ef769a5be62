"""Files larger than memory: read in passes, coded into a temporary file, counted there."""
