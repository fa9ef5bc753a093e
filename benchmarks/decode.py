"""Beam search over 1,000 sentences, compared with CTranslate2 (fp32) on the same weights.

    python benchmarks/decode.py [--threads 2] [--beam 5]
    python benchmarks/decode.py --run results/small/runs/EXPERIMENT/METHOD/seed1 --data results/small/data/CORPUS

Without a run: a random model of 3 + 3 layers, width 256 and 8,000 types that never ends a sentence, so that both write
20 types for each of 1,000 sources with Multi30k's lengths. With a run: its final model on the test sentences of its
data. It also prints how many translations agree: with a run almost all; with a random model and a beam above 1 a few
differ, because ours counts the final </s>, which CTranslate2 never writes. Repetitions are interleaved (ours,
CTranslate2, ours, ...), so that drift of the machine's speed affects both. It reports wall time (with one thread CPU
time, which other processes affect least) of translating ids to ids, without reading and conversion. CTranslate2 runs
once with all threads in each operation and once with one worker per thread.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from rarepapers.core.special_types import END, PAD, START
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.models.beam_search import translate
from rarepapers.models.building import build_model, load_model
from rarepapers.models.encoder_decoder import EncoderDecoder

VOCABULARY, WRITTEN = 8000, 20
MODEL = {
    "name": "encoder_decoder",
    "encoder_layers": 3,
    "decoder_layers": 3,
    "heads": 8,
    "width": 256,
    "context": 256,
    "tying": "three_way",
    "output_bias": "zero",
}
# Mean and standard deviation of the length of Multi30k's German sentences in ids, including </s>.
LENGTH = (15.4, 5.0)


def random_case(number: int) -> tuple[EncoderDecoder, list[np.ndarray], int]:
    """A model that never ends a sentence, sources, and the number of ids to write, including the last </s>."""
    model = build_model(MODEL, VOCABULARY, seed=1).eval().requires_grad_(False)
    # CTranslate2 would write the first two.
    model.output_bias[[START, PAD, END]] = -1e4
    generator = np.random.default_rng(1)
    lengths = generator.normal(*LENGTH, number).round().clip(4, 40).astype(int)
    sources = [np.append(generator.integers(4, VOCABULARY, length - 1), END) for length in lengths]
    return model, sources, WRITTEN + 1


def run_case(run: Path, data: Path, number: int) -> tuple[EncoderDecoder, list[np.ndarray], int]:
    """A run's final model, the first test sentences of its data that fit it, and the maximum number of ids to write."""
    settings = json.loads((run / "training.json").read_text())["settings"]
    corpus = load_manifest(data / "manifest.json")
    model = load_model(run / "model.safetensors", settings["model"], corpus.types)
    pairs = load_pairs(corpus, "test")
    offsets, context = pairs.source_offsets, model.config.context
    fitting = np.flatnonzero(np.diff(offsets) <= context)[:number]
    sources = [np.array(pairs.source[offsets[i] : offsets[i + 1]], dtype=np.int64) for i in fitting]
    return model, sources, min(2 * max(map(len, sources)), context)


