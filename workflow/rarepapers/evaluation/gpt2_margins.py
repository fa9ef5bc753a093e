"""Effective margin and alpha of GPT-2 (stop_jostling, Appendix B and table 3), without training.

margin_i is the 5th percentile over all tokens t of <h_t, w_t - w_i>, h_t = LayerNorm(gamma * w_t), where
LayerNorm and gamma are the model's final layer norm and its weight; alpha_i is the same percentile of
<h_t, w_t - w_i> / (||h_t|| ||w_t||). Table 3 prints mean and standard deviation over i.
"""

import argparse

import torch

from rarepapers.core.code_digest import code_of
from rarepapers.core.errors import UserError
from rarepapers.core.files import write_json
from rarepapers.evaluation.metric_rows import signature
from rarepapers.machine import gpu_locks
from rarepapers.machine.device import choose_device
from rarepapers.models.gpt2 import FinalLayers, initialise, load_final_layers

# Rows of scores in memory at a time: 256 x 50,257 floats take 51 MB, and there are a few copies.
BLOCK = 256


def effective_margin(layers: FinalLayers, percentile_index: int) -> dict[str, float]:
    """Mean and spread over the N rows of the embedding matrix of margin_i, in logits, and alpha_i, dimensionless.

    percentile_index: the percentile is the k-th smallest of the N values over t, including t = i, 1 <= k <= N (the
    author's 2,500 of 50,257).
    """
    margins, alphas = per_token_margins(layers, percentile_index)
    return {
        "margin": margins.mean().item(),
        "margin_sigma": margins.std(correction=0).item(),
        "alpha": alphas.mean().item(),
        "alpha_sigma": alphas.std(correction=0).item(),
    }


def per_token_margins(
    layers: FinalLayers, percentile_index: int, block: int = BLOCK
) -> tuple[torch.Tensor, torch.Tensor]:
    """margin_i and alpha_i of every token, (N,) each, float64; for `block` tokens i at a time, never N x N."""
    w = layers.embeddings
    if not 1 <= percentile_index <= len(w):
        raise UserError(f"percentile_index is {percentile_index}, outside 1 to the vocabulary's {len(w)}")
    h = layers.normalise(layers.norm_weight * w)
    own = (h * w).sum(1)
    scale = h.norm(dim=1) * w.norm(dim=1)
    margins, alphas = [], []
    for rows in w.split(block):
        differences = own - rows @ h.T  # block x N: token i by context t
        margins.append(differences.kthvalue(percentile_index, dim=1).values)
        alphas.append((differences / scale).kthvalue(percentile_index, dim=1).values)
    return torch.cat(margins).double().cpu(), torch.cat(alphas).double().cpu()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `measure-gpt2`."""
    parser.add_argument("--name", required=True, help="the model's name in the table, such as GPT-2 Small")
    parser.add_argument("--width", type=int, required=True, help="embedding width d")
    parser.add_argument("--vocabulary", type=int, required=True, help="vocabulary size N")
    parser.add_argument("--percentile-index", type=int, required=True, help="k: the k-th smallest of N values")
    parser.add_argument(
        "--checkpoint",
        nargs="?",
        help="model.safetensors or its folder; nothing: random initialisation alone",
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[1], help="of the random initialisations (default: %(default)s)"
    )
    gpu_locks.add_arguments(parser)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
    parser.add_argument("--output", required=True, help="the JSON file to write")


def main(arguments: argparse.Namespace) -> None:
    """Measure one model at random initialisation with every seed and, given its checkpoint, pre-trained."""
    torch.set_num_threads(arguments.threads)
    device = choose_device(arguments.device, arguments.runs_per_gpu)
    sizes = arguments.vocabulary, arguments.width
    # The checkpoint is loaded first, so that a wrong path fails at once.
    layers = load_final_layers(arguments.checkpoint, *sizes) if arguments.checkpoint else None
    percentile_index = arguments.percentile_index
    result = {
        "name": arguments.name,
        "width": arguments.width,
        "vocabulary": arguments.vocabulary,
        "percentile_index": percentile_index,
        "signature": signature(
            "effective_margin",
            percentile=f"{percentile_index}/{arguments.vocabulary}",
            sigma="population",
        ),
        "random_init": [
            {"seed": seed, **effective_margin(initialise(*sizes, seed).to(device), percentile_index)}
            for seed in arguments.seeds
        ],
        "pretrained": None,
        "sources": code_of("rarepapers.evaluation.gpt2_margins"),
    }
    if layers is None:
        result["reason"] = "no checkpoint: gpt2_weights is skip"
    else:
        result["pretrained"] = effective_margin(layers.to(device), percentile_index)
    write_json(arguments.output, result)
