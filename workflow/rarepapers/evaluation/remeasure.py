"""The command `remeasure`: recompute metrics of recorded runs with the current code, without weights.

Every metric that follows from the kept matrices, tokens and translations is recomputed by the functions that evaluation
uses (`character_run`, `language_run`, `translation_run`). A recorded value was measured from the weights, so it stays
if the new one agrees within the compression error (`TOLERANCE`); else it is replaced, and its row names the code that
measured it. Metrics that need more data also stay.

BLEU, chrF, F1 of words, word similarity and AlignSim also need the prepared corpus, because references, words,
tokenizer and word links are third-party text, which is not recorded.
"""

import argparse
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from rarepapers.core.code_digest import code_of
from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path, read_arrays, read_json, write_json
from rarepapers.data.codec import codec_of
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.text.similarity_pairs import read_pairs
from rarepapers.evaluation import character_run, language, language_run, translation, translation_run
from rarepapers.evaluation.decoding import Decoding
from rarepapers.evaluation.evaluate_command import name_average, similarity_files
from rarepapers.evaluation.measurable import unpack_matrix
from rarepapers.evaluation.metric_rows import Found
from rarepapers.models import CHECKPOINTS

# Tolerated relative error of a metric due to compression; the absolute tolerance is a tenth of it.
TOLERANCE = {"exact": 1e-6, "float16": 1e-3, "coded": 2e-2, "tokens": 1e-3}
# With few tokens errors do not average out: three standard errors of 0.04 nats per token.
OF_FEW = 0.12
# Shares of neighbours get a larger tolerance: rounding the matrix swaps neighbours that are nearly equally far.
OF_NEIGHBOURS = ("rare_neighbours", "neighbours_other_language")
# Metrics of the matrix that need words of the corpus.
BEYOND = ("word_similarity", "align_similarity")
# Prefix of metrics of an untied input matrix.
INPUT = "input_"
# Arrays of a checkpoint that say which tokens are near which.
NEAREST = ("neighbour_queries", "neighbours", "neighbour_cosines")
# Settings of the first records of character models, which do not name theirs.
UNRECORDED = {"batch_size": 12, "drop_incomplete": True, "examples": 64, "neighbours": 3}
# Depends on the arbitrary signs of eigenvectors, which differ between machines, so recorded values always stay.
OF_CHANCE = ("isotropy_linalg_eig",)


@dataclass(frozen=True)
class KeptCorpus:
    """The part of a run's corpus that its arrays hold, with the interface of `data.prepared_corpus.Corpus`."""

    name: str
    symbols: tuple[str, ...]
    counts: np.ndarray
    source_counts: np.ndarray | None
    special: tuple[int, ...]

    @property
    def types(self) -> int:
        """Vocabulary size V."""
        return len(self.counts)


@dataclass
class Remeasured:
    """Recomputed metrics of one run.

    found: rows and arrays. tolerances: of each row of `found`, in order. whole: splits all of whose rows are in
    `found`, except metrics with a prefix in `beyond`. missing: reasons why something could not be recomputed.
    """

    found: Found = field(default_factory=Found)
    tolerances: list[float] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    beyond: tuple[str, ...] = BEYOND
    missing: list[str] = field(default_factory=list)

    def add(self, rows: list[dict], kind: str, arrays: Mapping[str, np.ndarray] | None = None) -> None:
        """Add arrays, and rows with the precision `kind` of `TOLERANCE`."""
        self.found.add((rows, arrays or {}))
        few = OF_FEW if kind == "tokens" else 0
        for row in rows:
            kept_as = "coded" if row["metric"] in OF_NEIGHBOURS and kind == "float16" else kind
            self.tolerances.append(max(TOLERANCE[kept_as], few / math.sqrt(max(row["n"], 1))))


