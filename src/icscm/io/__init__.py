"""Reading files: locating them, typing of text cells, streams, roles of columns.

May import `engine`, `model`, `tables` and the base modules.
"""
