"""Precision and processor of recorded trainings."""

from collections.abc import Iterable, Mapping

from rarepapers.experiments.seeds import seed_ranges

FLOAT32, NOT_RECORDED = "float32", "not recorded"
CPU = "CPU, "


def precision_of(training: Mapping) -> str:
    """The precision in which a run was trained.

    Older records lack it. Settings without bfloat16 always mean float32; with bfloat16 the processor decided.
    """
    if "precision" in training:
        return training["precision"]
    if "settings" not in training:
        return NOT_RECORDED
    wanted = training["settings"].get("training", {}).get("precision", FLOAT32)
    return FLOAT32 if wanted == FLOAT32 else NOT_RECORDED


def processor_of(training: Mapping) -> str:
    """The processor that trained a run. Older records have its model only in the description of a CPU as device."""
    if "processor" in training:
        return training["processor"]
    device = training["device"]
    return device.removeprefix(CPU).rpartition(", ")[0] if device.startswith(CPU) else NOT_RECORDED


def machine_of(training: Mapping) -> str:
    """Precision and device of a run in words."""
    return f"{precision_of(training)} on {training['device'].removeprefix(CPU)}"


def precisions(trainings: Iterable[Mapping]) -> set[str]:
    """The precisions of several runs."""
    return {precision_of(training) for training in trainings}


def mixed_precision(trainings: Mapping[int, Mapping]) -> str:
    """The seeds of one row by precision, in words, if they have several; else empty. trainings: records by seed."""
    seeds: dict[str, list[int]] = {}
    for seed, training in sorted(trainings.items()):
        seeds.setdefault(precision_of(training), []).append(seed)
    if len(seeds) < 2:
        return ""
    parts = (f"seed{'s' * (len(own) > 1)} {seed_ranges(own)} in {name}" for name, own in sorted(seeds.items()))
    return f"trained in different precisions: {', '.join(parts)}"
