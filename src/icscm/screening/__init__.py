"""The screen: which columns say something else about the outcome in another environment?

It fits its own model to bins of the columns, measures what each column is worth in each
environment and in a new one, and rejects shortcuts in rounds (`rounds`). Outcomes may be two
classes, several, or numbers (`outcomes`). It knows no estimator and no report; the estimator is
`icscm.InvariantFeatureSelector`.
"""