def convert(model: EncoderDecoder, folder: Path) -> None:
    """Write `model` as a CTranslate2 model. Raises ValueError if that has no equivalent."""
    from ctranslate2.specs import TransformerSpec, common_spec

    config = model.config
    if config.positions != "sinusoidal" or not config.bias:
        raise ValueError("only models with sinusoidal positions and biases are compared")
    activation = {"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}[config.activation]
    layers = (config.encoder_layers, config.decoder_layers)
    spec = TransformerSpec.from_config(layers, config.heads, pre_norm=config.norm == "pre", activation=activation)

    def linear(target, source):
        target.weight, target.bias = source.weight.numpy(), source.bias.numpy()

    def norm(target, source):
        target.gamma, target.beta = source.weight.numpy(), source.bias.numpy()

    for side, blocks, last_norm in (
        (spec.encoder, model.encoder, model.encoder_norm),
        (spec.decoder, model.decoder, model.decoder_norm),
    ):
        side.scale_embeddings = config.scale_embedding
        side.position_encodings.encodings = model.position_table.numpy()
        if config.norm == "pre":
            norm(side.layer_norm, last_norm)
        for target, block in zip(side.layer, blocks, strict=True):
            norm(target.self_attention.layer_norm, block.attention_norm)
            linear(target.self_attention.linear[0], block.attention.qkv)
            linear(target.self_attention.linear[1], block.attention.projection)
            norm(target.ffn.layer_norm, block.feed_forward_norm)
            linear(target.ffn.linear_0, block.feed_forward.expansion)
            linear(target.ffn.linear_1, block.feed_forward.projection)
            if side is spec.decoder:
                norm(target.attention.layer_norm, block.cross_attention_norm)
                linear(target.attention.linear[0], block.cross_attention.query)
                linear(target.attention.linear[1], block.cross_attention.key_value)
                linear(target.attention.linear[2], block.cross_attention.projection)
    spec.encoder.embeddings[0].weight = model.source_weight.numpy()
    spec.decoder.embeddings.weight = model.input_weight.numpy()
    spec.decoder.projection.weight = model.output_weight.numpy()
    if model.output_bias is not None:
        spec.decoder.projection.bias = model.output_bias.numpy()
    types = ["<s>", "<pad>", "</s>", "<unk>", *(str(i) for i in range(4, config.vocabulary))]
    spec.register_source_vocabulary(types)
    spec.register_target_vocabulary(types)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def ctranslate2_forms(
    model: EncoderDecoder, sources: list[np.ndarray], most: int, beam: int, threads: int, folder: Path
) -> dict[str, Callable[[], list[list[int]]]]:
    """CTranslate2 with different uses of threads, as functions that translate all sources; empty if not installed."""
    try:
        import ctranslate2
    except ImportError:
        return {}
    convert(model, folder)
    types = ["<s>", "<pad>", "</s>", "<unk>", *(str(i) for i in range(4, model.config.vocabulary))]
    ids = {name: i for i, name in enumerate(types)}
    tokens = [[types[i] for i in source] for source in sources]

    def run(translator, size):
        results = translator.translate_batch(
            tokens,
            beam_size=beam,
            length_penalty=1,
            max_batch_size=size,
            min_decoding_length=0,
            max_decoding_length=most - 1,
        )
        return [[ids[name] for name in result.hypotheses[0]] for result in results]

    forms = {}
    for workers in dict.fromkeys((1, threads)):
        translator = ctranslate2.Translator(
            str(folder), compute_type="float32", inter_threads=workers, intra_threads=threads // workers
        )
        for size in (32, 64):
            name = f"CTranslate2 {ctranslate2.__version__}, {workers} workers, {size} sentences"
            forms[name] = partial(run, translator, size)
    return forms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--beam", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=1000, help="(default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument(
        "--batch-tokens", type=int, help="source positions times beam in a batch of ours (default: what suits a CPU)"
    )
    parser.add_argument("--run", type=Path, help="folder of a trained run")
    parser.add_argument("--data", type=Path, help="folder of the data that it was trained on")
    arguments = parser.parse_args()
    if (arguments.run is None) != (arguments.data is None):
        parser.error("--run and --data go together")
    torch.set_num_threads(arguments.threads)
    number = arguments.sentences
    case = random_case(number) if arguments.run is None else run_case(arguments.run, arguments.data, number)
    compare(*case, arguments)


def compare(model: EncoderDecoder, sources: list[np.ndarray], most: int, arguments: argparse.Namespace) -> None:
    """Time all variants in turn; print times, the ratio of the best ones, and the share of equal translations."""

    def ours():
        return translate(model, sources, arguments.beam, 1.0, arguments.batch_tokens, most)

    with tempfile.TemporaryDirectory() as folder:
        theirs = ctranslate2_forms(model, sources, most, arguments.beam, arguments.threads, Path(folder))
        forms = {"ours": ours} | theirs
        clock = time.process_time if arguments.threads == 1 else time.perf_counter
        seconds: dict[str, list[float]] = {name: [] for name in forms}
        found = {}
        for _ in range(arguments.repetitions):
            for name, form in forms.items():
                start = clock()
                found[name] = form()
                seconds[name].append(clock() - start)
    written = statistics.fmean(len(ids) for ids in found["ours"])
    print(f"{len(sources)} sentences, beam {arguments.beam}, {arguments.threads} threads, {written:.1f} ids written")
    for name, times in seconds.items():
        print(f"{name}: best {min(times):.2f} s, median {statistics.median(times):.2f} s")
    if not theirs:
        print("CTranslate2 is not installed (pip install ctranslate2), so that there is nothing to compare with")
        return
    best = min(theirs, key=lambda name: min(seconds[name]))
    same = statistics.fmean(a == b for a, b in zip(found["ours"], found[best], strict=True))
    print(f"ours takes {min(seconds['ours']) / min(seconds[best]):.2f} times the time of {best}")
    print(f"{same:.1%} of the translations are the same")


if __name__ == "__main__":
    main()
