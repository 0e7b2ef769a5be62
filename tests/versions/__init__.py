"""Two versions of the package compared on some 400 small cases; see `tests/compare_versions.py`.

tables     simulated tables: NumPy and pandas only, so that both versions get the same ones
cases      what is fitted, and with which options; the names are those of version 0.3.0
names      where a later version has another name for an estimator, option or command
running    a case in the installed version: a fit, a study or a command
reading    what came out of it as plain facts, with names of their own
worker     the process that does this for many cases of one version
building   the folder from which a process imports the base version
comparing  where two results differ
"""
