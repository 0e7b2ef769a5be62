"""
Heart disease at four hospitals
===============================

920 patients at four hospitals had a coronary angiogram. Which of them have a narrowed artery,
judging by age, chest pain, an exercise test and blood tests? The model is to be used at a fifth
hospital.

This page screens the columns of a logistic regression, learns a points score and a tree, tests both
at hospitals left out, and moves the score to one of them with a few of its patients. The data are
real (UCI Machine Learning Repository, 45). They are small, and the hospitals differ in case mix,
measurements and missing values, as is common in multicentre data.

The page needs four files, which ``icscm.datasets.fetch("heart_disease")`` downloads once, to the
folder ``ICSCM_DATA`` if that environment variable is set, or else to the user's cache.
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
    leave_one_environment_out,
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
# The rate of disease ranges from 36 to 93 %, so that a model must be recalibrated at a new
# hospital.

check_environments(X, disease, environments=hospital)

# %%
# Screen the columns of a logistic regression
# -------------------------------------------
# Any scikit-learn classifier can be used; here it is a pipeline that imputes, encodes and scales.
# The screen rejects columns whose effect differs between the hospitals by more than chance, and
# which may be worth less than half as much at the next one. ``worth_low`` is what a column is worth
# at 19 of 20 new hospitals: 1 is what the model has learned, 0 nothing.

numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
categories = OneHotEncoder(handle_unknown="ignore")
prepare = make_column_transformer(
    (numbers, make_column_selector(dtype_include="number")),
    (categories, make_column_selector(dtype_exclude="number")),
)
logistic = make_pipeline(prepare, LogisticRegression(max_iter=1000))
screen = InvariantFeatureSelector(logistic, random_state=0)
screen.fit(X, disease, environments=hospital)
print("rejected:", ", ".join(screen.rejected_) or "none")
screen.screen_[["column", "verdict", "reason", "worth", "worth_low"]].round(2)

# %%
# A points score
# --------------
# The score screens its columns in the same way. With 920 patients it cannot tell whether the
# effects of some columns, chest pain (``cp``) among them, differ between the hospitals: these are
# kept. Points are whole numbers; effects are common to all hospitals, and each hospital has its own
# intercept. The risk at a new hospital uses their mean.

score = InvariantScoreClassifier(max_terms=8, random_state=0)
score.fit(X, disease, environments=hospital)
print(score.screen_.groupby(["verdict", "reason"]).size())
print(score.model_)

# %%
# Hospitals left out
# ------------------
# Performance on the training data is no guide to the next hospital. ``leave_one_environment_out``
# leaves out each hospital in turn, learns from the other three, and predicts for the one left out
# (internal-external cross-validation).

leave_one_environment_out(score, X, disease, environments=hospital)

# %%
# The AUC is 0.7 or more at each hospital left out. The risks cannot be used at a new hospital
# without recalibration: the intercept differs so much between these four that the interval for a
# fifth excludes little. This holds for any model of these data. The tree ranks less well, but is
# easier to read:

tree = InvariantTreeClassifier().fit(X, disease, environments=hospital)
print(tree.model_)
leave_one_environment_out(tree, X, disease, environments=hospital)

# %%
# The next hospital
# -----------------
# Suppose that Budapest (``hungarian``) is the new hospital: the score is learned from the other
# three and evaluated there.

is_new = hospital == "hungarian"
score.fit(X[~is_new], disease[~is_new], environments=hospital[~is_new])
evaluate(score, X[is_new], disease[is_new], environments=hospital[is_new])

# %%
# It ranks patients as well as at the training hospitals, and overestimates their risk: fewer of the
# patients examined there have the disease. The outcomes of 60 of them are used to update the
# intercept, and the other patients to evaluate the update.

X_new, disease_new, hospital_new = X[is_new], disease[is_new], hospital[is_new]
moved = score.recalibrate(X_new[:60], disease_new[:60])

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for name, model in {"as learned": score, "recalibrated": moved}.items():
    found = evaluate(model, X_new[60:], disease_new[60:], environments=hospital_new[60:])
    scores = found.overall.scores
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
# - Which columns were rejected, and that four hospitals are weak evidence: a shortcut with the same
#   association at all of them stays undetected.
# - Not: that the columns of the score cause the disease. They are consequences of it (chest pain,
#   an exercise test), which is fine for diagnosis.
#
# :doc:`/guide/decisions` continues with thresholds and decision curves.
