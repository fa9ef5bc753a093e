"""How large a run is, before its text is there: parameters, passes, arithmetic. Free of torch."""

from dataclasses import dataclass

from raretok.data.tokenizers import tokenizer_class

# Types of corpora of words whose text is known, and smaller than that (docs/data.md).
WORDS = {"wikitext-2_words": 33_280}


@dataclass(frozen=True)
class Size:
    """What one pass of a model costs, whatever the machine.

    layers: those that are passed one after another, a decoder's that attends twice as a layer and a third. width: d.
    types: V at most. parameters: N at most. flops: arithmetic of forward and backward for one target, in operations.
    """

    layers: float
    width: int
    types: int
    parameters: int
    flops: float


@dataclass(frozen=True)
class Training:
    """How much of it a run does: updates, micro-batches of each, targets of a micro-batch, padding included."""

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
        # A layer of the decoder attends twice.
        blocks = encoder * (4 * width + 2 * inner) * width + decoder * (8 * width + 2 * inner) * width
        layers, matrices = encoder + 4 / 3 * decoder, {"three_way": 1, "none": 3}.get(model["tying"], 2)
        attention = 0.0  # sentences are short: a hundredth of the rest
    else:
        layers, matrices = model.get("layers", 1), 1 if model.get("tied", True) else 2
        blocks = 12 * layers * width**2
        # Scores and weighted sums, a causal half of them
        attention = 6.0 * layers * width * model["context"]
    return Size(
        layers=layers,
        width=width,
        types=types,
        parameters=matrices * types * width + blocks,
        # Two operations a weight forward, four backward
        flops=6.0 * (blocks + types * width) + attention,
    )


def training_of(settings: dict) -> Training:
    """The length of a run's training."""
    training = settings["training"]
    tokens = training.get("batch_tokens") or training["batch_size"] * settings["model"]["context"]
    return Training(training["steps"], training.get("accumulation", 1), tokens)


def types_at_most(settings: dict) -> int:
    """About how many types a run's vocabulary has; for sure that is known only when its text is."""
    definition = settings["corpus"]["definition"]
    tokenizer = definition.get("tokenizer", {})
    if not tokenizer:
        return 2 * definition["symbols"]  # two languages
    most = tokenizer_class(tokenizer["name"]).types(tokenizer)
    # A text made here says how many words it has, and so how many it can have that differ.
    words = definition.get("synthetic", {}).get("words", {}).get("train", most)
    return min(most, words, WORDS.get(settings["corpus"]["name"], most))


def snapshots_of(settings: dict) -> int:
    """How many snapshots of the output matrix a run keeps."""
    steps = settings["training"]["steps"]
    number = 0
    for entry in settings["method"].get("observe", []):
        if isinstance(entry, dict) and entry["name"] == "snapshots":
            number += len(entry["steps"]) if "steps" in entry else steps // entry["every"]
    return number
