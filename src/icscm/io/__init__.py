"""Files in: locating, reading, one typing of text cells for every route, streams, samples.

May import `engine`, `model`, `tables` and the ground; knows nothing of statistics or searches.
"""
