"""What a scale of other sizes makes of a paper's parameters that are tied to them (inventory 5.3)."""

import dataclasses

from raretok.methods import DEFAULTS, KINDS, build_part


def scale_factors(experiment: dict, published: dict) -> dict[str, float]:
    """How much larger than published a scale's updates and length of training are (inventory 5.3).

    Where `training.rare` says how rarity is derived from the corpus's own counts, tokens per update have no part
    in it.
    """

    def tokens_per_step(settings: dict) -> int:
        training = settings["training"]
        batch = training.get("batch_tokens") or training["batch_size"] * settings["model"]["context"]
        return batch * training.get("accumulation", 1)

    derived = "rare" in experiment["training"]
    return {
        "tokens_per_step": 1.0 if derived else tokens_per_step(experiment) / tokens_per_step(published),
        "steps": experiment["training"]["steps"] / published["training"]["steps"],
    }


def resolve_parts(entry: dict, factors: dict[str, float], where: str) -> dict:
    """The mathematics of a method: its parts with scaled parameters, in their shortest form.

    A parameter that its dataclass ties to tokens per step or steps is multiplied by that factor. Parameters at
    their default are left out, so that a new parameter with a default changes no hash.
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
    # A default written out is the same method.
    return {key: value for key, value in settings.items() if value != DEFAULTS.get(key)}


def scale_number(number: float, factor: float) -> float:
    """`number` times `factor`; a whole number stays one, of at least 1 unless it is 0."""
    return max(min(number, 1), round(number * factor)) if isinstance(number, int) else number * factor


def scale_observation(entry: str | dict, factor: float) -> str | dict:
    """An entry of a method's `observe` whose numbers of updates are those of a training `factor` times as long."""
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
    """An experiment's `evaluation` whose numbers of updates are those of a training `factor` times as long."""
    ends = {"alc": [scale_number(step, factor) for step in evaluation["alc"]]} if "alc" in evaluation else {}
    return evaluation | ends
