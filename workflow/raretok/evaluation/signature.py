"""Signatures: the string beside a number that says how it was computed, as sacrebleu's."""

from raretok import __version__


def signature(metric: str, *flags: str, **fields: object) -> str:
    """Join the metric's name, `key:value` fields, flags and the package's version with bars.

    >>> signature("perplexity", "drop_incomplete", context=64)
    'perplexity|context:64|drop_incomplete|raretok:0.1.0'
    """
    parts = [metric, *(f"{key}:{value}" for key, value in fields.items()), *flags, f"raretok:{__version__}"]
    return "|".join(parts)
