"""
Heart disease at four hospitals
===============================

920 patients at four hospitals had a coronary angiogram. Which of them have a narrowed artery,
judging by age, chest pain, an exercise test and blood tests? The model is to be used at a fifth
hospital.

This page screens the columns of a logistic regression, learns a points score and a tree, tests both
at hospitals left out, and moves the score to one of them with a few of its patients. The data are
real (UCI Machine Learning Repository, 45). They are small, and the hospitals differ in everything:
a hard case, as multicentre data are.

The page needs four files; ``icscm.datasets.fetch("heart_disease")`` downloads them, and
:func:`icscm.datasets.load_heart_by_hospital` says where it looks for them.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from icscm import (
    InvariantFeatureSelector,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    check_environments,
    evaluate,
)
from icscm.datasets import load_heart_by_hospital

# %%
# The table
# ---------
# A row is a patient. Hospitals did not measure the same things: outside Cleveland the columns
# ``ca`` (vessels seen by fluoroscopy) and ``thal`` (a scan) are nearly always missing.

X, y, hospital, _ = load_heart_by_hospital()
disease = pd.Series(y, name="disease")
hospital = pd.Series(hospital, name="hospital")
X.isna().groupby(hospital).mean().T.round(2)

# %%
# Check the environments
# ----------------------
# The rate of disease runs from 36 to 93 %: a model has to bring its own intercept to a new
# hospital, or to be recalibrated there.

check_environments(X, disease, hospital)

# %%
# Screen the columns of a logistic regression
# -------------------------------------------
# Any scikit-learn classifier will do; here it is a pipeline that imputes, encodes and scales. The
# screen rejects columns whose effect differs between the hospitals by more than chance and a
# tolerance.

numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
categories = OneHotEncoder(handle_unknown="ignore")
prepare = make_column_transformer(
    (numbers, make_column_selector(dtype_include="number")),
    (categories, make_column_selector(dtype_exclude="number")),
)
logistic = make_pipeline(prepare, LogisticRegression(max_iter=1000))
screen = InvariantFeatureSelector(logistic, cv=5, random_state=0)
screen.fit(X, disease, environments=hospital)
print("rejected:", ", ".join(screen.rejected_) or "none")
screen.screen_.head(8).round(3)

# %%
# A points score
# --------------
# The same screen precedes the score. Points are whole numbers; effects are common to all hospitals,
# and each hospital has its own intercept. The risk at a new hospital uses their mean.

score = InvariantScoreClassifier(max_terms=8, random_state=0)
score.fit(X, disease, environments=hospital)
print(score.model_)

# %%
# Hospitals left out
# ------------------
# Figures of the training data say little about the next hospital. ``validate`` leaves out each
# hospital in turn, learns from the other three, and predicts for the one left out
# (internal-external cross-validation).

score.validate(X, disease, environments=hospital)

# %%
# Patients are ranked well at each hospital. The risks themselves are not to be trusted at a new
# one: the intercept differs by so much between these four that the interval for a fifth is of no
# use. That is not a fault of the score; any model has it, and four hospitals cannot show more. The
# tree ranks less well, and is read in a minute:

tree = InvariantTreeClassifier().fit(X, disease, environments=hospital)
print(tree.model_)
tree.validate(X, disease, environments=hospital)

# %%
# The next hospital
# -----------------
# Suppose that Budapest is the fifth hospital. The score is learned from the other three and
# evaluated there.

is_new = hospital == "hungarian"
score.fit(X[~is_new], disease[~is_new], environments=hospital[~is_new])
evaluate(score, X[is_new], disease[is_new], hospital[is_new])

# %%
# It ranks patients as well as elsewhere, and overestimates their risk: fewer of those who were
# examined there have the disease. The outcomes of 60 of them move the intercept; the others show
# whether that helped.

there = X[is_new], disease[is_new], hospital[is_new]
few, others = [each[:60] for each in there], [each[60:] for each in there]
moved = score.recalibrate(few[0], few[1])

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for name, model in {"as learned": score, "recalibrated": moved}.items():
    scores = evaluate(model, *others).overall.scores
    interval = scores["intercept"]
    bounds = [[interval.value - interval.low], [interval.high - interval.value]]
    ax.errorbar(interval.value, name, xerr=bounds, marker="o", capsize=4)
    print(f"{name}: AUC {scores['auc'].value:.2f}, Brier score {scores['brier'].value:.3f}")
ax.axvline(0, color="grey", linestyle=":")
ax.set(xlabel="intercept of calibration (0: risks are right on average)")
ax.margins(y=0.5)
plt.show()

# %%
# What to report
# --------------
# - The score with its table of points, and its performance at *hospitals left out*, with the
#   interval for a new one: AUC first, then calibration.
# - That its risks must be recalibrated at a hospital before they are used, and how many of its
#   patients that takes.
# - Which columns were rejected, and that four hospitals show little: a shortcut on which they agree
#   stays undetected.
# - Not: that the columns of the score cause the disease. They are consequences of it (chest pain,
#   an exercise test), which is fine for diagnosis.
#
# :doc:`/guide/decisions` goes on from risks to a threshold and a decision curve.
