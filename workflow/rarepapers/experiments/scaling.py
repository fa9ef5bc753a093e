"""Parameters that depend on tokens per step or on the length of training, rescaled for a scale (docs/deviations.md)."""

import dataclasses

from rarepapers.experiments.methods import DEFAULTS, KINDS, build_part
from rarepapers.experiments.run_size import training_of


def scale_factors(experiment: dict, published: dict) -> dict[str, float]:
    """Ratio of the scale's tokens per step and number of steps to the published ones (docs/deviations.md, Scaled runs).

    If `training.rare` derives rarity from the corpus's own counts, the ratio of tokens per step is 1.
    """
    derived = "rare" in experiment["training"]
    own, printed = training_of(experiment), training_of(published)
    return {
        "tokens_per_step": 1.0 if derived else own.passes * own.tokens / (printed.passes * printed.tokens),
        "steps": experiment["training"]["steps"] / published["training"]["steps"],
    }


def resolve_parts(entry: dict, factors: dict[str, float], where: str) -> dict:
    """The parts of a method with scaled parameters, in their shortest form.

    Parameters that their dataclass ties to tokens per step or to steps are multiplied by that factor. Parameters with
    their default value are left out, so that adding a parameter with a default changes no hash.
    """
    settings = {}
    for key, value in entry.items():
        if key in KINDS:
            part = build_part(key, value, f"{where}.{key}")
            settings[key] = {"name": value["name"]}
            for field in dataclasses.fields(part):
                number = getattr(part, field.name)
                if number == field.default:
                    continue
                factor = factors.get(field.metadata.get("scales_with"), 1.0)
                if factor != 1.0 and number is not None:
                    number = scale_number(number, factor)
                settings[key][field.name] = number
        elif key == "observe":
            settings[key] = [scale_observation(entry, factors["steps"]) for entry in value]
        elif key == "training_temperature":
            settings[key] = value
    # A default that is spelled out gives the same method.
    return {key: value for key, value in settings.items() if value != DEFAULTS.get(key)}


def scale_number(number: float, factor: float) -> float:
    """`number` times `factor`; an integer stays an integer, and at least 1 unless it is 0."""
    return max(min(number, 1), round(number * factor)) if isinstance(number, int) else number * factor


def scale_observation(entry: str | dict, factor: float) -> str | dict:
    """An entry of a method's `observe` with its steps multiplied by `factor`."""
    if isinstance(entry, str):
        return entry
    scaled = dict(entry)
    for key in {"steps", "every"} & entry.keys():
        value = entry[key]
        if isinstance(value, list):
            scaled[key] = sorted({scale_number(step, factor) for step in value})
        else:
            scaled[key] = scale_number(value, factor)
    return scaled


def scale_evaluation(evaluation: dict, factor: float) -> dict:
    """An experiment's `evaluation` with its steps multiplied by `factor`."""
    ends = {"alc": [scale_number(step, factor) for step in evaluation["alc"]]} if "alc" in evaluation else {}
    return evaluation | ends
