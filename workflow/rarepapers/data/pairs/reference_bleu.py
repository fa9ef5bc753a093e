"""BLEU of a corpus's references against themselves, which no translation can exceed.

Preparation loses what it cannot restore: Moses normalises quotes, SentencePiece compatibility characters. Hypotheses
are decoded from prepared text, but references are scored as published: a perfect translation may score below 100.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.data.codec import PairCodec
from rarepapers.data.pairs.pair_folder import side_file
from rarepapers.data.pairs.prepared_pairs import Pairs
from rarepapers.data.prepared_corpus import SIDES
from rarepapers.metrics.translation_scores import Scoring, bleu

# Mean length of a word, in characters, above which a text is taken for one without blanks between words.
LONGEST_WORD = 15


def reference_bleu(folder: Path, splits: Iterable[str], codec: PairCodec, scoring: Scoring) -> dict[str, dict]:
    """Value, signature and number of pairs by split, except `train`, of a corpus whose ids and texts are in `folder`.

    Raises UserError if sacrebleu's tokenizer does not separate the words of the language.
    """
    found = {}
    for split in splits:
        if split == "train":
            continue
        ids = (np.load(side_file(folder / split, side, "npy"), "r", allow_pickle=False) for side in SIDES)
        pairs = Pairs(folder, split, *ids)
        lines, references = np.split(pairs.target, pairs.target_offsets[1:-1]), pairs.texts("target")
        lengths = [len(word) for line in references for word in scoring.words(line)]
        if sum(lengths) > LONGEST_WORD * len(lengths):
            raise UserError(
                f"words of {scoring.language} in the {split} text have {sum(lengths) / len(lengths):.0f} characters on "
                "average, so BLEU would compare whole phrases; name a tokenizer of sacrebleu in config/corpora.yaml, "
                f"for example bleu_tokenizer: {{{scoring.language}: char}} in the corpus's preparation"
            )
        score = bleu([codec.detokenised(line) for line in lines], references, scoring)
        found[split] = {"value": score.value, "signature": score.signature, "pairs": len(references)}
    return found
