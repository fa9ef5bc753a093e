"""What config.yaml, scales and papers can hold; docs/parameters.md shows it."""

from typing import Annotated, Literal, NotRequired, Required, TypedDict, Union

from raretok.core.type_check import (
    PARTIAL,
    AboveZero,
    Count,
    Limit,
    Name,
    NotNegative,
    Positive,
    Share,
    Text,
    each,
    keys,
)
from raretok.models import config_classes, config_type
from raretok.models.options import BelowOne

Probability = Annotated[NotNegative, Limit("maximum", 1)]
AtLeastTwo = Annotated[int, Limit("minimum", 2)]
Queries = list[str] | each(Positive, "rare")
SomeNames = Annotated[list[str], Limit("minItems", 1)]
THREE = Limit("minItems", 3), Limit("maxItems", 3)
TWO = Limit("minItems", 2), Limit("maxItems", 2)
SEVERAL = Limit("minProperties", 2)
MOST_SEEDS = 1000
SeedList = Annotated[list[Count], Limit("minItems", 1), Limit("maxItems", MOST_SEEDS), Limit("uniqueItems", True)]


class Choices(TypedDict):
    """What a user chooses; the command line overrides each: `snakemake --cores all --config scale=small seeds=5`."""

    # A file of scales/, also the name of the results folder.
    scale: str
    # Folders of papers/; `cross` is [the comparison of all methods](comparison.md).
    papers: Annotated[SomeNames, Limit("uniqueItems", True)]
    # Of every method; a number n means 1 to n, null the number of the method, else of its paper, else of the scale.
    seeds: Annotated[
        Annotated[Positive, Limit("maximum", MOST_SEEDS)] | SeedList | None,
        "null, a number of seeds from 1, or a list of different seeds from 0, at most 1000 of them",
    ]
    # A folder to take data files from instead of the network, with the same checksums.
    data_mirror: str | None
    # Where to train and evaluate; auto takes a GPU where there is one. No part of a run's identity.
    device: Literal["auto", "cpu", "cuda"]
    # How many jobs may share a GPU of this machine; more than 1 suits tiny models.
    runs_per_gpu: Annotated[Positive, Limit("maximum", 100)]
    # How many processes train one run, each with a GPU of its own; results differ by rounding alone.
    processes: Positive
    # How many character runs of one shape one job trains at most, as many as fit on a command line; results differ by
    # rounding alone.
    together: Annotated[Positive, Limit("maximum", 256)]
    # Pre-trained GPT-2 weights for stop_jostling's table 3: `skip` them, download them (`hub`), or a folder to read.
    gpt2_weights: str
    # COMET of translations by this model, a name of the Hugging Face hub or a checkpoint's path (null: none); needs
    # comet-score on PATH.
    comet: str | None
    # An interrupted training loses at most so many seconds of work; changes no result.
    checkpoint_seconds: Positive
    # Whether the weights of a run stay once they are measured; no part of a run's identity.
    keep_weights: bool
    # Build the report from the recorded runs in results/recorded/<scale>; train nothing.
    recorded: bool
    # Build the report from the finished runs in results/<scale> and list the missing ones; train nothing.
    finished: bool


class ScaledPaper(TypedDict, total=False):
    """What a scale lays over a paper's file; the result is checked as a paper is."""

    # Number of seeds, where that is not the scale's; a method's own overrides both.
    seeds: Positive
    # Methods with a `grid` keep so many of their first candidates.
    candidates: Positive
    # By name: overrides of an experiment; null leaves it out.
    experiments: dict[str, object]
    # By name: overrides of a method; null leaves it out.
    methods: dict[str, object]
    # The methods that are trained; default: all.
    only: list[str]
    # Overrides of the paper's `gpt2`.
    gpt2: dict[str, object]


class Scale(TypedDict):
    # Stands in the title of every table and figure.
    title: str
    # Number of seeds where config.yaml names none.
    seeds: Positive
    # Time limits of a job on a cluster: one training (which continues in another job), the evaluation of one run, one
    # step of data preparation. No part of a run's identity.
    minutes: each(Positive, "train", "evaluate", "data")
    papers: dict[str, ScaledPaper]


class Corpus(TypedDict):
    # A corpus of corpora.yaml.
    name: Name
    # Of characters: the probability that a block of text is moved to the second language.
    low_resource_probability: NotRequired[Probability]


