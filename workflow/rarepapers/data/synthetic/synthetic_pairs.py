"""Seeded synthetic sentence pairs in two invented languages, with a second domain; no network, no licence.

The target language resembles simple English: article, adjectives, noun, verb, object, places. The source language has
other words and another order: the article agrees with its noun's class, adjectives follow their noun and take its
ending, the verb stands last and agrees with its subject's number, places come first. Words are Zipfian, with a tail of
rare ones. Each domain has its own nouns besides common ones; in the second domain its own nouns are the frequent ones.

The bytes are equal on every machine, as in `synthetic_characters`: PCG64's raw stream and integers.
"""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from rarepapers.core.files import atomic_path, write_text
from rarepapers.data.synthetic.synthetic_characters import drawer, zipf

NOUNS, DOMAIN_NOUNS, VERBS, ADJECTIVES, PREPOSITIONS = 140, 70, 50, 36, 6
CLASSES = 3  # noun classes of the source language
ONSETS = {
    "source": ("k", "t", "sch", "r", "n", "v", "g", "b", "z", "pf", "h", "f"),
    "target": ("p", "l", "d", "m", "s", "w", "th", "j", "c", "y", "sh", "bl"),
}
VOWELS = {"source": ("a", "e", "i", "o", "u", "ü", "ei"), "target": ("a", "e", "i", "o", "u", "ea", "oo")}
CODAS = {"source": ("", "n", "r", "ch", "l"), "target": ("", "t", "m", "ck", "ll")}
# Articles and endings: of the source by class, then plural.
ARTICLES = ("dor", "dia", "dus", "dee")
AGREEMENT = ("er", "ia", "us", "en")
PLURAL = {"source": "ene", "target": "s"}
VERB_ENDINGS = ("et", "ont")  # source language, by number
NEGATION = {"source": "nox", "target": "not"}
# One in this many clauses has adjectives, a place, a negation.
ADJECTIVE, PLACE, NEGATED = 3, 3, 8


def write_pairs(folder: Path, seed: int, pairs: Mapping[str, int]) -> None:
    """Write `<split>.source.txt` and `<split>.target.txt` to `folder` for train, valid, test and domain.second.

    pairs: number of sentences per split. No sentence of another split is in the training split.
    """
    draw = drawer(seed)
    lexicon = Lexicon(draw)
    trained: set[str] = set()
    for split, number in pairs.items():
        lines: list[tuple[str, str]] = []
        while len(lines) < number:
            pair = lexicon.sentence(draw, second=split.startswith("domain."))
            if split == "train":
                trained.add(pair[0])
            elif pair[0] in trained:
                continue
            lines.append(pair)
        for side, of in zip(("source", "target"), zip(*lines, strict=True), strict=True):
            write_text(folder / f"{split}.{side}.txt", "".join(f"{line}\n" for line in of))


def write_documents(path: Path, seed: int, of: Mapping, documents: int) -> None:
    """Write compressed JSON lines, like C4's, in the target language of the pair described by `of`.

    Documents have 1 to 4 lines of 1 to 3 sentences, half of them from the second domain.
    """
    lexicon, draw = Lexicon(drawer(of["seed"])), drawer(seed)
    lines = []
    for number in range(documents):
        second = draw(2) == 1
        paragraphs = [
            " ".join(lexicon.sentence(draw, second)[1] for _ in range(1 + draw(3))) for _ in range(1 + draw(4))
        ]
        document = {"text": "\n".join(paragraphs), "timestamp": "2000-01-01T00:00:00Z", "url": f"synthetic/{number}"}
        lines.append(json.dumps(document) + "\n")
    with atomic_path(path) as temporary:
        # mtime=0: the file would otherwise contain the time of writing.
        temporary.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


class Lexicon:
    """Words of both languages as pairs (source, target), most common first; source nouns have a class."""

    def __init__(self, draw: Callable[[int], int]):
        self._draw, self._known = draw, set()
        self.adjectives = [self._new(1) for _ in range(ADJECTIVES)]
        self.verbs = [self._new(1) for _ in range(VERBS)]
        self.prepositions = [self._new(1) for _ in range(PREPOSITIONS)]
        self.nouns, self.first_nouns, self.second_nouns = (
            [(*self._new(1 + (rank > 12)), draw(CLASSES)) for rank in range(number)]
            for number in (NOUNS, DOMAIN_NOUNS, DOMAIN_NOUNS)
        )

    def sentence(self, draw: Callable[[int], int], second: bool) -> tuple[str, str]:
        """One sentence in both languages, 3 to 12 words each and a full stop. second: from the second domain."""
        subject, number = self._phrase(draw, second)
        thing, _ = self._phrase(draw, second)
        verb = self.verbs[zipf(VERBS, draw)]
        source = [*subject[0], *thing[0], verb[0] + VERB_ENDINGS[number]]
        target = [*subject[1], verb[1] if number else verb[1] + "s", *thing[1]]
        if draw(NEGATED) == 0:
            source.insert(-1, NEGATION["source"])
            target.insert(len(subject[1]), NEGATION["target"])
        if draw(PLACE) == 0:
            place, _ = self._phrase(draw, second, adjectives=False)
            preposition = self.prepositions[zipf(PREPOSITIONS, draw)]
            source = [preposition[0], *place[0], *source]
            target = [*target, preposition[1], *place[1]]
        return tuple(" ".join([words[0].capitalize(), *words[1:]]) + "." for words in (source, target))

    def _phrase(self, draw: Callable[[int], int], second: bool, adjectives: bool = True):
        """A noun with its article and adjectives, (source words, target words), and its number (1: plural)."""
        # Every third noun belongs to the domain, and a few to the other one.
        kind = draw(30)
        own, other = (self.second_nouns, self.first_nouns) if second else (self.first_nouns, self.second_nouns)
        nouns = own if kind < (15 if second else 10) else other if kind == 29 else self.nouns
        source, target, gender = nouns[zipf(len(nouns), draw)]
        plural = draw(3) == 0
        form = CLASSES if plural else gender
        described = [self.adjectives[zipf(ADJECTIVES, draw)]] if adjectives and draw(ADJECTIVE) == 0 else []
        source = [
            ARTICLES[form],
            source + (PLURAL["source"] if plural else ""),
            *(adjective[0] + AGREEMENT[form] for adjective in described),
        ]
        target = ["some" if plural else "the", *(adjective[1] for adjective in described), target]
        target[-1] += PLURAL["target"] if plural else ""
        return (source, target), int(plural)

    def _new(self, syllables: int) -> tuple[str, str]:
        """A new word in each language."""
        return tuple(self._word(side, syllables) for side in ("source", "target"))

    def _word(self, side: str, syllables: int) -> str:
        while True:
            letters = (ONSETS[side], VOWELS[side], CODAS[side])
            word = "".join(of[self._draw(len(of))] for _ in range(syllables) for of in letters)
            if len(word) > 2 and word not in self._known:
                self._known.add(word)
                return word
