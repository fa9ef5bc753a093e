"""Margins for which thresholding cannot affect a sampler, with seeded property tests.

Lemma 3 (stop_jostling, Appendix A) covers nucleus sampling, section 3.2's margin min-p sampling. A token i is
thresholded if z_i < z_y - margin. The claims `stop_jostling.lemma3` and `stop_jostling.min_p` use the property tests:
random logits, temperatures and levels, half of them at the border, where a margin that is slightly too small fails.
"""

import math

import numpy as np

# Distance of border cases beyond the threshold, in units of T: above rounding errors.
BEYOND = 1e-6


def nucleus_margin(vocabulary: int, top_p: float, temperature: float = 1.0) -> float:
    """The smallest logit margin without effect on nucleus sampling (stop_jostling, Lemma 3): T ln((N - 1) p / (1 - p)).

    A type that thresholding with this margin drops could not have been sampled. It is 14.50 for N = 100,000, p = 0.99
    and T = 0.9. For p < 1 / N the margin would be negative: the target itself would be thresholded, and the lemma would
    not hold.

    Args:
        vocabulary: N, at least 2.
        top_p: p, from 1 / N to below 1.
        temperature: sampling temperature T, above 0.

    Raises ValueError for values outside these ranges.
    """
    if vocabulary < 2 or not 1 / vocabulary <= top_p < 1 or temperature <= 0:
        raise ValueError(f"no margin for N = {vocabulary}, top_p = {top_p}, T = {temperature}")
    return max(0.0, temperature * math.log((vocabulary - 1) * top_p / (1 - top_p)))


def min_p_margin(p_base: float, temperature: float = 1.0) -> float:
    """The smallest logit margin without effect on min-p sampling (stop_jostling, 3.2): -T ln(p_base).

    It is positive; the paper prints T ln(p_base), which is negative (deviations, S2).

    Args:
        p_base: smallest kept probability as a share of the largest one, above 0 and at most 1.
        temperature: sampling temperature T, above 0.

    Raises ValueError for values outside these ranges.
    """
    if not 0 < p_base <= 1 or temperature <= 0:
        raise ValueError(f"no margin for p_base = {p_base}, T = {temperature}")
    return -temperature * math.log(p_base)


def softmax(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """softmax(z / T) of N logits, float64."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    powers = np.exp(scaled - scaled.max())
    return powers / powers.sum()


def in_nucleus(probabilities: np.ndarray, top_p: float) -> np.ndarray:
    """Whether each token is in the smallest set of most likely tokens with mass `top_p`; ties by id."""
    order = np.argsort(-probabilities, kind="stable")
    # Tokens before which the mass is still below top_p, which always include the first.
    before = np.concatenate([[0.0], np.cumsum(probabilities[order])[:-1]])
    inside = np.zeros(len(probabilities), dtype=bool)
    inside[order] = before < top_p
    return inside


def in_min_p(probabilities: np.ndarray, p_base: float) -> np.ndarray:
    """Whether each token has at least `p_base` of the largest probability."""
    return probabilities >= p_base * probabilities.max()


def check_lemma3(seed: int, cases: int, factor: float = 1.0) -> int:
    """Number of `cases` random cases in which a thresholded token lies in the nucleus; 0 by the lemma.

    factor multiplies the margin: below 1 the test must find violations.
    """
    generator = np.random.default_rng(seed)
    violations = 0
    for case in range(cases):
        vocabulary = int(generator.integers(2, 300))
        temperature = float(generator.uniform(0.1, 2.0))
        top_p = float(generator.uniform(max(0.5, 1 / vocabulary), 0.999))
        margin = factor * nucleus_margin(vocabulary, top_p, temperature)
        logits, target = _logits(generator, case, vocabulary, temperature, margin)
        thresholded = logits < logits[target] - margin
        violations += bool((thresholded & in_nucleus(softmax(logits, temperature), top_p)).any())
    return violations


def check_min_p(seed: int, cases: int, printed_sign: bool = False) -> int:
    """Number of `cases` random cases in which a thresholded token passes min-p sampling; 0 with -T ln(p_base).

    printed_sign: use the printed margin T ln(p_base); the test must then find violations.
    """
    generator = np.random.default_rng(seed)
    violations = 0
    for case in range(cases):
        vocabulary = int(generator.integers(2, 300))
        temperature = float(generator.uniform(0.1, 2.0))
        p_base = float(generator.uniform(0.01, 0.99))
        margin = min_p_margin(p_base, temperature) * (-1 if printed_sign else 1)
        logits, target = _logits(generator, case, vocabulary, temperature, margin)
        thresholded = logits < logits[target] - margin
        violations += bool((thresholded & in_min_p(softmax(logits, temperature), p_base)).any())
    return violations


def _logits(
    generator: np.random.Generator, case: int, vocabulary: int, temperature: float, margin: float
) -> tuple[np.ndarray, int]:
    """Logits and a target, random in even cases; in odd ones all other tokens are just beyond the threshold.

    Odd cases are the hardest, since thresholded tokens have as much mass as possible.
    """
    if case % 2 == 0:
        logits = generator.normal(0.0, float(generator.uniform(0.5, 10.0)), vocabulary)
        # Half of the targets are the most likely token, because an unlikely target thresholds almost nothing.
        likely = case % 4 == 0
        return logits, int(logits.argmax()) if likely else int(generator.integers(vocabulary))
    logits = np.full(vocabulary, -margin - BEYOND * temperature)
    target = int(generator.integers(vocabulary))
    logits[target] = 0.0
    return logits, target
