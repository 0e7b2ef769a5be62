"""The screen's statistics: cross-fitting, residuals, contributions, and tests of a column.

It finds columns whose effect on the outcome differs between environments, given any learner of all
columns; `icscm.estimators.selector` rejects them round by round. It knows no estimator of this
package.
"""
