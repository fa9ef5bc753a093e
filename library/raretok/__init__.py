"""raretok: exact, fast losses for rare tokens in language models.

`__all__` is the public interface: the loss (`raretok.losses`) and its parts (`raretok.methods`), log-probabilities
(`raretok.log_probs`), a patch for models of transformers (`raretok.patching`; trainers: `raretok.hf`), what they need
of training counts (`raretok.frequency`), and metrics (`raretok.public_metrics`). These names are stable. A name's
module, and with it torch, is imported when the name is first asked for: a workflow that reads the methods' parameters
does not need torch.
"""

import importlib

__version__ = "0.1.0"

# Module: what it offers. Type checkers read the same from __init__.pyi.
_OFFERS = {
    "losses": ("OutputLoss",),
    "log_probs": ("TokenStatistics", "token_log_probs", "token_statistics"),
    "patching": ("NoEffectWarning", "Patched", "patch"),
    "methods.cross_entropy": ("CrossEntropy",),
    "methods.threshold": ("Threshold",),
    "methods.softminus": ("Softminus",),
    "methods.contrastive": ("Contrastive",),
    "methods.adaptive_training": ("AdaptiveTraining",),
    "methods.power_law": ("PowerLawDecay",),
    "methods.logit_adjustment": ("LogitAdjustment",),
    "methods.agg": ("AGG",),
    "methods.agps": ("AGPS",),
    "methods.freeze": ("Freeze",),
    "methods.cosreg": ("CosReg",),
    "methods.mu_loss": ("MuLoss",),
    "methods.z_loss": ("ZLoss",),
    "methods.unlikelihood": ("Unlikelihood",),
    "methods.unigram": ("UnigramDivergence",),
    "methods.adversarial": ("Adversarial",),
    "frequency": ("FrequencyGroups", "agg_alpha", "count_targets", "log_unigram", "start_bias"),
    "public_metrics": (
        "accuracy",
        "align_similarity",
        "best_temperature",
        "isotropy",
        "mean_cosine",
        "mean_reciprocal_rank",
        "min_p_margin",
        "nucleus_margin",
        "perplexity",
        "recall",
        "tail_mass",
        "target_ranks",
        "token_nll",
    ),
}
_MODULE_OF = {name: module for module, names in _OFFERS.items() for name in names}
__all__ = [*_MODULE_OF]


def __getattr__(name: str):
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'raretok' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"raretok.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
