"""What a column says by itself and what that is worth, bin by bin from the description.

Nothing here is shared with the package: it is what the package is held to.
"""

from __future__ import annotations

import math

from scipy.stats import chi2, t

MAX_BINS = 12


def measure_own_worth(bins, y, environments):
    """The worth in a new environment, its p-value, and the part of the null deviance that differs.

    `bins` has the number of the bin of each row. None if nothing is known.
    """
    places = [
        place
        for place in sorted(set(environments))
        if len({label for label, e in zip(y, environments, strict=True) if e == place}) == 2
    ]
    rows = list(zip(bins, y, environments, strict=True))
    deviance = -2 * math.fsum(
        math.log(rate if label else 1 - rate)
        for place in places
        for rate in [find_rate(rows, place)]
        for _, label, e in rows
        if e == place
    )
    worth = fit_worth(rows, places)
    if worth is None:
        return None
    low_share, p_value, excess = pool(worth)
    return {"low_share": low_share, "p_value": p_value, "part": excess / deviance}


def find_rate(rows, place):
    labels = [label for _, label, e in rows if e == place]
    return sum(labels) / len(labels)


def fit_worth(rows, places):
    """The slope of each environment on what the others say, with its information."""
    if len(places) < 2:
        return None
    rates = {place: find_rate(rows, place) for place in places}
    known = [row for row in rows if row[2] in rates]
    overall = sum(label for _, label, _ in known) / len(known)
    effects = {}
    for place in places:
        for number in {row[0] for row in rows}:
            others = [row for row in known if row[0] == number and row[2] != place]
            observed = sum(label for _, label, _ in others)
            expected = math.fsum(rates[e] for _, _, e in others)
            of_positives = (observed + 2 * overall) / (expected + 2 * overall)
            rest = 2 * (1 - overall)
            of_negatives = (len(others) - observed + rest) / (len(others) - expected + rest)
            effects[place, number] = math.log(of_positives) - math.log(of_negatives)
    if max(effects.values()) - min(effects.values()) < 1e-12:
        return None

    slope, levels = 1.0, dict.fromkeys(places, 0.0)
    for step in range(9):
        sums = {}
        for place in places:
            G = H = HC = 0.0
            cells = []
            for number, label, e in known:
                if e == place:
                    x = effects[place, number]
                    odds = math.log(rates[place] / (1 - rates[place])) + levels[place] + slope * x
                    p = 1 / (1 + math.exp(-odds))
                    h = max(p * (1 - p), 1e-6)
                    cells.append((label - p, h, x))
                    G, H, HC = G + label - p, H + h, HC + h * x
            H += 1e-9
            centre = HC / H
            U = math.fsum(g * (x - centre) for g, _, x in cells)
            J = math.fsum(h * (x - centre) ** 2 for _, h, x in cells) + 1e-9
            sums[place] = U, J, G / H, centre
        if step == 8:
            break
        ratio = math.fsum(s[0] for s in sums.values()) / math.fsum(s[1] for s in sums.values())
        move = min(max(ratio, -1.0), 1.0)
        slope = min(max(slope + move, -20.0), 20.0)
        for place, (_, _, level_step, centre) in sums.items():
            levels[place] += min(max(level_step, -2.0), 2.0) - centre * move
    return [
        (min(max(slope + U / J, -20.0), 20.0), 1 / math.sqrt(J)) for U, J, _, _ in sums.values()
    ]


def pool(worth):
    """DerSimonian and Laird: the part of the mean that a new environment keeps, p-value, excess."""
    known = [(s, error) for s, error in worth if error < 50]
    dof = len(known) - 1
    if dof < 1:
        return -math.inf, 1.0, 0.0
    w = [1 / error**2 for _, error in known]
    s = [value for value, _ in known]
    W = math.fsum(w)
    mean = math.fsum(a * b for a, b in zip(w, s, strict=True)) / W
    Q = math.fsum(a * (b - mean) ** 2 for a, b in zip(w, s, strict=True))
    divisor = max(W - math.fsum(a * a for a in w) / W, W * 2.3e-16)
    tau_squared = max(Q - dof, 0.0) / divisor
    u = [1 / (error**2 + tau_squared) for _, error in known]
    mean = math.fsum(a * b for a, b in zip(u, s, strict=True)) / math.fsum(u)
    low = mean - min(t.ppf(0.95, dof), 2.0) * math.sqrt(tau_squared + 1 / math.fsum(u))
    excess = max(Q - dof - 3 * math.sqrt(2 * dof), 0.0)
    return low / max(1.0, mean), chi2.sf(Q, dof), excess
