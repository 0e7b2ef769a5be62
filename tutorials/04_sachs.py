"""
Protein signalling: known causes, eight experiments
===================================================

Sachs and others (2005) measured eleven proteins in single T cells under several interventions. The
network among these proteins is largely known, which makes the table a test for methods that claim
to find causes: is *Erk* explained by its parents, *Mek* and *PKA*?

The experiments are the environments. They act on other proteins and not on Erk itself. The data are
real. The page needs the file ``sachs/sachs_conditions.csv``, which cannot be downloaded by a
program: ``icscm datasets`` states where it is published. Save it in the folder ``ICSCM_DATA``.
"""

import pandas as pd

from icscm import (
    ICSCMClassifier,
    InvariantFeatureSelector,
    InvariantTreeClassifier,
    leave_one_environment_out,
)
from icscm.datasets import load_sachs

# %%
# The table
# ---------
# The label states whether Erk is above its median.

X, y, experiment, causes = load_sachs(target="Erk")
erk = pd.Series(y, name="Erk")
experiment = pd.Series(experiment, name="experiment")
print("known causes:", ", ".join(causes))
erk.groupby(experiment).agg(["size", "mean"]).round(2).T

# %%
# The default rule
# ----------------
# Exact invariance is a strong requirement: every rule on a parent of Erk is rejected, and the only
# rules found are on Akt, a child. Erk depends on its parents gradually, and a single cut does not
# make its rate the same in all experiments.

rule = ICSCMClassifier().fit(X, erk, environments=experiment)
print(rule.model_)
rule.describe_leaves()[["rule", "n", "rate", "verdict"]].round(3)

# %%
# The rules cover the fifth of the cells with the least Akt. Both of their leaves have *too little
# data to tell*, which the warning states, and in the last leaf the rate depends on the experiment.
# Do not use them. The rejected candidates of largest utility:

rejected = rule.trace_.to_frame("rejected").drop_duplicates("utility")
rejected[["rule", "utility", "p_value", "reason"]].head(4)

# %%
# Which columns have a common effect?
# -----------------------------------
# The screen has a weaker requirement: in a new experiment the *effect* of a column must be worth at
# least half of what the model has learned from it, while the base rate may differ. ``worth_low`` is
# what it is worth in 19 of 20 new experiments, and ``stake`` is how much of what the model explains
# depends on it.

screen = InvariantFeatureSelector(random_state=0)
screen.fit(X, erk, environments=experiment)
columns = ["column", "verdict", "worth", "worth_low", "stake"]
screen.screen_[columns].round(2)

# %%
# Only Akt and PKA matter, and both have effects that hold. In one experiment (4) PKA is low in all
# cells, so that its effect there is not known:

effects = screen.effects_
effects[effects["column"] == "PKA"].round(2)

# %%
# A tree with common effects
# --------------------------
# A tree requires common effects of its columns.

tree = InvariantTreeClassifier().fit(X, erk, environments=experiment)
print(tree.model_)
leave_one_environment_out(tree, X, erk, environments=experiment)

# %%
# Two lessons of a table whose causes are known:
#
# - *PKA*, a parent of Erk, passes the screen: its effect on the odds is much the same wherever it
#   can be measured. No rule on it is invariant, since its rates are not.
# - *Akt*, which the tree uses alone, is a child of Erk in the consensus network. Its association
#   with Erk is strong and much the same in all experiments. *Not rejected* is not *causal*: a child
#   whose relation to the label is the same in all environments passes every test of invariance, and
#   predicts well in new environments.
#
# What to report
# --------------
# - No rule on a parent was invariant. Akt and PKA have effects that keep more than half of their
#   worth in these experiments; a tree on Akt ranks cells of a new experiment well.
# - Not: that Akt causes Erk, or that PKA does not.
#
# :doc:`/theory` states which assumptions the conclusion *cause* would need.
