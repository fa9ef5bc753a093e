"""Config types of config.yaml, scales and papers, which docs/parameters.md lists."""

from typing import Annotated, Literal, NotRequired, Required, TypedDict, Union

from rarepapers.core.type_check import (
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
from rarepapers.models import config_classes, config_type
from rarepapers.models.options import BelowOne

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

    # Name of a file in scales/ and of the results folder.
    scale: str
    # Folders in papers/; `cross` is [the comparison of all methods](comparison.md).
    papers: Annotated[SomeNames, Limit("uniqueItems", True)]
    # Seeds of every method: n means seeds 1 to n; null means the number set by the method, its paper or the scale.
    seeds: Annotated[
        Annotated[Positive, Limit("maximum", MOST_SEEDS)] | SeedList | None,
        "null, a number of seeds from 1, or a list of different seeds from 0, at most 1000 of them",
    ]
    # Folder from which data files are taken instead of the network; checksums are the same.
    data_mirror: str | None
    # Where to train and evaluate; `auto` uses a GPU if there is one. Not part of a run's identity.
    device: Literal["auto", "cpu", "cuda"]
    # Share of a claim's printed effect; if larger effects are excluded in both directions, the verdict says so.
    equivalence: Annotated[float, Limit("exclusiveMinimum", 0), Limit("maximum", 1)]
    # Number of jobs that may share a GPU of this machine; use more than 1 for tiny models.
    runs_per_gpu: Annotated[Positive, Limit("maximum", 100)]
    # Pre-trained GPT-2 weights for stop_jostling's table 3: `skip` them, download them (`hub`), or a folder to read.
    gpt2_weights: str
    # COMET model for translations, a name on the Hugging Face hub or the path of a checkpoint; null: no COMET. Needs
    # comet-score on PATH.
    comet: str | None
    # Seconds of work that an interrupted training loses at most (or 30 times as long as a save takes, if that is
    # longer); changes no result.
    checkpoint_seconds: Positive
    # Whether to keep the weights of a run after its evaluation; not part of a run's identity.
    keep_weights: bool
    # Render the report of the recorded runs in results/recorded/<scale>; train nothing.
    recorded: bool
    # Render the report of the finished runs in results/<scale> and list the missing ones; train nothing.
    finished: bool


class ScaledPaper(TypedDict, total=False):
    """What a scale changes in a paper's file; the result is checked like a paper."""

    # Number of seeds, if not the scale's; a method's own number overrides both.
    seeds: Positive
    # Number of candidates that methods with a `grid` keep, from the first.
    candidates: Positive
    # Overrides of experiments, by name; null leaves one out.
    experiments: dict[str, object]
    # Overrides of methods, by name; null leaves one out.
    methods: dict[str, object]
    # Methods to train; default: all.
    only: list[str]
    # Overrides of the paper's `gpt2`.
    gpt2: dict[str, object]


class Scale(TypedDict):
    # Shown in the title of every table and figure.
    title: str
    # What verdicts at this scale can and cannot show, in whole sentences, for the report.
    shows: NotRequired[Text]
    # Number of seeds if config.yaml sets none.
    seeds: Positive
    # Time limits of cluster jobs, in minutes: training a run (which continues in another job), evaluating it, one job
    # of data preparation. Not part of a run's identity.
    minutes: each(Positive, "train", "evaluate", "data")
    papers: dict[str, ScaledPaper]


class Corpus(TypedDict):
    # Name of a corpus in corpora.yaml.
    name: Name
    # For characters: probability that a block of text is moved to the second language.
    low_resource_probability: NotRequired[Probability]


# A module in workflow/rarepapers/models.
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
    """Decode during validation, and keep BLEU and chrF in the history."""

    beam: Positive
    length_exponent: NotNegative
    # Number of sentences; null: all.
    sentences: Positive | None


class Validation(TypedDict, total=False):
    # In steps.
    every: Required[Positive]
    # For characters: number of random batches.
    batches: Positive
    # For a language: number of tokens from the start of the split; null: all.
    tokens: Positive | None
    # For translation.
    bleu: ValidationBleu


class Rare(TypedDict):
    """How a scaled run derives values that a paper prints for its own corpus ([deviations](deviations.md))."""

    # AGG's alpha at which this `share` of the types is rare in the paper; other values are multiples of it.
    alpha: AboveZero
    share: Share
    # Share of the training tokens that are of rare types, from which AGPS's i_r follows.
    mass: Share
    # Length of the text, in tokens, for which AGPS's mu is meant; used if the gate has no `touches`.
    tokens: Positive


class Training(TypedDict, total=False):
    steps: Required[Positive]
    # Sequences of `model.context` tokens per micro-batch.
    batch_size: Positive
    # For translation instead: largest number of target tokens per micro-batch, padding included.
    batch_tokens: Positive
    # Micro-batches per step (gradient accumulation).
    accumulation: Positive
    optimiser: Required[Optimiser]
    schedule: Required[Schedule]
    # Norm to which gradients are clipped; null: no clipping.
    clip_norm: Required[AboveZero | None]
    validation: Required[Validation]
    # Criterion for the best checkpoint; default: loss.
    select: Literal["loss", "bleu"]
    # Number of the last validated checkpoints whose mean is the final model.
    average: Positive
    # CPU threads; part of a run, because the last bits of its results depend on them.
    threads: Required[Positive]
    # bfloat16 means autocast: weights, optimiser and statistics stay float32. A CPU without AVX512-BF16 and AMX uses
    # float32 and says so.
    precision: Literal["float32", "bfloat16"]
    # Saves memory; takes a quarter more time.
    activation_checkpointing: bool
    rare: Rare


@keys(one_of=("shares", "bounds", "frequency", "masses"), frequency=["index"], index=["frequency"])
class Groups(TypedDict, total=False):
    """Three groups of types."""

    names: Required[Annotated[list[str], *THREE]]
    # Appended to the groups' names in metrics; the first set has none.
    suffix: str
    # Shares of the types.
    shares: Annotated[list[float], *THREE]
    # First ids of the second and the third group.
    bounds: Annotated[list[int], *TWO]
    # Smallest relative frequency of the first group.
    frequency: float
    # First id of the third group.
    index: int
    # Shares of the training tokens.
    masses: Annotated[list[float], *THREE]


class CharacterEvaluation(TypedDict):
    """For corpora of kind characters."""

    # Blocks, each as long as the model's context, per batch.
    batch_size: Positive
    # Leave out the last batch if it is not full, as the author does.
    drop_incomplete: bool
    # Number of next-token distributions kept for figures.
    examples: Positive
    # Number of nearest tokens kept for each token.
    neighbours: Positive
    # Fit a temperature on the validation text and use it to measure the test text ([comparison](comparison.md)), or,
    # without a test split, the second half of the validation text.
    fit_temperature: NotRequired[bool]


class LanguageEvaluation(TypedDict):
    """For corpora of kind language."""

    # Tables show the first set.
    groups: Annotated[list[Groups], Limit("minItems", 1)]
    # Perplexity as published is computed on blocks of this many tokens, the first `window` of which are only context.
    block: AtLeastTwo
    window: Count
    # Greedy continuations: number of prefixes, their length and that of the continuations in tokens, and the number of
    # examples kept as text.
    prefixes: each(Positive, "number", "length", "continuation", "examples")
    # Number of nearest tokens kept for each query.
    neighbours: Positive
    # Words whose neighbours are kept, or a number of evenly spaced types of the rare group.
    queries: Queries
    # Word similarity sets by name: their files in resources/.
    word_similarity: dict[str, str]
    # Fit a temperature on the beginning of the validation text ([comparison](comparison.md)) and use it to measure both
    # texts.
    fit_temperature: NotRequired[bool]


class TranslationEvaluation(TypedDict, total=False):
    """For corpora of kind translation."""

    # By target-side counts; tables show the first set.
    groups: Required[Annotated[list[Groups], Limit("minItems", 1)]]
    # Hypotheses kept per sentence; 1 is greedy decoding.
    beam: Required[Positive]
    # The log probability of a hypothesis is divided by its length to this power.
    length_exponent: Required[NotNegative]
    # Also report BLEU of tokens with split compounds, as in older papers.
    tokenised_bleu: bool
    neighbours: Required[Positive]
    queries: Required[Queries]
    # Align words, for AlignSim.
    alignment: bool
    # Steps up to which the area under the learning curve is taken, besides that of the whole training.
    alc: list[Positive]
    # Number of bins of unigram log frequency.
    calibration_bins: AtLeastTwo
    # Smallest training count of each bucket of words.
    f1_buckets: Annotated[list[Count], Limit("minItems", 1)]
    # Also translate the corpus's other domains.
    domains: bool
    # As for a language; also counts the types that translations use.
    fit_temperature: bool


class Experiment(TypedDict):
    """One data set, model and training."""

    corpus: Corpus
    model: Model
    training: Training
    evaluation: CharacterEvaluation | LanguageEvaluation | TranslationEvaluation


class Observation(TypedDict, total=False):
    """Something recorded during training; steps are scaled with the length of training."""

    name: Required[str]
    # Their number, or a list of steps; 0 is before the first step.
    steps: Positive | list[Count]
    every: Positive


@keys(others=True)
class Part(TypedDict):
    """A module in `library/raretok/methods`; [its parameters](adding_a_method.md) are the fields of its dataclass."""

    name: str


class Method(TypedDict, total=False):
    """A method, and what it changes in its experiments."""

    # Name of its row in tables: as printed, with another reading in [brackets].
    label: Required[Text]
    # Experiments in which it is trained; default: all of the paper.
    experiments: SomeNames
    # Groups of data for which it is reported, if not all: a monolingual model has no numbers for the other language.
    groups: SomeNames
    # Number of seeds, if not the paper's or the scale's.
    seeds: Positive
    loss: Part
    gate: Part
    penalty: Part
    perturbation: Part
    embedding_update: Part
    # Logits are multiplied by this number in training, not divided.
    training_temperature: AboveZero
    # Factor of the experiment's learning rates.
    rate: AboveZero
    # Values of parameters (`gate.alpha`, or `rate`). The method becomes one candidate per value, such as agg_alpha0.5;
    # with several parameters, the k-th values go together. All methods of a paper have the same number of candidates.
    grid: Annotated[dict[str, Annotated[list[float], Limit("minItems", 1)]], Limit("minProperties", 1)]
    # Number of candidates that this method keeps at a scale, if not the paper's number.
    candidates: Positive
    # What is recorded during training: gradient_norms, snapshots (steps or every), rare_types (steps), rare_alignment
    # (every), output_bias (every), divergence (steps).
    observe: list[str | Observation]
    model: Annotated[Model, PARTIAL]
    training: Annotated[Training, PARTIAL]
    corpus: Annotated[Corpus, PARTIAL]


class OtherDefinition(TypedDict):
    """The same quantity by another definition."""

    column: Text
    metric: str


class Column(TypedDict, total=False):
    metric: Required[str]
    format: Required[str]
    # Another definition of the quantity: a column of its own, and claims must not depend on it.
    other: OtherDefinition
    # Where it is measured, such as valid@best; default: the first of test, valid and weights.
    split: str
    # Groups of the table for which it is shown; default: all.
    groups: SomeNames
    # Group of the measurement, if not the table's.
    group: str
    # For a comparison or a figure: the group to measure in each experiment; others have no number.
    of: dict[str, str]


class ComparedColumn(Column):
    """A column of a comparison."""

    split: Required[str]
    of: Required[dict[str, str]]


Columns = dict[str, Column]
Labels = dict[str, Text]


class Grid(TypedDict, total=False):
    """A further grid below a table of metrics."""

    title: Required[Text]
    # Shown in brackets after the names of its rows; also in the csv.
    reading: Required[Text]
    columns: Columns
    checkpoint: Literal["best", "last"]
    # Suffix of the groups' names in the metrics.
    suffix: str


class Reading(TypedDict, total=False):
    """How all methods are measured in a reading."""

    checkpoint: Literal["best", "last"]
    # Suffix of the groups' names in the metrics.
    suffix: str
    split: str
    # By the metric of a column: the metric that replaces it.
    metrics: dict[str, str]


class Decides(TypedDict, total=False):
    """The number that decides the question."""

    column: Required[str]
    group: str
    # Count the seeds that reach this value.
    reach: float


@keys(rare_group=["ranks", "queries"])
class Table(TypedDict, total=False):
    title: Required[str]
    kind: Required[Literal["metrics", "generated", "neighbours", "gpt2", "hyperparameters"]]
    columns: Columns
    # Groups of every row.
    groups: list[str]
    methods: list[str]
    # For neighbours: number of tokens per query, and the group whose tokens are marked.
    ranks: Positive
    queries: list[str]
    rare_group: str
    # Experiment of the shown runs; default: each method's first. For hyperparameters: the experiment of the settings.
    experiment: str
    # Names of methods in this table, if not their labels.
    labels: Labels
    # The experiment of each printed group, or of each column of hyperparameters; null: only the printed numbers. For a
    # comparison: one grid per entry.
    experiments: dict[str, str | None]
    # For each printed setting, its place in an experiment's settings or in the record of its runs: `a.path`,
    # `4 * a.path * another.path`, or `runs.method.path | default`.
    settings: dict[str, str]
    # Rows that describe the data instead of a model, by name: their columns.
    data: dict[str, Columns]
    # For metrics: further grids; default: one for the weights after the last step.
    further: list[Grid]
    # For generated texts: numbers of the run's examples that correspond to the printed ones.
    examples: Annotated[list[Positive], Limit("minItems", 1)]
    # For readings: tables whose printed numbers are shown beside ours.
    printed: SomeNames


class Comparison(Table):
    """Methods side by side in several experiments; also has the keys of a table."""

    kind: Required[Literal["comparison"]]
    experiments: Required[dict[str, str | None]]
    methods: Required[list[str]]
    columns: Required[Annotated[dict[str, ComparedColumn], Limit("required", ("frequent", "rare"))]]


class Readings(Table):
    """A contradiction in the paper, measured in every reading; also has the keys of a table."""

    kind: Required[Literal["readings"]]
    question: Required[Text]
    # Ids in [deviations](deviations.md).
    about: Required[SomeNames]
    # The others are compared with the first. A list if readings are methods: `methods` then names one method per
    # reading, comparison by comparison.
    readings: Required[Annotated[list[Text], Limit("minItems", 2)] | Annotated[dict[str, Reading], SEVERAL]]
    methods: Required[list[str]]
    columns: Required[Columns]
    decides: Required[Decides]


class Figure(TypedDict, total=False):
    """A figure, drawn by the function with its name."""

    title: Required[str]
    methods: Required[list[str]]
    # Experiment of the shown runs; default: each method's first.
    experiment: str
    # Several experiments side by side: `all` of the scale, or by title.
    experiments: Literal["all"] | dict[str, str]
    # Metrics that claims and the page read for this figure, each with `of`.
    columns: Columns
    labels: Labels
    # The paper's steps of the panels, the one until which it freezes rare rows, or the last one shown.
    printed_steps: list[Positive]


class Gpt2Model(TypedDict):
    repository: Name
    width: Positive


class Gpt2(TypedDict):
    """Pre-trained models of stop_jostling's table 3."""

    vocabulary: AtLeastTwo
    percentile_index: Positive
    models: dict[str, Gpt2Model]


class Headline(TypedDict):
    """The paper's picture on the overview page: a column and group of a table, relative to the first known method."""

    table: str
    methods: SomeNames
    column: str
    group: str
    says: str


class Paper(TypedDict, total=False):
    """A paper: its experiments, methods, tables and figures."""

    title: Required[str]
    source: each(str, "title", "authors", "venue", "url")
    # Text of the reproducibility summary.
    summary: each(str, "easy", "difficult", "code")
    headline: Headline
    # And what they mean; the report explains those that occur in claims and tables.
    abbreviations: dict[str, str]
    # Number of seeds, if not the scale's.
    seeds: Positive
    # Whether there are printed numbers to compare with; default: true.
    printed: bool
    # Number of candidates that methods with a `grid` keep, from the first; default: all.
    candidates: Positive
    # Their names are names of result folders.
    experiments: Required[dict[Name, Experiment]]
    # Their names are names of result folders.
    methods: Required[dict[Name, Method]]
    gpt2: Gpt2
    columns: Columns
    tables: Required[dict[str, Table | Comparison | Readings]]
    figures: Required[dict[str, Figure]]