@dataclass(frozen=True)
class Change:
    """A changed row: recorded value (None: not recorded) and new value (None: no longer measured)."""

    run: str
    row: dict
    before: float | str | None
    after: float | str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `remeasure`."""
    parser.add_argument("--recorded", type=Path, required=True, help="recorded results, such as results/recorded/small")
    parser.add_argument(
        "--data", type=Path, help="prepared corpora, such as results/small/data, for translations (default: none)"
    )
    parser.add_argument(
        "--word-similarity", nargs="*", default=[], metavar="NAME=PATH", help="word pairs, as for `evaluate`"
    )


def main(arguments: argparse.Namespace) -> None:
    """Remeasure every recorded run, write the changes, and print them."""
    torch.set_num_threads(1)
    files = similarity_files(arguments.word_similarity)
    folders = sorted(path.parent for path in arguments.recorded.glob("runs/*/*/*/metrics.json"))
    if not folders:
        raise UserError(f"{arguments.recorded} holds no recorded run; `make record` keeps those of a scale")
    changes, missing = [], defaultdict(list)
    for folder in folders:
        name = folder.relative_to(arguments.recorded / "runs").as_posix()
        more, lacking = remeasure(folder, name, arguments.data, files)
        changes += more
        for reason in lacking:
            missing[reason].append(name)
    print(report(changes, missing, len(folders)))


def remeasure(
    folder: Path, name: str, data: Path | None = None, files: Mapping[str, Path] | None = None
) -> tuple[list[Change], list[str]]:
    """Remeasure the recorded run in `folder` and write the changes; returns them and what could not be measured.

    data: folder of prepared corpora. files: word pairs by set.
    """
    record = read_json(folder / "metrics.json")
    arrays = read_arrays(folder / "arrays.npz")
    path = folder / "measurable.npz"
    kept = read_arrays(path) if path.exists() else {}
    again = _of_characters(record, arrays, kept)
    if again is None and not kept:
        return [], ["all metrics, which need measurable.npz"]
    if again is None:
        hypotheses = folder / "hypotheses.json"
        texts = read_json(hypotheses) if hypotheses.exists() else {}
        again = _of_vocabulary(record, arrays, kept, texts, data, files or {})
    name_average(again.found.rows, record["training"])
    changes = merge(record["metrics"], again, name)
    newer = changed_arrays(arrays, again.found.arrays)
    if newer:
        # Arrays of language models are compressed, as by `evaluate`.
        save = np.savez if "symbols" in arrays else np.savez_compressed
        with atomic_path(folder / "arrays.npz") as temporary:
            save(temporary, **(arrays | newer))
    if changes or newer:
        digest = code_of("rarepapers.evaluation.remeasure")
        for change in changes:
            change.row["sources"] = digest
        record.setdefault("evaluation", {})["remeasured"] = {"sources": digest, "arrays": sorted(newer)}
        write_json(folder / "metrics.json", record)
    return changes, again.missing


def merge(rows: list[dict], again: Remeasured, run: str) -> list[Change]:
    """Merge recomputed metrics into the recorded `rows`; returns the changes."""
    places = {_key(row): i for i, row in enumerate(rows)}
    changes, fresh = [], set()
    for row, tolerance in zip(again.found.rows, again.tolerances, strict=True):
        place = places.get(_key(row))
        fresh.add(_key(row))
        if place is None:
            rows.append(row)
            changes.append(Change(run, row, None, row["value"]))
        elif row["metric"] in OF_CHANCE:
            continue
        elif not _same(rows[place], row, tolerance):
            changes.append(Change(run, row, rows[place]["value"], row["value"]))
            rows[place] = row
    for old in list(rows):
        if old["split"] in again.whole and _key(old) not in fresh and not old["metric"].startswith(again.beyond):
            rows.remove(old)
            changes.append(Change(run, old, old["value"], None))
    return changes


def changed_arrays(arrays: Mapping[str, np.ndarray], again: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of `again` that are missing in `arrays` or differ by more than the compression error.

    Arrays that `make record` leaves out, and ids of equally near neighbours, do not count as differences. Queries,
    neighbours and their cosines belong together: if one of them differs, all are returned.
    """
    found = {}
    for name, values in again.items():
        old = arrays.get(name)
        if old is None or old.shape != values.shape:
            found[name] = values
        elif np.issubdtype(values.dtype, np.integer):
            if name.endswith(".neighbour_queries") and not np.array_equal(values, old):
                found[name] = values
        else:
            scale = np.max(np.abs(old), initial=0, where=np.isfinite(old)) or 1
            if not np.allclose(values, old, rtol=0, atol=TOLERANCE["coded"] * scale, equal_nan=True):
                found[name] = values
    for name in list(found):
        checkpoint, _, part = name.rpartition(".")
        if part in NEAREST:
            found |= {other: again[other] for other in (f"{checkpoint}.{one}" for one in NEAREST) if other in again}
    return found


def report(changes: list[Change], missing: Mapping[str, list[str]], runs: int) -> str:
    """Numbers of changed, new and removed values by metric, and what could not be remeasured, as text."""
    kinds = defaultdict(list)
    for change in changes:
        kind = "new" if change.before is None else "no longer measured" if change.after is None else "changed"
        kinds[change.row["metric"], kind].append(change.run)
    lines = [
        f"{metric}: {kind}, {len(of)} value(s) of {len(set(of))} run(s)" for (metric, kind), of in sorted(kinds.items())
    ]
    lines += [f"not remeasured in {len(names)} run(s): {what}: {', '.join(names)}" for what, names in missing.items()]
    return "\n".join([*lines, f"{len({change.run for change in changes})} of {runs} recorded runs changed"])


