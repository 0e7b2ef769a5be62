"""
Protein signalling: known causes, eight experiments
===================================================

Sachs and others (2005) measured eleven proteins in single T cells under several interventions. The
network among these proteins is largely known, which makes the table a test for methods that claim
to find causes: is *Erk* explained by its parents, *Mek* and *PKA*?

The experiments are the environments. They act on other proteins and not on Erk itself. The data are
real; the page needs the file ``sachs/sachs_conditions.csv`` in the folder ``ICSCM_DATA``.
"""

import pandas as pd

from icscm import ICSCMClassifier, InvariantFeatureSelector, InvariantTreeClassifier
from icscm.datasets import load_sachs

# %%
# The table
# ---------
# The label is whether Erk is above its median.

X, y, experiment, causes = load_sachs(target="Erk")
erk = pd.Series(y, name="Erk")
experiment = pd.Series(experiment, name="experiment")
print("known causes:", ", ".join(causes))
erk.groupby(experiment).agg(["size", "mean"]).round(2).T

# %%
# The default rule
# ----------------
# Exact invariance is a strong requirement: every useful rule is rejected, also those on the
# parents. Erk depends on them in degrees, and a single cut does not make its rate the same in all
# experiments.

rule = ICSCMClassifier().fit(X, erk, environments=experiment)
print(rule.model_)
rejected = rule.trace_.to_frame("rejected").drop_duplicates("utility")
rejected[["rule", "utility", "p_value", "reason"]].head(4)

# %%
# The rule that remains is a cut on Akt at which few cells are left to be tested. The warning says
# so: its leaf has *too little data to tell*. It should not be used.
#
# Which columns have a common effect?
# -----------------------------------
# The screen asks less: is the *effect* of a column the same in all experiments, while the base rate
# may differ, up to a tolerance?

screen = InvariantFeatureSelector(cv=3, random_state=0)
screen.fit(X, erk, environments=experiment)
columns = ["column", "verdict", "reason", "i2", "replication"]
screen.screen_[columns].round(2)

# %%
# A tree with common effects
# --------------------------
# A tree requires the same of each split.

tree = InvariantTreeClassifier().fit(X, erk, environments=experiment)
print(tree.model_)
tree.validate(X, erk, environments=experiment)

# %%
# Two lessons of a table whose causes are known:
#
# - *PKA*, a parent of Erk, is rejected by the screen: its effect differs between experiments, one
#   of which activates PKA itself. A cause may be rejected where its effect is not the same
#   everywhere.
# - *Akt*, which the tree uses alone, is a child of Erk in the consensus network. Its association
#   with Erk is strong and much the same in all experiments. *Not rejected* is not *causal*: a child
#   whose relation to the label no environment changes passes every test of invariance, and predicts
#   well in new environments.
#
# What to report
# --------------
# - No useful rule was invariant. Most columns have an effect common to these experiments, up to the
#   tolerance of the screen; a tree on Akt ranks cells of a new experiment well.
# - Not: that Akt causes Erk, or that PKA does not.
#
# :doc:`/theory` states which assumptions the conclusion *cause* would need.
