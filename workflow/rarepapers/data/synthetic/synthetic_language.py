"""Seeded synthetic articles in an invented language, and word pairs with scores; no network, no licence.

Lines are like WikiText's: ` = Title = `, paragraphs of words separated by blanks, blank lines. Function words occur
everywhere. A content word belongs to a topic and to a field in it. An article is about one field, so its words
co-occur, less often with the topic's other words, rarely with those of other topics. Words of a field share an ending,
so that subword pieces are informative about the field. Ranks are Zipfian inside each field. Every article has names of
its own, from a long list with few repetitions and with letters that occur nowhere else: they are the rare tail, and
once used, a name is repeated in its article.

The bytes are equal on every machine, as in `synthetic_characters`: PCG64's raw stream and integers.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from rarepapers.core.files import write_text
from rarepapers.data.synthetic.synthetic_characters import drawer, zipf

TOPICS, FIELDS, FUNCTION_WORDS = 6, 3, 30
FIELD_WORDS, FIELD_ENDINGS, SHORT_WORDS = 60, 2, 10
NAMES = 1500
ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "br", "st", "tr")
VOWELS = "aeiou"
CODAS = ("", "", "n", "r", "s", "l")
# Letters that only names have: a syllable of a name is a rare type of any tokenizer.
NAME_ONSETS = ("ç", "đ", "ğ", "ħ", "ķ", "ł", "ñ", "ř", "š", "ţ", "ŵ", "ž", "þ", "ß", "q", "x", "w", "j", "h", "z")
NAME_VOWELS = ("á", "è", "ï", "ô", "ũ", "y", "æ", "ø", "å", "ë")
PARAGRAPH_SENTENCES, ARTICLE_PARAGRAPHS = (3, 4, 5, 6), (2, 3, 3, 4)
SENTENCE_LENGTHS = (6, 8, 9, 10, 12, 14, 18)
# Percentages of words in a sentence: function words, names, words of the field, of the topic, of anything.
MIXTURE = (("function", 42), ("name", 5), ("field", 38), ("topic", 11), ("any", 4))
MIXTURE_KINDS = [kind for kind, share in MIXTURE for _ in range(share)]
# Scores of a pair by what its words share.
SCORES = {"field": 9, "topic": 5, "nothing": 1}
PAIRS = 80  # of each score


def write_language(folder: Path, seed: int, words: dict[str, int]) -> None:
    """Write train.txt, valid.txt, test.txt and similarity.tsv to `folder`.

    words: approximate number of words per split; the last article is completed.
    """
    draw = drawer(seed)
    lexicon = _Lexicon(draw)
    texts = {split: _text(lexicon, words[split], draw) for split in ("train", "valid", "test")}
    for split, text in texts.items():
        write_text(folder / f"{split}.txt", text)
    pairs = _pairs(lexicon, set(texts["train"].split()), draw)
    write_text(folder / "similarity.tsv", "".join(f"{one}\t{other}\t{score}\n" for one, other, score in pairs))


class _Lexicon:
    """All words of the language: function words, content words by topic and field (most common first), and names."""

    def __init__(self, draw: Callable[[int], int]):
        self._draw = draw
        self._known: set[str] = set()
        self.function = [self._new(1) for _ in range(FUNCTION_WORDS)]
        self.topics = [[self._field() for _ in range(FIELDS)] for _ in range(TOPICS)]
        self.names = [self._new(1 + draw(2), onsets=NAME_ONSETS, vowels=NAME_VOWELS).capitalize() for _ in range(NAMES)]

    def _field(self) -> list[str]:
        endings = [self._new(1) for _ in range(FIELD_ENDINGS)]
        return [
            self._new(1 + (rank > SHORT_WORDS), ending=endings[self._draw(FIELD_ENDINGS)])
            for rank in range(FIELD_WORDS)
        ]

    def _new(
        self, syllables: int, ending: str = "", onsets: Sequence[str] = ONSETS, vowels: Sequence[str] = VOWELS
    ) -> str:
        """A new word."""
        while True:
            drawn = (of[self._draw(len(of))] for _ in range(syllables) for of in (onsets, vowels, CODAS))
            word = "".join(drawn) + ending
            if word not in self._known:
                self._known.add(word)
                return word


def _text(lexicon: _Lexicon, words: int, draw: Callable[[int], int]) -> str:
    lines, written = [], 0
    while written < words:
        article = _article(lexicon, draw)
        lines += article
        written += sum(len(line.split()) for line in article)
    return "\n".join(lines) + "\n"


def _article(lexicon: _Lexicon, draw: Callable[[int], int]) -> list[str]:
    """Lines of one article: blank, title, blank, then one line per paragraph."""
    topic = zipf(TOPICS, draw)
    field = draw(FIELDS)
    names = [lexicon.names[zipf(NAMES, draw)] for _ in range(4)]
    lines = ["", f" = {names[0]} {lexicon.topics[topic][field][zipf(FIELD_WORDS, draw)]} = ", ""]
    for _ in range(ARTICLE_PARAGRAPHS[draw(len(ARTICLE_PARAGRAPHS))]):
        number = PARAGRAPH_SENTENCES[draw(len(PARAGRAPH_SENTENCES))]
        lines.append(" " + " ".join(_sentence(lexicon, topic, field, names, draw) for _ in range(number)) + " ")
    return lines


def _sentence(lexicon: _Lexicon, topic: int, field: int, names: list[str], draw: Callable[[int], int]) -> str:
    length = SENTENCE_LENGTHS[draw(len(SENTENCE_LENGTHS))]
    words = [_word(lexicon, topic, field, names, draw) for _ in range(length)]
    words[0] = words[0].capitalize()
    if length > 9:
        words.insert(4 + draw(length - 7), ",")
    return " ".join(words) + " ."


def _word(lexicon: _Lexicon, topic: int, field: int, names: list[str], draw: Callable[[int], int]) -> str:
    kind = MIXTURE_KINDS[draw(len(MIXTURE_KINDS))]
    if kind == "function":
        return lexicon.function[zipf(FUNCTION_WORDS, draw)]
    if kind == "name":
        return names[zipf(len(names), draw)]
    if kind == "any":
        topic = draw(TOPICS)
    if kind != "field":
        field = draw(FIELDS)
    return lexicon.topics[topic][field][zipf(FIELD_WORDS, draw)]


def _pairs(lexicon: _Lexicon, occurring: set[str], draw: Callable[[int], int]) -> list[tuple[str, str, int]]:
    """PAIRS pairs for each of SCORES, from content words that occur in the training text, common and rare ones."""
    pairs: dict[tuple[str, str], int] = {}
    for shared, score in SCORES.items():
        wanted = len(pairs) + PAIRS
        # A short text has few words: stop after a limited number of attempts.
        for _ in range(100 * PAIRS):
            if len(pairs) == wanted:
                break
            topic, field = draw(TOPICS), draw(FIELDS)
            other_topic, other_field = topic, field
            if shared == "topic":
                other_field = (field + 1 + draw(FIELDS - 1)) % FIELDS
            if shared == "nothing":
                other_topic, other_field = (topic + 1 + draw(TOPICS - 1)) % TOPICS, draw(FIELDS)
            one = lexicon.topics[topic][field][draw(FIELD_WORDS)]
            other = lexicon.topics[other_topic][other_field][draw(FIELD_WORDS)]
            pair = tuple(sorted((one, other)))
            if one != other and occurring.issuperset(pair):
                pairs[pair] = score
    return [(*pair, score) for pair, score in pairs.items()]
