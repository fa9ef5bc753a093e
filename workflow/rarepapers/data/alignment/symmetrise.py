"""Symmetrisation of word links (Koehn et al. 2005; Och and Ney 2003), with the names that atools uses."""

from collections.abc import Callable

Links = set[tuple[int, int]]

NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))


def grow_diag(forward: Links, backward: Links) -> Links:
    """The links of both directions, then neighbouring links of one direction while one of their tokens is unlinked."""
    union, links = forward | backward, forward & backward
    free_sources = {i for i, _ in union} - {i for i, _ in links}
    free_targets = {j for _, j in union} - {j for _, j in links}
    waiting = set(links)
    while waiting:
        i, j = min(waiting)
        waiting.remove((i, j))
        for di, dj in NEIGHBOURS:
            a, b = near = i + di, j + dj
            if near in union and near not in links and (a in free_sources or b in free_targets):
                links.add(near)
                waiting.add(near)
                free_sources.discard(a)
                free_targets.discard(b)
    return links


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """`grow_diag`, then links of either direction, forward first, whose tokens are both unlinked."""
    links = grow_diag(forward, backward)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    for i, j in [*sorted(forward), *sorted(backward)]:
        if i not in sources and j not in targets:
            links.add((i, j))
            sources.add(i)
            targets.add(j)
    return links


SYMMETRISATIONS: dict[str, Callable[[Links, Links], Links]] = {
    "grow-diag-final-and": grow_diag_final_and,
    "grow-diag": grow_diag,
    "intersect": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
}
