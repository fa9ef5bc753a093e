"""Linear separability of two groups of embeddings in a plane (agg figure 3, agps figure 4)."""

import numpy as np


def separability(first: np.ndarray, second: np.ndarray) -> float:
    """Balanced accuracy of a linear classifier on its training points, A x 2 against B x 2; 0.5 to 1.0.

    Deterministic and in closed form. The direction is that of linear discriminant analysis, S^-1 (m_2 - m_1), with the
    pooled within-group covariance S. The border along it maximises the balanced accuracy, in one sort:
    1/2 + max_t (F_1(t) - F_2(t)) / 2, with F the groups' distributions along the direction. The midpoint of the means,
    as in discriminant analysis, is right only for groups of equal spread: for a narrow cluster beside a wide group, as
    with degenerate rare tokens, it misclassifies a part of the wide group.

    0.5 is chance (and equal means), 1.0 complete separation. No points are held out, because three parameters fit
    thousands; for few points chance exceeds 0.5 by about 0.3 sqrt(1/A + 1/B). NaN if a group is empty or not finite.
    """
    if not (len(first) and len(second) and np.isfinite(first).all() and np.isfinite(second).all()):
        return float("nan")
    means = first.mean(0), second.mean(0)
    within = np.concatenate([first - means[0], second - means[1]])
    covariance = within.T @ within / len(within)
    # A ridge below rounding errors, so that collinear points have a direction too.
    ridge = 1e-12 * np.trace(covariance) + np.finfo(np.float64).tiny
    direction = np.linalg.solve(covariance + ridge * np.eye(covariance.shape[0]), means[1] - means[0])
    places = np.concatenate([first, second]) @ direction
    order = np.argsort(places, kind="stable")
    places, below = places[order], np.cumsum(order < len(first))
    # Share of the first group below each border, minus that of the second.
    gaps = below / len(first) - (np.arange(1, len(places) + 1) - below) / len(second)
    # A border lies between two distinct places; of equal places only the last counts.
    ends = np.append(places[1:] > places[:-1], True)
    return 0.5 + max(0.0, float(gaps[ends].max())) / 2