# A module of workflow/raretok/models.
Model = Union[tuple(map(config_type, config_classes()))]  # noqa: UP007


class Optimiser(TypedDict):
    # adamw.
    name: str
    betas: Annotated[list[BelowOne], *TWO]
    eps: AboveZero
    weight_decay: NotNegative


class Schedule(TypedDict, total=False):
    # cosine (peak, final, warmup) or inverse_sqrt (peak, start, warmup).
    name: Required[str]
    peak: Required[AboveZero]
    final: NotNegative
    start: NotNegative
    # In steps.
    warmup: Count


class ValidationBleu(TypedDict):
    """Decode in validation, and keep BLEU and chrF in the history."""

    beam: Positive
    length_exponent: NotNegative
    # How many; null: all.
    sentences: Positive | None


class Validation(TypedDict, total=False):
    # In steps.
    every: Required[Positive]
    # Of characters: random batches.
    batches: Positive
    # Of a language: tokens from the start of the split; null: all.
    tokens: Positive | None
    # Of pairs to translate.
    bleu: ValidationBleu


class Rare(TypedDict):
    """How a scaled run derives what a paper prints for its own corpus ([deviations](deviations.md))."""

    # AGG's alpha is a multiple of this value, at which this `share` of the types is rare.
    alpha: AboveZero
    share: Share
    # AGPS's i_r leaves this share of the tokens to the rare types.
    mass: Share
    # AGPS's mu, where the gate has no `touches`, is for a text of so many tokens.
    tokens: Positive


class Training(TypedDict, total=False):
    steps: Required[Positive]
    # Sequences of model.context tokens in a micro-batch.
    batch_size: Positive
    # Of pairs to translate, instead: target tokens of a micro-batch at most, padding included.
    batch_tokens: Positive
    # Micro-batches in a step (gradient accumulation).
    accumulation: Positive
    optimiser: Required[Optimiser]
    schedule: Required[Schedule]
    # Clip gradients to this norm; null: never.
    clip_norm: Required[AboveZero | None]
    validation: Required[Validation]
    # What the best checkpoint is chosen by; default: loss.
    select: Literal["loss", "bleu"]
    # The model is the mean of so many of the last validated checkpoints.
    average: Positive
    # Of the CPU; part of a run, since the last bits of its results depend on it.
    threads: Required[Positive]
    # bfloat16 is autocast: weights, optimiser and statistics stay float32. A CPU without AVX512-BF16 and AMX takes
    # float32 and says so.
    precision: Literal["float32", "bfloat16"]
    # Saves memory, costs a quarter more time.
    activation_checkpointing: bool
    rare: Rare


@keys(one_of=("shares", "bounds", "frequency", "masses"), frequency=["index"], index=["frequency"])
class Groups(TypedDict, total=False):
    """Three groups of types."""

    names: Required[Annotated[list[str], *THREE]]
    # Of the groups' names in metrics; the first set has none.
    suffix: str
    # Of the types.
    shares: Annotated[list[float], *THREE]
    # First ids of the second and the third group.
    bounds: Annotated[list[int], *TWO]
    # Least relative frequency of the first group.
    frequency: float
    # First id of the third group.
    index: int
    # Shares of the training tokens.
    masses: Annotated[list[float], *THREE]


class CharacterEvaluation(TypedDict):
    """Of a corpus of kind characters."""

    # Blocks of the model's context in a batch.
    batch_size: Positive
    # Leave out the last batch where it is not full, as the author does.
    drop_incomplete: bool
    # How many next-token distributions are kept for figures.
    examples: Positive
    # How many nearest tokens are kept of each.
    neighbours: Positive
    # Fit a temperature to the validation text and measure the test text at it ([comparison](comparison.md)); without a
    # test split, the second half of the validation text.
    fit_temperature: NotRequired[bool]


class LanguageEvaluation(TypedDict):
    """Of a corpus of kind language."""

    # Tables show the first.
    groups: Annotated[list[Groups], Limit("minItems", 1)]
    # Perplexity as published: of blocks of so many tokens, of which the first `window` are context alone.
    block: AtLeastTwo
    window: Count
    # Greedy continuations: of so many prefixes of this length, in tokens; examples: how many are kept as text.
    prefixes: each(Positive, "number", "length", "continuation", "examples")
    # How many nearest tokens are kept of each query.
    neighbours: Positive
    # Words whose neighbours are kept, or so many types of the rare group, evenly spaced.
    queries: Queries
    # Sets of pairs of words by name: their files below resources/.
    word_similarity: dict[str, str]
    # Fit a temperature to the validation text, and measure both texts at it.
    fit_temperature: NotRequired[bool]


