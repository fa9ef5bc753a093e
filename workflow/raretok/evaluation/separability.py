"""How well two groups of embeddings can be told apart in a plane (agg figure 3, agps figure 4)."""

import numpy as np


def separability(first: np.ndarray, second: np.ndarray) -> float:
    """Balanced accuracy of linear discriminant analysis on its own points, A x 2 against B x 2.

    Closed form: the direction is S^-1 (m_2 - m_1), S the pooled covariance within the groups, the border half way
    between the means. 0.5 is chance, 1.0 complete separation. Three numbers fit thousands of points, so that the
    points need not be held out. NaN when a group is empty or a value is not finite.
    """
    if not (len(first) and len(second) and np.isfinite(first).all() and np.isfinite(second).all()):
        return float("nan")
    means = first.mean(0), second.mean(0)
    within = np.concatenate([first - means[0], second - means[1]])
    covariance = within.T @ within / len(within)
    # A ridge below rounding, so that points on a line have a direction too.
    ridge = 1e-12 * np.trace(covariance) + np.finfo(np.float64).tiny
    direction = np.linalg.solve(covariance + ridge * np.eye(covariance.shape[0]), means[1] - means[0])
    border = (means[0] + means[1]) @ direction / 2
    return float(((first @ direction <= border).mean() + (second @ direction > border).mean()) / 2)
