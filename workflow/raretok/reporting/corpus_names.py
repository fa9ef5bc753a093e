"""What corpora, and the texts whose unigrams a bias starts from, are called in titles."""

# Names of corpora as people write them; others are shown as they are.
NAMES = {"afromt": "AfroMT", "autshumato": "Autshumato", "iwslt14": "IWSLT14", "kirundi": "Kirundi"}
NAMES |= {"multi30k": "Multi30k", "wmt14": "WMT14", "wikitext-2": "WikiText-2", "wikitext-103": "WikiText-103"}
NAMES |= {"tiny_shakespeare": "tiny Shakespeare"}
PUBLISHED_TEXT = "C4"
# What stands in the place of C4's English text, by the first part of corpora's names (config/corpora.yaml,
# external_counts).
IN_PLACE_OF_C4 = {"multi30k": "WikiText-2", "synthetic": "made-up text"}


def corpus_title(name: str) -> str:
    """A corpus as people write it: `multi30k_de-en_bpe` is Multi30k De-En (bpe)."""
    if name in NAMES:
        return NAMES[name]
    corpus, _, rest = name.partition("_")
    if corpus == "synthetic":
        more = rest.removeprefix("translation").removeprefix("_")
        return f"made-up pair ({more})" if more else "made-up pair"
    direction, _, more = rest.partition("_") if "-" in rest else ("", "", rest)
    words = [NAMES.get(corpus, corpus), "-".join(part.capitalize() for part in direction.split("-"))]
    return " ".join(filter(None, words)) + (f" ({more})" if more else "")


def data_set(corpus: str, experiment: str, more: str = "", link: str = " ") -> str:
    """The corpus that an experiment really has, and the paper's where that is another. more: behind the former."""
    title = corpus_title(corpus) + more
    return title if corpus == experiment else f"{title}{link}in place of {corpus_title(experiment)}"


def unigram_text(corpus: str) -> str:
    """The other text from whose unigrams an output bias of models of a parallel corpus starts: C4, or its stand-in."""
    return IN_PLACE_OF_C4.get(corpus.partition("_")[0], PUBLISHED_TEXT)
