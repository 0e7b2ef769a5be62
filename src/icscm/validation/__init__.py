"""Studies of data and learners: check-up, grid search, comparison, leave-one-environment-out,
stability selection and evaluation on new rows. `folds` is their common core.

May import `estimators` and lower layers.
"""
