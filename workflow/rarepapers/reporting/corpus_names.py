"""Display names of corpora, and of the texts that provide a bias's unigrams."""

# Display names of corpora; others are shown unchanged.
NAMES = {"afromt": "AfroMT", "autshumato": "Autshumato", "iwslt14": "IWSLT14", "kirundi": "Kirundi"}
NAMES |= {"multi30k": "Multi30k", "wmt14": "WMT14", "wikitext-2": "WikiText-2", "wikitext-103": "WikiText-103"}
NAMES |= {"tiny_shakespeare": "tiny Shakespeare", "flores200": "FLORES-200", "ntrex": "NTREX", "tatoeba": "Tatoeba"}
PUBLISHED_TEXT = "C4"
# Replacements for C4's English text, by the first part of a corpus's name (config/corpora.yaml, external_counts).
IN_PLACE_OF_C4 = {"multi30k": "WikiText-2", "synthetic": "synthetic text"}


def corpus_title(name: str) -> str:
    """The display name of a corpus: `multi30k_de-en_bpe` becomes Multi30k De-En (bpe)."""
    if name in NAMES:
        return NAMES[name]
    corpus, _, rest = name.partition("_")
    if corpus == "synthetic":
        more = rest.removeprefix("translation").removeprefix("_")
        return f"synthetic pair ({more})" if more else "synthetic pair"
    direction, _, more = rest.partition("_") if "-" in rest else ("", "", rest)
    words = [NAMES.get(corpus, corpus), "-".join(part.capitalize() for part in direction.split("-"))]
    return " ".join(filter(None, words)) + (f" ({more})" if more else "")


def data_set(corpus: str, experiment: str, link: str = " ") -> str:
    """An experiment's actual corpus, followed by the paper's if it differs."""
    title = corpus_title(corpus)
    return title if corpus == experiment else f"{title}{link}in place of {corpus_title(experiment)}"


def unigram_text(corpus: str) -> str:
    """The text whose unigrams initialise the output bias for a parallel corpus: C4 or its replacement."""
    return IN_PLACE_OF_C4.get(corpus.partition("_")[0], PUBLISHED_TEXT)
