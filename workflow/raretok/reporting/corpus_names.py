"""What parallel corpora are called in titles."""

# Names of corpora as people write them; others are shown as they are.
NAMES = {"afromt": "AfroMT", "autshumato": "Autshumato", "iwslt14": "IWSLT14", "kirundi": "Kirundi"}
NAMES |= {"multi30k": "Multi30k", "wmt14": "WMT14"}


def corpus_title(name: str) -> str:
    """A parallel corpus as people write it: `multi30k_de-en_bpe` is Multi30k De-En (bpe)."""
    corpus, _, rest = name.partition("_")
    if corpus == "synthetic":
        more = rest.removeprefix("translation").removeprefix("_")
        return f"made-up pair ({more})" if more else "made-up pair"
    direction, _, more = rest.partition("_")
    words = [NAMES.get(corpus, corpus), "-".join(part.capitalize() for part in direction.split("-"))]
    return " ".join(filter(None, words)) + (f" ({more})" if more else "")
