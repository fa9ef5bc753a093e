"""Correction for multiple tests."""

LEVEL = 0.05


def holm(ps: list[float]) -> list[float]:
    """Holm's adjusted p values of one family of tests, which control the family-wise error rate.

    In the order of `ps`; never below them and at most 1.
    Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure.
    """
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted
