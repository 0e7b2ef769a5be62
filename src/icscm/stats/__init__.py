"""Statistics, each once, of plain arrays: counts, rates, effects, scores.

Logistic regression, the area under the ROC curve, random effects, heterogeneity, tests of
independence, verdicts, design effects. Knows no model, no table and no source: it may import the
base modules only. Each compiled loop has a NumPy twin.
"""
