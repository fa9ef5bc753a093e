"""The model of Dyer et al. 2013 written out: IBM model 2 with a diagonal prior, both directions, grow-diag-final-and.

For a target word f_j of n words and a source of m words, p(a_j = 0) = p0 and p(a_j = i) = (1 - p0) exp(-tension
|i / m - j / n|) / Z_j, and f_j comes from the source word by a table. Five iterations of expectation maximisation with
variational Bayes for the table and gradient ascent on the tension, then the likeliest link of every target word.
"""

import math
from collections import defaultdict

NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
NULL, P0, ALPHA, ITERATIONS = "<eps>", 0.08, 0.01, 5


def digamma(x):
    result = 0.0
    while x < 7:
        result -= 1 / x
        x += 1
    x -= 0.5
    return result + math.log(x) + 1 / (24 * x**2) - 7 / (960 * x**4) + 31 / (8064 * x**6) - 127 / (30720 * x**8)


def prior(j, m, n, tension):
    """p(a_j = i) for i = 1 to m, of target position j = 1 to n."""
    weights = [math.exp(-tension * abs(i / m - j / n)) for i in range(1, m + 1)]
    return [(1 - P0) * weight / sum(weights) for weight in weights]


def one_direction(sources, targets):
    """For each pair, the links (i, j) of target words to their likeliest source word."""
    table, tension, links = None, 4.0, []
    tokens = sum(map(len, targets))
    for iteration in range(ITERATIONS):
        counts, feature = defaultdict(lambda: defaultdict(float)), 0.0
        is_last = iteration == ITERATIONS - 1
        for source, target in zip(sources, targets, strict=True):
            m, n, found = len(source), len(target), []
            for j, word in enumerate(target, 1):
                p = [P0, *prior(j, m, n, tension)]
                joint = [
                    a * (table[s].get(word, 1e-9) if table else 1e-9) for a, s in zip(p, [NULL, *source], strict=True)
                ]
                if is_last:
                    best = max(range(m + 1), key=joint.__getitem__)
                    found += [(best - 1, j - 1)] if best else []
                    continue
                for i, s in enumerate([NULL, *source]):
                    share = joint[i] / sum(joint)
                    counts[s][word] += share
                    feature -= abs((j - 1) / n - i / m) * share if i else 0
            links.append(found)
        if is_last:
            return links[-len(sources) :]
        if iteration:
            for _ in range(8):
                expected = sum(
                    -abs(i / len(source) - j / len(target)) * a / (1 - P0)
                    for source, target in zip(sources, targets, strict=True)
                    for j in range(1, len(target) + 1)
                    for i, a in enumerate(prior(j, len(source), len(target), tension), 1)
                )
                tension = min(14, max(0.1, tension + 20 * (feature - expected) / tokens))
        table = {}
        for s, row in counts.items():
            total = digamma(sum(row.values()) + ALPHA * len(row))
            table[s] = {word: math.exp(digamma(value + ALPHA) - total) for word, value in row.items()}


def grow_diag_final_and(forward, backward):
    """Koehn et al. 2005: links of both directions, then neighbours of links that one direction has, while a side of
    them is free, then links of either direction whose sides are both free."""
    union, links = set(forward) | set(backward), set(forward) & set(backward)
    waiting = set(links)

    def free(i, j):
        return all(a != i for a, _ in links), all(b != j for _, b in links)

    while waiting:
        i, j = min(waiting)
        waiting.remove((i, j))
        for di, dj in NEIGHBOURS:
            near = i + di, j + dj
            if near in union - links and any(free(*near)):
                links.add(near)
                waiting.add(near)
    for direction in (forward, backward):
        for link in sorted(direction):
            if all(free(*link)):
                links.add(link)
    return links


def align(sources, targets):
    """Links of every pair, of lists of words."""
    forward = one_direction(sources, targets)
    backward = [[(i, j) for j, i in links] for links in one_direction(targets, sources)]
    return [grow_diag_final_and(*links) for links in zip(forward, backward, strict=True)]
