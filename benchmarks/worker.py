"""Fit one contender on one data set, several times, and print time and memory as JSON.

Runs in a separate process, so that its memory can be measured. It imports only NumPy and its
contender, since some have separate virtual environments.

    python worker.py CONTENDER DATA.npz REPEATS [NAME=VALUE ...]
"""

import json
import resource
import sys
import time

import numpy as np


def make_icscm(**options):
    from icscm import ICSCMClassifier

    options = {"stop": "coverage", **options}
    return lambda X, y, e: ICSCMClassifier(**options).fit(X, y, environments=e)


def make_scm(**options):
    from icscm import SCMClassifier

    return lambda X, y, _: SCMClassifier(**options).fit(X, y)


def make_pyscm(**options):
    from pyscm import SetCoveringMachineClassifier

    return lambda X, y, _: SetCoveringMachineClassifier(**options).fit(X, y)


def make_tree(**options):
    from sklearn.tree import DecisionTreeClassifier

    return lambda X, y, _: DecisionTreeClassifier(max_depth=10, **options).fit(X, y)


def make_invariant_tree(**options):
    from icscm import InvariantTreeClassifier

    return lambda X, y, e: InvariantTreeClassifier(max_leaves=16, **options).fit(
        X, y, environments=e
    )


def make_invariant_forest(**options):
    from icscm import InvariantForestClassifier

    options = {"max_leaves": 32, "max_features": 0.6, "n_jobs": 2, "random_state": 0, **options}
    return lambda X, y, e: InvariantForestClassifier(n_estimators=100, **options).fit(
        X, y, environments=e
    )


def make_small_tree(**options):
    from sklearn.tree import DecisionTreeClassifier

    return lambda X, y, _: DecisionTreeClassifier(max_leaf_nodes=16, **options).fit(X, y)


def make_forest(**options):
    from sklearn.ensemble import RandomForestClassifier

    options = {"max_leaf_nodes": 32, "max_features": 0.6, "n_jobs": 2, **options}
    return lambda X, y, _: RandomForestClassifier(100, **options).fit(X, y)


def make_boosting(**options):
    from sklearn.ensemble import HistGradientBoostingClassifier

    return lambda X, y, _: HistGradientBoostingClassifier(max_iter=1, **options).fit(X, y)


def make_lightgbm():
    import lightgbm

    options = {"objective": "binary", "verbose": -1}
    return lambda X, y, _: lightgbm.train(options, lightgbm.Dataset(X, y), num_boost_round=1)


def make_xgboost():
    import xgboost

    options = {"objective": "binary:logistic", "tree_method": "hist"}
    return lambda X, y, _: xgboost.train(options, xgboost.QuantileDMatrix(X, y), num_boost_round=1)


def make_copy():
    target = None

    def copy(X, *_):
        nonlocal target
        if target is None:
            target = np.zeros_like(X)
            target[:] = 1  # written, so that its pages are in memory
        np.copyto(target, X)

    return copy


CONTENDERS = {
    "icscm ICSCM": make_icscm,
    "icscm SCM": make_scm,
    "pyscm": make_pyscm,
    "tree, depth 10": make_tree,
    "HistGradientBoosting, 1 tree": make_boosting,
    "LightGBM, 1 tree": make_lightgbm,
    "XGBoost, 1 tree": make_xgboost,
    "np.copyto": make_copy,
    "invariant tree, 16 leaves": make_invariant_tree,
    "sklearn tree, 16 leaves": make_small_tree,
    "invariant forest, 100 x 32 leaves": make_invariant_forest,
    "sklearn forest, 100 x 32 leaves": make_forest,
}


def read_resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def main(contender, path, n_repeats, *options):
    parameters = {}
    for option in options:
        name, value = option.split("=")
        parameters[name] = json.loads(value)
    make_fit = CONTENDERS[contender]
    fit = make_fit(**parameters)
    with np.load(path) as data:
        X, y, e = data["X"], data["y"], data["e"]

    # a slice of the same kind triggers compilation and late imports
    start = time.perf_counter()
    fit(X[:200], y[:200], e[:200])
    first_seconds = time.perf_counter() - start
    if contender == "np.copyto":
        fit = make_copy()  # with a target of the size of X
        fit(X, y, e)

    before = read_resident_bytes()
    seconds = []
    for _ in range(int(n_repeats)):
        start = time.perf_counter()
        fitted = fit(X, y, e)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    n_rules = len(fitted.model_.rules) if hasattr(fitted, "model_") else None
    report = {
        "seconds": seconds,
        "first": first_seconds,
        "extra_bytes": max(0, peak - before),
        "input_bytes": X.nbytes,
        "n_rules": n_rules,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