class TranslationEvaluation(TypedDict, total=False):
    """Of a corpus of kind translation."""

    # Of target-side counts; tables show the first.
    groups: Required[Annotated[list[Groups], Limit("minItems", 1)]]
    # Hypotheses kept of a sentence; 1 is greedy.
    beam: Required[Positive]
    # A hypothesis's log probability is divided by its length to this power.
    length_exponent: Required[NotNegative]
    # BLEU of tokens with compounds split, as older papers have it, in a column of its own.
    tokenised_bleu: bool
    neighbours: Required[Positive]
    queries: Required[Queries]
    # Align words, for the similarity of aligned words.
    alignment: bool
    # Steps over which the area under the learning curve is taken, beside the whole training's.
    alc: list[Positive]
    # Of unigram log frequency.
    calibration_bins: AtLeastTwo
    # Least training counts of the buckets of words.
    f1_buckets: Annotated[list[Count], Limit("minItems", 1)]
    # Translate the corpus's other domains too.
    domains: bool
    # As of a language; also counts the types that translations use.
    fit_temperature: bool


class Experiment(TypedDict):
    """One data set, model and training."""

    corpus: Corpus
    model: Model
    training: Training
    evaluation: CharacterEvaluation | LanguageEvaluation | TranslationEvaluation


class Observation(TypedDict, total=False):
    """Something recorded along training; numbers of steps are scaled with the length of training."""

    name: Required[str]
    # How many, or which; 0: before the first.
    steps: Positive | list[Count]
    every: Positive


@keys(others=True)
class Part(TypedDict):
    """A module of `raretok/methods`; [its parameters](adding_a_method.md) are the fields of its dataclass."""

    name: str


class Method(TypedDict, total=False):
    """A method, and what it overrides of its experiment."""

    # The name of its row in tables: the printed name, with a further reading in [brackets].
    label: Required[Text]
    # In which it is trained; default: all of the paper.
    experiments: list[str]
    # Groups of data that it is reported on, where that is not all: a model of one language says nothing of another.
    groups: SomeNames
    # How many, where that is not the paper's or the scale's number.
    seeds: Positive
    loss: Part
    gate: Part
    penalty: Part
    perturbation: Part
    embedding_update: Part
    # Multiplies the logits in training.
    training_temperature: AboveZero
    # Multiplies the experiment's learning rates.
    rate: AboveZero
    # Parameter (`gate.alpha`, or `rate`) to values: the method becomes one for each, such as agg_alpha0.5; of several,
    # the k-th values go together. All methods of a paper have as many.
    grid: Annotated[dict[str, Annotated[list[float], Limit("minItems", 1)]], Limit("minProperties", 1)]
    # What is recorded along training: gradient_norms, snapshots (steps or every), rare_types (steps), rare_alignment
    # (every), output_bias (every), divergence (steps).
    observe: list[str | Observation]
    model: Annotated[Model, PARTIAL]
    training: Annotated[Training, PARTIAL]
    corpus: Annotated[Corpus, PARTIAL]


class Column(TypedDict, total=False):
    metric: Required[str]
    format: Required[str]
    # Where it was measured, such as valid@best; default: the first of test, valid and weights.
    split: str
    # Of the table's groups those that it is shown for; default: all.
    groups: SomeNames
    # The measurement's group, where that is not the table's.
    group: str
    # Of a comparison, or a figure: experiment to the group that it is measured on; not measured in others.
    of: dict[str, str]


class ComparedColumn(Column):
    """A column of a comparison."""

    split: Required[str]
    of: Required[dict[str, str]]


Columns = dict[str, Column]
Labels = dict[str, Text]


class Grid(TypedDict, total=False):
    """A grid below a table of metrics."""

    title: Required[Text]
    # In the brackets of its rows, which tell it apart in the csv.
    reading: Required[Text]
    columns: Columns
    checkpoint: Literal["best", "last"]
    # Of the groups' names in the metrics.
    suffix: str


