"""The sentence of a claim with its numbers: printed quantity, ours with its interval, number of seeds."""

from rarepapers.reporting.claims.claim_parts import in_unit
from rarepapers.reporting.claims.quantities import RATIO
from rarepapers.reporting.claims.verdicts import CORRECTED, FAILS, HOLDS, NO_LARGER, Finding
from rarepapers.reporting.statistics.over_seeds import NO_UNITS


def shown_numbers(finding: Finding) -> dict[str, float | None]:
    """A claim's numbers in its own unit: printed, ours, 95% intervals of mean and new seed, excluded effect."""
    part = finding.binding
    if part is None:
        return {"printed": finding.printed} | dict.fromkeys(("ours", "lower", "upper", *PREDICTED, "excluded"))
    (lower, upper), (first, last) = part.estimate.interval(), part.estimate.prediction(part.single)
    # No seed changes fixed weights or formulas; and some other comparison may have one seed where this one has more.
    if finding.seeds < 2:
        lower = upper = first = last = None
    values = {"printed": part.printed, "ours": part.estimate.mean, "lower": lower, "upper": upper}
    values |= dict(zip(PREDICTED, (first, last), strict=True)) | {"excluded": finding.excluded}
    return {name: in_unit(value, part.log) for name, value in values.items()}


THOUSAND = 999.5  # from here on three digits round to a thousand or more
PREDICTED = ("predict_lower", "predict_upper")


def claim_sentence(claim, finding: Finding, shown: dict[str, float | None]) -> str:
    """The sentence, such as "SE raises LR accuracy, x1.22: printed x1.22, ours x0.99 (0.97 to 1.01), 4 seeds"."""
    if finding.verdict in (HOLDS, CORRECTED, FAILS):
        return f"{claim.sentence}: {finding.verdict}"
    said = [f"printed {number(shown['printed'], claim.unit)}"] if shown["printed"] is not None else []
    if shown["ours"] is None:
        said.append(finding.verdict)
    else:
        said.append(f"ours {number(shown['ours'], claim.unit)}")
        if shown["lower"] is not None:
            said[-1] += f" ({number(shown['lower'], '')} to {number(shown['upper'], '')})"
        if finding.seeds:
            said.append(f"{finding.seeds} seed{'s' * (finding.seeds > 1)}")
        if finding.verdict == NO_LARGER:
            said.append(f"no effect larger than {number(shown['excluded'], claim.unit)}")
    which = f" ({finding.binding.label})" if finding.binding and finding.binding.label else ""
    return f"{claim.sentence}{which}: {', '.join(said)}"


def number(value: float, unit: str) -> str:
    """A number with three digits and its unit: x1.22, 0.7 BLEU, 0.0123, 41,800; three decimals near 1."""
    if 0.9 < abs(value) < 1.1 and value != round(value):
        text = f"{value:.3f}"
    elif THOUSAND <= abs(value) < NO_UNITS:
        text = f"{float(f'{value:.3g}'):,.0f}"
    else:
        text = f"{value:.3g}"
    return f"x{text}" if unit == RATIO else f"{text} {unit}".strip()
