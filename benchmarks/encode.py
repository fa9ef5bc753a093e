"""Encoding of language corpora: time on WikiText-2, and peak memory on a text of any size.

    python benchmarks/encode.py [--mirror ../shared/mirror] [--merges vocab.bpe] [--megabytes 500] [--folder /tmp]

With a mirror it times the command on WikiText-2 with each tokenizer, including the start of Python, on two threads
(bar: 15 s). With --megabytes it generates a training text of that size with a vocabulary of a million words, far more
than WikiText-103's 268,000, and encodes it. Peak memory is the largest resident set of the process (bar: 2 GiB).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from dry_run import ROOT, peak_gib

from rarepapers.data.catalogue import SPLITS, corpus_params, load_corpora

THREADS = 2
# Words of the generated text: number of distinct ones; ranks are drawn with probability proportional to 1 / (rank +
# RANK).
WORDS, RANK, LINE = 1_000_000, 3, 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", type=Path, help="data mirror with wikitext-2")
    parser.add_argument("--merges", type=Path, help="GPT-2's vocab.bpe")
    parser.add_argument("--megabytes", type=int, default=0, help="size of a generated text to encode")
    parser.add_argument("--folder", type=Path, help="where to put texts and results: four times the text's size")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        if arguments.mirror:
            texts = {split: arguments.mirror / f"wikitext-2/wikitext-2/wiki.{split}.tokens" for split in SPLITS}
            corpora = ["wikitext-2", "wikitext-2_words"] + ["wikitext-2_gpt2"] * bool(arguments.merges)
            for corpus in corpora:
                merges = [arguments.merges] if corpus == "wikitext-2_gpt2" else []
                runs = [run(corpus, texts, Path(folder), merges) for _ in range(arguments.repetitions)]
                print(describe(corpus, texts["train"], min(runs), arguments.repetitions), flush=True)
        if arguments.megabytes:
            text = Path(folder) / "text"
            generate(text, arguments.megabytes * 10**6)
            # The smaller splits have one word each, so that the training text dominates.
            (Path(folder) / "small").write_text("a\n")
            texts = {"train": text, "valid": Path(folder) / "small", "test": Path(folder) / "small"}
            for corpus in ("wikitext-103_trained", "wikitext-103_words"):
                print(describe(corpus, text, run(corpus, texts, Path(folder), []), 1), flush=True)


def run(corpus: str, texts: dict[str, Path], folder: Path, merges: list[Path]) -> tuple[float, float, int]:
    """Encode with an entry of config/corpora.yaml; returns wall seconds, peak resident GiB and training tokens."""
    output = folder / corpus
    entry = corpus_params(load_corpora(ROOT / "config/corpora.yaml"), corpus)
    command = [sys.executable, "-m", "rarepapers", "encode", "--corpus", corpus, "--entry", entry]
    command += ["--output", output, "--published", *merges]
    for split, text in texts.items():
        command += [f"--{split}", text]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow"), "RAYON_NUM_THREADS": str(THREADS)}
    began = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], env=environment)
    # wait4 gives this child's own peak; RUSAGE_CHILDREN gives the maximum over all so far.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"encoding {corpus} failed")
    tokens = json.loads((output / "manifest.json").read_text())["splits"]["train"]["tokens"]
    return seconds, peak_gib(usage), tokens


def describe(corpus: str, text: Path, measured: tuple[float, float, int], repetitions: int) -> str:
    seconds, gib, tokens = measured
    size = text.stat().st_size / 1e6
    best = f", best of {repetitions}" if repetitions > 1 else ""
    return f"{corpus:22} {size:6.1f} MB {tokens:12,} tokens  {seconds:6.1f} s{best}  peak {gib:.2f} GiB"


def generate(path: Path, size: int) -> None:
    """Write about `size` bytes of words in lines, equal for equal versions of numpy."""
    generator = np.random.default_rng(1)
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgkjqxz", dtype="S1")
    # More common words are shorter.
    lengths = np.clip(np.log2(np.arange(WORDS) + 2) / 2 + generator.integers(0, 4, WORDS), 1, 14).astype(int)
    drawn = letters[np.minimum(generator.geometric(0.12, lengths.sum()) - 1, len(letters) - 1)].tobytes().decode()
    ends = np.cumsum(lengths)
    words = np.array([drawn[end - length : end] for end, length in zip(ends, lengths, strict=True)], dtype=object)
    bounds = np.cumsum(1 / (np.arange(WORDS) + RANK))
    written = 0
    with path.open("w", encoding="utf-8") as stream:
        while written < size:
            ranks = np.searchsorted(bounds, generator.random(LINE * 10_000) * bounds[-1])
            lines = "".join(" ".join(line) + "\n" for line in words[ranks].reshape(-1, LINE))
            stream.write(lines)
            written += len(lines)


if __name__ == "__main__":
    main()
