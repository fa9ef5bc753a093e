"""How well two groups of embeddings can be told apart in a plane (agg figure 3, agps figure 4)."""

import numpy as np


def separability(first: np.ndarray, second: np.ndarray) -> float:
    """Balanced accuracy of a linear classifier on its own points, A x 2 against B x 2; 0.5 to 1.0.

    Closed form and deterministic. The direction is that of linear discriminant analysis, S^-1 (m_2 - m_1), S the
    pooled covariance within the groups. The border along it is the one of the best balanced accuracy, found by one
    sort: 1/2 + max_t (F_1(t) - F_2(t)) / 2, F the groups' distributions along the direction. Discriminant analysis
    itself would put it half way between the means, which is right for groups of one spread; a narrow clump beside a
    wide group, the picture of degenerate rare tokens, then loses the part of the wide group beyond the middle.
    0.5 is chance (and equal means), 1.0 complete separation. Three numbers fit thousands of points, so that the points
    need not be held out; of few points chance is above 0.5, by about 0.3 sqrt(1/A + 1/B).
    NaN when a group is empty or a value is not finite.
    """
    if not (len(first) and len(second) and np.isfinite(first).all() and np.isfinite(second).all()):
        return float("nan")
    means = first.mean(0), second.mean(0)
    within = np.concatenate([first - means[0], second - means[1]])
    covariance = within.T @ within / len(within)
    # A ridge below rounding, so that points on a line have a direction too.
    ridge = 1e-12 * np.trace(covariance) + np.finfo(np.float64).tiny
    direction = np.linalg.solve(covariance + ridge * np.eye(covariance.shape[0]), means[1] - means[0])
    places = np.concatenate([first, second]) @ direction
    order = np.argsort(places, kind="stable")
    places, below = places[order], np.cumsum(order < len(first))
    # How many more of the first group, as a share, than of the second lie below each border.
    gaps = below / len(first) - (np.arange(1, len(places) + 1) - below) / len(second)
    # A border lies between two different places: of equal ones the last counts.
    ends = np.append(places[1:] > places[:-1], True)
    return 0.5 + max(0.0, float(gaps[ends].max())) / 2
