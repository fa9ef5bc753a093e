"""Size of a run, estimated before its text exists: parameters, passes, arithmetic. Needs no torch."""

from dataclasses import dataclass

from rarepapers.data.tokenizers import tokenizer_class

# Vocabulary sizes of word corpora that are known to be smaller (docs/data.md).
WORDS = {"wikitext-2_words": 33_280}


@dataclass(frozen=True)
class Size:
    """Cost of one pass of a model, independent of the machine.

    layers: number of sequential layers; a decoder layer with two attentions counts as 4/3. width: d. types: upper bound
    of V. parameters: upper bound of N. flops: operations of forward and backward for one target.
    """

    layers: float
    width: int
    types: int
    parameters: int
    flops: float


@dataclass(frozen=True)
class Training:
    """Length of a run's training: steps, micro-batches per step, and targets per micro-batch (with padding)."""

    steps: int
    passes: int
    tokens: int

    @property
    def total(self) -> int:
        """Targets of the whole training."""
        return self.steps * self.passes * self.tokens


def size_of(settings: dict) -> Size:
    """The size of the model of a run's settings."""
    model = settings["model"]
    types, width = types_at_most(settings), model["width"]
    if "encoder_layers" in model:
        inner = model.get("inner") or 4 * width
        encoder, decoder = model["encoder_layers"], model["decoder_layers"]
        # A decoder layer has two attentions.
        blocks = encoder * (4 * width + 2 * inner) * width + decoder * (8 * width + 2 * inner) * width
        layers, matrices = encoder + 4 / 3 * decoder, {"three_way": 1, "none": 3}.get(model["tying"], 2)
        attention = 0.0  # about 1% of the rest for sentences
    else:
        layers, matrices = model.get("layers", 1), 1 if model.get("tied", True) else 2
        blocks = 12 * layers * width**2
        # Scores and weighted sums of the causal half.
        attention = 6.0 * layers * width * model["context"]
    return Size(
        layers=layers,
        width=width,
        types=types,
        parameters=matrices * types * width + blocks,
        # Two operations per weight forward, four backward.
        flops=6.0 * (blocks + types * width) + attention,
    )


def training_of(settings: dict) -> Training:
    """The length of a run's training."""
    training = settings["training"]
    tokens = training.get("batch_tokens") or training["batch_size"] * settings["model"]["context"]
    return Training(training["steps"], training.get("accumulation", 1), tokens)


def types_at_most(settings: dict) -> int:
    """Upper bound of a run's vocabulary size; the exact size is known only from the text."""
    definition = settings["corpus"]["definition"]
    tokenizer = definition.get("tokenizer", {})
    if not tokenizer:
        return 2 * definition["symbols"]  # two languages
    most = tokenizer_class(tokenizer["name"]).types(tokenizer)
    # The number of words of synthetic text also bounds the number of distinct ones.
    words = definition.get("synthetic", {}).get("words", {}).get("train", most)
    return min(most, words, WORDS.get(settings["corpus"]["name"], most))


def snapshots_of(settings: dict) -> int:
    """Number of snapshots of the output matrix that a run keeps."""
    steps = settings["training"]["steps"]
    number = 0
    for entry in settings["method"].get("observe", []):
        if isinstance(entry, dict) and entry["name"] == "snapshots":
            number += len(entry["steps"]) if "steps" in entry else steps // entry["every"]
    return number
