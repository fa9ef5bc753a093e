"""Seeded synthetic text for character models, which needs no network and has no licence.

It reads like a play: speakers in capitals, sentences that start with a capital, commas and full stops. Words are
Zipfian and come from a Zipfian character bigram process, so characters are Zipfian too, and context is informative: a
small model soon beats the unigram distribution. Every letter occurs in both cases, and some symbols are as rare as tiny
Shakespeare's `$` and `3`.

The bytes are equal on every machine: only PCG64's raw stream and integer arithmetic are used. numpy keeps that stream
stable across versions and platforms, but not its distributions.
"""

import string
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate

import numpy as np

from rarepapers.core.errors import UserError

# The 65 character types of tiny Shakespeare.
SYMBOLS = "\n !$&',-.3:;?" + string.ascii_uppercase + string.ascii_lowercase
ENDS = ".?!"
# Marks that may follow a word inside a sentence, most common first; the last ones are rare.
MARKS = [",", ";", ":", "'s", "-", " &", " 3", " $"]
WORDS = 300
WORD_LENGTHS = (2, 3, 4, 5, 3, 4, 2, 6)  # drawn uniformly: short words are more common
SENTENCE_LENGTHS = (5, 6, 7, 8, 9, 10, 12)
# Weights are integers: this number divided by a power of the rank.
SCALE = 10**9


def characters(seed: int, length: int) -> str:
    """`length` characters of text, determined by `seed`; all 65 SYMBOLS occur in the first half.

    Raises UserError if `length` is too short for that.
    """
    draw = drawer(seed)
    words = _lexicon(draw)
    speakers = _shuffled(words[: len(string.ascii_lowercase)], draw)
    marks = _shuffled(MARKS, draw)
    text = ""
    speech = 0
    while len(text) < length:
        # Every speaker, mark and end occurs once in turn, then at random, so that no symbol is missing by chance.
        speaker = speakers[speech] if speech < len(speakers) else speakers[zipf(len(speakers), draw)]
        text += f"{speaker.upper()}:\n"
        for sentence in range(2 + draw(3)):
            mark = marks[speech] if speech < len(marks) and sentence == 0 else MARKS[zipf(len(MARKS), draw, power=3)]
            end = ENDS[speech] if speech < len(ENDS) else ENDS[zipf(len(ENDS), draw)]
            text += _sentence(words, speaker if sentence == 0 else None, mark, end, draw)
        text += "\n"
        speech += 1
    text = text[:length]
    missing = set(SYMBOLS) - set(text[: length // 2])
    if missing:
        raise UserError(
            f"synthetic text of {length} characters is too short to hold all {len(SYMBOLS)} symbols in its "
            "first half; raise synthetic.length in config/corpora.yaml, 20000 is enough"
        )
    return text


def _sentence(words: list[str], named: str | None, mark: str, end: str, draw: Callable[[int], int]) -> str:
    """One line: words by rank, `named` among them if given, `mark` inside and `end` at the end."""
    chosen = [words[zipf(len(words), draw)] for _ in range(SENTENCE_LENGTHS[draw(len(SENTENCE_LENGTHS))])]
    if named:
        chosen[1] = named
    chosen[0] = chosen[0].capitalize()
    chosen[2 + draw(len(chosen) - 3)] += mark
    return " ".join(chosen) + end + "\n"


def _lexicon(draw: Callable[[int], int]) -> list[str]:
    """WORDS distinct words, most common first; the first 26 begin with the 26 letters."""
    letters, vowels = string.ascii_lowercase, "aeiou"
    consonants = [letter for letter in letters if letter not in vowels]
    # Every letter has its own few followers, most likely first; vowels and consonants mostly alternate.
    followers = {
        letter: _shuffled(consonants, draw)[:8]
        if letter in vowels
        else _shuffled(vowels, draw) + _shuffled(consonants, draw)[:3]
        for letter in letters
    }
    initials = _shuffled(letters, draw)
    words: list[str] = []
    while len(words) < WORDS:
        word = initials[len(words)] if len(words) < len(initials) else initials[zipf(len(initials), draw)]
        for _ in range(WORD_LENGTHS[draw(len(WORD_LENGTHS))] - 1):
            word += followers[word[-1]][zipf(8, draw)]
        if word not in words:
            words.append(word)
    return words


def drawer(seed: int) -> Callable[[int], int]:
    """A function that draws an integer from 0 to bound - 1, uniformly up to 1 part in 2^48."""
    bits = np.random.PCG64(seed)

    def draw(bound: int) -> int:
        return int(bits.random_raw()) % bound

    return draw


def zipf(size: int, draw: Callable[[int], int], power: int = 1) -> int:
    """A rank from 0 to size - 1, with probability proportional to 1 / (rank + 1)^power."""
    bounds = _bounds(size, power)
    return bisect_right(bounds, draw(bounds[-1]))


@cache
def _bounds(size: int, power: int) -> tuple[int, ...]:
    """Cumulative weights of `size` ranks."""
    return tuple(accumulate(SCALE // (rank + 1) ** power for rank in range(size)))


def _shuffled(items: Sequence[str], draw: Callable[[int], int]) -> list[str]:
    """The items in random order (Fisher-Yates)."""
    items = list(items)
    for last in range(len(items) - 1, 0, -1):
        other = draw(last + 1)
        items[last], items[other] = items[other], items[last]
    return items
