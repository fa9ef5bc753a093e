"""Expected clusters of the characters of two languages, and the mean cosine in each (stop_jostling, figure 5).

Cluster names are those of the caption: NA (13 non-alphabetical characters), UC (26 uppercase letters), LC (26 lowercase
letters), ID (identity), T (translation: the same character in the other language), C (capitalisation: the same letter
in the other case), T+C (both). As in the authors' notebook, NA, UC and LC hold pairs within a language and across both.
A pair has one name: ID and T lie inside a cluster and take precedence.
"""

import numpy as np

from rarepapers.metrics.neighbours import cosines

MASKS = ("NA", "UC", "LC", "T", "C", "T+C")


def mask(symbols: list[str]) -> np.ndarray:
    """Name of the relation of every pair of tokens, 2n x 2n strings in id order, empty if none.

    symbols: the n characters of one language; token i + n is character i of the other.
    """
    n = len(symbols)
    kinds = np.array([kind(s) for s in symbols])
    folded = np.array([s.lower() for s in symbols])
    same_kind = kinds[:, None] == kinds[None, :]
    other_case = (folded[:, None] == folded[None, :]) & ~np.eye(n, dtype=bool)
    clusters = np.where(same_kind, kinds[None, :], "").astype("<U3")
    within, across = clusters.copy(), clusters
    within[other_case] = "C"
    np.fill_diagonal(within, "ID")
    across[other_case] = "T+C"
    np.fill_diagonal(across, "T")
    return np.block([[within, across], [across, within]])


def kind(symbol: str) -> str:
    """Class of a character, UC, LC or NA; a letter without case is LC."""
    if not symbol.isalpha():
        return "NA"
    return "UC" if symbol.isupper() else "LC"


def figure_order(symbols: list[str]) -> np.ndarray:
    """Token ids (2n) in the figure's order: by language, then NA, UC, LC, each alphabetically."""
    rank = {"NA": 0, "UC": 1, "LC": 2}
    order = sorted(range(len(symbols)), key=lambda i: (rank[kind(symbols[i])], symbols[i]))
    return np.array(order + [i + len(symbols) for i in order])


def mask_cosines(embeddings: np.ndarray, symbols: list[str]) -> dict[str, tuple[float, int]]:
    """Mean cosine and number of ordered pairs of every cluster, of the pairs `off` all clusters, and of the blocks.

    embeddings: 2n x d. A token's cosine with itself (ID, always 1) is left out everywhere. A cluster without pairs has
    NaN and 0.
    """
    similarity = cosines(embeddings)
    names = mask(symbols)
    first = np.arange(len(names)) < len(symbols)
    pairs = {name: names == name for name in MASKS}
    pairs["off"] = names == ""
    not_self = names != "ID"
    pairs["HR-HR"] = first[:, None] & first[None, :] & not_self
    pairs["LR-LR"] = ~first[:, None] & ~first[None, :] & not_self
    pairs["HR-LR"] = first[:, None] & ~first[None, :]
    return {
        name: (float(similarity[where].mean()) if where.any() else float("nan"), int(where.sum()))
        for name, where in pairs.items()
    }