def _of_characters(record: Mapping, arrays: Mapping, kept: Mapping) -> Remeasured | None:
    """Remeasure a character model, whose output matrices are among its arrays; None for other models."""
    if "symbols" not in arrays:
        return None
    settings, again = record.get("evaluation", {}).get("settings", UNRECORDED), Remeasured()
    rows, more = character_run.matrix_rows(arrays, kept, settings)
    again.whole = [f"weights@{checkpoint}" for checkpoint in CHECKPOINTS]
    again.add([row for row in rows if not row["metric"].startswith(INPUT)], "exact", more)
    again.add([row for row in rows if row["metric"].startswith(INPUT)], "float16")
    model = record["training"]["settings"]["model"]
    if kept:
        again.add(character_run.kept_rows(arrays, kept, model["context"], settings), "tokens")
    else:
        again.missing.append("metrics of the text, whose tokens were not kept")
        if not model.get("tied", True):
            again.beyond = (*BEYOND, INPUT)
            again.missing.append("metrics of the input matrix, which was not kept")
    return again


def _of_vocabulary(
    record: Mapping, arrays: Mapping, kept: Mapping, texts: Mapping, data: Path | None, files: Mapping[str, Path]
) -> Remeasured:
    """Remeasure a language or translation model."""
    again, training = Remeasured(whole=["weights@best"]), record["training"]
    corpus = KeptCorpus(
        training["settings"]["corpus"]["name"],
        tuple(arrays["vocabulary"].tolist()),
        arrays["counts"],
        arrays.get("source_counts"),
        tuple(kept["special"].tolist()),
    )
    prepared = _prepared(data, corpus.name, training["data"], again)
    weights = unpack_matrix(kept, "best.output")
    matrix, kind = torch.from_numpy(weights.astype(np.float32)), "float16"
    if "best.output.codes" in kept:
        kind = "coded"
    settings = record["evaluation"]["settings"]
    groups = language_run.group_sets(settings, corpus)
    if corpus.source_counts is None:
        again.add(language_run.kept_rows(kept, groups, settings), "tokens")
        rows, more = language_run.matrix_rows(matrix, weights, corpus, groups, settings, "best")
        if prepared and files:
            pairs = {name: read_pairs(path) for name, path in files.items() if name in settings["word_similarity"]}
            rows += language.similarity_rows(weights, prepared, codec_of(prepared), pairs)
    else:
        found, more = translation_run.kept_rows(kept, corpus.counts, groups, settings)
        again.add(found, "tokens", more)
        tying = training["settings"]["model"].get("tying")
        rows, more = translation_run.matrix_rows(matrix, weights, corpus, groups, settings, tying, "best")
        if prepared and settings.get("alignment"):
            links = data / ".." / "alignments" / corpus.name / "train.links"
            if links.exists():
                rows += translation.alignment_rows(weights, groups[0], prepared, links, "cpu")
        if prepared:
            again.add(translation.reference_rows(prepared, ("valid", *texts)), "exact")
        if prepared and texts:
            again.add(_of_translations(texts, prepared, settings), "exact")
    again.add(rows, kind, more)
    return again


def _of_translations(texts: Mapping[str, list[str]], corpus, settings) -> list[dict]:
    """BLEU, chrF and F1 of the recorded translations; corpus: prepared, its target side is the reference."""
    rows, decoding = [], Decoding(settings["beam"], settings["length_exponent"])
    for split, lines in texts.items():
        references = load_pairs(corpus, split).texts("target")
        rows += translation.plain_rows(lines, references, corpus, decoding, f"{split}@best")
        if settings.get("f1_buckets"):
            frequencies = translation.target_frequencies(corpus)
            rows += translation.f1_rows(lines, references, frequencies, settings, corpus, f"{split}@best")
    return rows


def _prepared(data: Path | None, name: str, sha256: str, again: Remeasured):
    """The prepared corpus of a run, or None if it is missing or different."""
    path = data / name / "manifest.json" if data else None
    corpus = load_manifest(path) if path and path.exists() else None
    if corpus is None or corpus.sha256 != sha256:
        again.missing.append("translations and words, whose prepared corpus is missing")
        return None
    return corpus


def _key(row: Mapping) -> tuple[str, str, str]:
    return row["metric"], row["group"], row["split"]


def _same(recorded: Mapping, row: Mapping, tolerance: float) -> bool:
    """Whether two rows agree: n, signature except the version, and the value within the tolerance."""
    before, after = float(recorded["value"]), float(row["value"])
    close = math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance / 10) or before == after
    close |= math.isnan(before) and math.isnan(after)
    unversioned = [re.sub(r"\|raretok:[^|]*", "", one["signature"]) for one in (recorded, row)]
    return close and recorded["n"] == row["n"] and unversioned[0] == unversioned[1]
