"""Files in: locating, reading, one typing of text cells for every route, streams, roles of columns.

May import `engine`, `model`, `tables` and the ground; knows nothing of statistics or searches.
"""