class Reading(TypedDict, total=False):
    """How every method is measured in a reading."""

    checkpoint: Literal["best", "last"]
    # Of the groups' names in the metrics.
    suffix: str
    split: str
    # A column's metric: the one that is measured in its place.
    metrics: dict[str, str]


class Decides(TypedDict, total=False):
    """The number that an answer rests on."""

    column: Required[str]
    group: str
    # Count the seeds that have at least this.
    reach: float


@keys(rare_group=["ranks", "queries"])
class Table(TypedDict, total=False):
    title: Required[str]
    kind: Required[Literal["metrics", "generated", "neighbours", "gpt2", "hyperparameters"]]
    columns: Columns
    # Which each row has.
    groups: list[str]
    methods: list[str]
    # Of neighbours: how many for each of the queries, and the group whose tokens are marked.
    ranks: Positive
    queries: list[str]
    rare_group: str
    # In which of a method's experiments it is shown; default: in its first. Of hyperparameters: whose settings.
    experiment: str
    # What a method is called here, where that is not its label.
    labels: Labels
    # Printed groups, or columns of hyperparameters, with the experiment that each is of; null: the print alone. Of a
    # comparison: a grid for each.
    experiments: dict[str, str | None]
    # Printed name of a setting: where an experiment's settings, or the record of its runs, have it, as `a.path`,
    # `4 * a.path * another.path`, `runs.method.path | value of the default`.
    settings: dict[str, str]
    # Rows of the data, which no model has: name of the row to the columns that it has.
    data: dict[str, Columns]
    # Of metrics: further grids; default: one of the weights after the last step.
    further: list[Grid]
    # Of generated texts: which of a run's examples stand at the places of the printed ones.
    examples: Annotated[list[Positive], Limit("minItems", 1)]
    # The tables whose printed numbers stand beside those of readings.
    printed: SomeNames


class Comparison(Table):
    """Methods side by side in several experiments, with keys of a table besides."""

    kind: Required[Literal["comparison"]]
    experiments: Required[dict[str, str | None]]
    methods: Required[list[str]]
    columns: Required[Annotated[dict[str, ComparedColumn], Limit("required", ("frequent", "rare"))]]


class Readings(Table):
    """A contradiction of the paper, measured in every reading, with keys of a table besides."""

    kind: Required[Literal["readings"]]
    question: Required[Text]
    # Ids of [deviations](deviations.md).
    about: Required[SomeNames]
    # The first is what others are compared with. A list where each is a method: `methods` has one for each, comparison
    # after comparison.
    readings: Required[Annotated[list[Text], Limit("minItems", 2)] | Annotated[dict[str, Reading], SEVERAL]]
    methods: Required[list[str]]
    columns: Required[Columns]
    decides: Required[Decides]


class Figure(TypedDict, total=False):
    """A figure, drawn by the function of its name."""

    title: Required[str]
    methods: Required[list[str]]
    # In which of a method's experiments it is shown; default: in its first.
    experiment: str
    # Several side by side: those of the scale (all), or by what they are called.
    experiments: Literal["all"] | dict[str, str]
    # What improvement.csv compares for it, each with `of`.
    columns: Columns
    labels: Labels


class Gpt2Model(TypedDict):
    repository: Name
    width: Positive


class Gpt2(TypedDict):
    """Pre-trained models of stop_jostling's table 3."""

    vocabulary: AtLeastTwo
    percentile_index: Positive
    models: dict[str, Gpt2Model]


class Headline(TypedDict):
    """The paper's picture: one column and group of a table, each method over the first one that has a number."""

    table: str
    methods: SomeNames
    column: str
    group: str
    says: str


class Paper(TypedDict, total=False):
    """A paper: its experiments, methods, tables and figures."""

    title: Required[str]
    source: each(str, "title", "authors", "venue", "url")
    # What the reproducibility summary says beside numbers.
    summary: each(str, "easy", "difficult", "code")
    headline: Headline
    # How many, where that is not the scale's number.
    seeds: Positive
    # false: nothing here was printed anywhere, so that there is nothing to compare with.
    printed: bool
    # Methods with a `grid` keep so many of their first candidates; default: all.
    candidates: Positive
    experiments: Required[dict[str, Experiment]]
    # Names are folders of the results.
    methods: Required[dict[Name, Method]]
    gpt2: Gpt2
    columns: Columns
    tables: Required[dict[str, Table | Comparison | Readings]]
    figures: Required[dict[str, Figure]]
