"""Independent computation of a run's metrics from its files, with numpy and scipy only.

Weights are read from safetensors and go through the models of `second_models`, in float64; text is read from the
prepared corpus's files. Where the package has a closed form, this has the definition: all pairs, all thresholds, all
signs. `compare` compares the results with metrics.json and arrays.npz. Of a run with its weights:

    python -m tests.evaluation.second_route RUN CORPUS [--links PATH] [--word-similarity NAME=PATH ...] [--sentences N]

Not measured here: `isotropy_linalg_eig`, which is what one routine of torch returns, and what training observed of its
gradients.
"""

import argparse
import csv
import json
import math
import re
import string
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import regex
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from safetensors.numpy import load_file
from scipy import sparse, stats
from scipy.special import logsumexp, softmax
from tests.evaluation.second_models import END, START, Weights, beam_search, decode, decoder, encode, greedy

UNKNOWN = 3
NOT_MEASURED = ("isotropy_linalg_eig",)
ROWS = 1000  # of a matrix of all pairs, held at a time
GPT2_WORDS = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class Data:
    """The files of a prepared corpus."""

    def __init__(self, folder):
        self.folder, self.manifest = Path(folder), json.loads((Path(folder) / "manifest.json").read_text())
        self.counts = np.load(self.folder / "counts.npy").astype(np.int64)
        self.symbols = json.loads((self.folder / "vocabulary.json").read_text())
        self.is_translation = (self.folder / "source_counts.npy").exists()
        if self.is_translation:
            self.source_counts = np.load(self.folder / "source_counts.npy").astype(np.int64)

    def ids(self, split):
        return np.load(self.folder / f"{split}{'.target' * self.is_translation}.npy").astype(np.int64)

    def lines(self, split, side):
        """Ids of each line, with its </s>."""
        ids = np.load(self.folder / f"{split}.{side}.npy").astype(np.int64)
        return np.split(ids, np.flatnonzero(ids == END) + 1)[:-1]

    def texts(self, name):
        return (self.folder / name).read_text(encoding="utf-8").split("\n")[:-1]


def measure(run, data, links=None, pairs=None, sentences=None):
    """Values by (metric, group, split), arrays by name, of a run that `evaluate` has measured.

    pairs: files of word pairs by name. sentences: translate only so many lines of a split (none: all).
    """
    run, data = Path(run), Data(data)
    record = json.loads((run / "metrics.json").read_text())
    settings, model = record["evaluation"]["settings"], record["training"]["settings"]["model"]
    sets = [group_set(entry, data.counts) for entry in settings["groups"]]
    found, arrays = of_data(data, sets), {}
    for checkpoint, name in (("best", "model"), ("last", "last")):
        w = Weights(run / f"{name}.safetensors", model)
        put(found, of_matrix(w.output, data.counts, sets, arrays, checkpoint), f"weights@{checkpoint}")
        if checkpoint == "best":
            of_neighbours(w.output, data, sets[0], settings, model, found, arrays, run)
        if not data.is_translation:
            of_text(w, data, sets, settings, checkpoint, found)
            continue
        test = of_pairs(w, data, sets, "test", checkpoint, found)
        if checkpoint == "best":
            of_pairs(w, data, sets, "valid", checkpoint, found)
            of_frequency(test, data.counts, settings, found)
    w = Weights(run / "model.safetensors", model)
    if data.is_translation:
        of_translations(w, run, data, settings, found, sentences)
        of_training(run, settings, data.counts, found)
        if settings.get("alignment"):
            of_alignment(w.output, data, sets[0], links, found)
    else:
        for name, path in (pairs or {}).items():
            of_words(w.output, data, name, path, found)
        of_continuations(w, data, settings["prefixes"], found)
    of_snapshots(run, sets[0], arrays)
    return found, arrays


def compare(run, found, arrays):
    """Relative distance of each recorded number from the independent one; and the numbers that are missing."""
    rows = json.loads((Path(run) / "metrics.json").read_text())["metrics"]
    distances, lacking = {}, []
    for row in rows:
        key = row["metric"], row["group"], row["split"]
        if key in found:
            distances[key] = distance(float(row["value"]), found[key])
        elif row["metric"] not in NOT_MEASURED:
            lacking.append(key)
    with np.load(Path(run) / "arrays.npz") as recorded:
        for name, values in arrays.items():
            if name in recorded and recorded[name].shape == np.shape(values):
                apart = [
                    distance(float(a), float(b)) for a, b in zip(recorded[name].flat, np.ravel(values), strict=True)
                ]
                distances["array", name, ""] = max(apart, default=0)
            else:
                lacking.append(("array", name, ""))
    return distances, lacking


def distance(one, other):
    """Distance relative to the first value, or to a hundredth if that is larger."""
    if (math.isnan(one) and math.isnan(other)) or one == other:
        return 0.0
    return abs(one - other) / max(0.01, abs(one)) if math.isfinite(one - other) else math.inf


# --- groups -----------------------------------------------------------------------------------------------------------


def group_set(entry, counts):
    """Labels and id ranges of three groups; whether they are the set without a suffix."""
    total, types = counts.sum(), len(counts)
    if "shares" in entry:
        first, second = round(entry["shares"][0] * types), round(sum(entry["shares"][:2]) * types)
    elif "bounds" in entry:
        first, second = entry["bounds"]
    elif "masses" in entry:
        reached = np.cumsum(counts) / total
        first, second = (
            next(i for i, mass in enumerate(reached) if mass >= wanted - 1e-9) + 1
            for wanted in np.cumsum(entry["masses"])[:2]
        )
    else:
        first, second = int(np.flatnonzero(counts / total >= entry["frequency"]).max()) + 1, entry["index"]
    labels = [name + entry.get("suffix", "") for name in entry["names"]]
    return labels, [range(first), range(first, second), range(second, types)], not entry.get("suffix")


def over_groups(sets, value, extra=("total", "nonrare")):
    """`value` (of ids' range) for each group, and of the set without a suffix for all and the first two."""
    found = {}
    for labels, parts, is_plain in sets:
        found |= {label: value(part) for label, part in zip(labels, parts, strict=True)}
        if is_plain:
            found["total"] = value(range(parts[2].stop)) if "total" in extra else None
            found["nonrare"] = value(range(parts[2].start)) if "nonrare" in extra else None
    return {label: value for label, value in found.items() if value is not None}


def put(found, values, split):
    """Add values by (metric, group) to those by (metric, group, split)."""
    found |= {(metric, group, split): float(value) for (metric, group), value in values.items()}


def of_data(data, sets):
    found = {}
    for split in ("train", "valid", "test"):
        ids = data.ids(split)
        mass = over_groups(sets, lambda part, ids=ids: np.mean((ids >= part.start) & (ids < part.stop)), ())
        put(found, {("group_mass", group): value for group, value in mass.items()}, f"{split}@data")
    put(found, {("group_types", group): v for group, v in over_groups(sets, len, ()).items()}, "train@data")
    different = set(data.ids("test").tolist())
    human = over_groups(sets, lambda part: len(different & set(part)), ("total",))
    put(found, {("uniq_human", group): value for group, value in human.items()}, "test@data")
    return found


# --- the output matrix ------------------------------------------------------------------------------------------------


def of_matrix(w, counts, sets, arrays, checkpoint):
    """Isotropy, similarities, singular values and separability of W (V x d)."""
    found = {}
    for name, value in over_groups(sets, lambda part: isotropies(w[part.start : part.stop])).items():
        for metric, one in zip(("isotropy_sign_free", "isotropy_lowest", "isotropy_highest"), value, strict=True):
            found[metric, name] = one
    inner = over_groups(sets, lambda part: mean_product(w[part.start : part.stop]), ())
    found |= {("inner_product", name): value for name, value in inner.items()}
    first, _, third = sets[0][1]
    rare, frequent = unit(w[third.start :]), unit(w[: first.stop])
    total = sum((part @ frequent.T).sum() for part in blocks(rare))
    found["cosine_rare_frequent", ""] = total / (len(rare) * len(frequent))
    # The pairs of a row with itself count only in the number of pairs.
    found["mean_cosine", "total"] = mean_product(unit(w)) * (len(w) - 1) / len(w)
    mean, length = (np.average(values, axis=0, weights=counts) for values in (w, np.linalg.norm(w, axis=1)))
    found["zipfian_centrality", "total"] = 1 - np.linalg.norm(mean) / length
    eigenvalues = np.linalg.eigvalsh(np.cov(w.T, aweights=counts, bias=True))
    found["zipfian_isotropy", "total"] = stats.entropy(eigenvalues.clip(0)) / np.log(w.shape[1])
    singular = np.linalg.svd(np.linalg.qr(w, mode="r"), compute_uv=False)
    found["singular_sum", "total"] = (singular / singular[0]).sum()
    if checkpoint == "best":
        arrays["best.singular_values"] = np.pad(singular / singular[0], (0, w.shape[1] - len(singular)))
    for name in ("svd", "pca"):
        points = plane(w, name == "pca")
        arrays[f"{checkpoint}.{name}"] = points
        found["separability", name] = separability(points[: first.stop], points[third.start :])
    return found


def isotropies(w):
    """I(W) over both signs of every eigenvector of W^T W, and the least and largest that one sign of each can give."""
    vectors = np.linalg.svd(np.linalg.qr(w, mode="r"), full_matrices=True)[2].T
    z = np.stack([logsumexp(w @ vectors, axis=0), logsumexp(-w @ vectors, axis=0)])  # 2 x d
    low, high = z.min(0), z.max(0)
    apart = high[:, None] - low[None, :]
    np.fill_diagonal(apart, -np.inf)
    widest = max(apart.max(), 0)
    # Of every least value, the nearest value of each other eigenvector that is not below it.
    narrowest = np.inf
    for start in z.ravel():
        nearest = np.where(low >= start, low, np.where(high >= start, high, np.inf))
        narrowest = min(narrowest, nearest.max() - start)
    return np.exp(z.min() - z.max()), np.exp(-widest), np.exp(-narrowest)


def mean_product(w):
    """Mean inner product of all pairs of different rows."""
    if len(w) < 2:
        return math.nan
    total = sum((part @ w.T).sum() for part in blocks(w)) - sum(row @ row for row in w)
    return total / (len(w) * (len(w) - 1))


def plane(w, centred):
    """Coordinates on the first two right singular vectors, the largest entry of each positive."""
    w = w - w.mean(0) if centred else w
    vectors = np.linalg.svd(np.linalg.qr(w, mode="r"))[2][:2]
    return w @ np.stack([v * np.sign(v[np.abs(v).argmax()]) for v in vectors]).T


def separability(a, b):
    """Best balanced accuracy of a border along the direction of linear discriminant analysis."""
    within = np.cov(a.T, bias=True) * len(a) + np.cov(b.T, bias=True) * len(b)
    direction = np.linalg.pinv(within) @ (b.mean(0) - a.mean(0))
    return 0.5 + stats.ks_2samp(a @ direction, b @ direction, alternative="greater", method="asymp").statistic / 2


def of_neighbours(w, data, groups, settings, model, found, arrays, run):
    """Neighbours of every rare type, and those of the queries that are recorded."""
    counts = data.counts
    if data.is_translation and model.get("tying", "three_way") == "three_way":
        counts = counts + data.source_counts
    known = [i for i in range(len(counts)) if counts[i] > 0 and i > UNKNOWN]
    third, u = groups[1][2], unit(w)
    k = min(settings["neighbours"], len(known) - 1)

    def nearest(query):
        cosines = u[known] @ u[query]
        order = [known[i] for i in np.argsort(-cosines, kind="stable") if known[i] != query][:k]
        return order, [u[query] @ u[i] for i in order]

    rare = [i for i in known if i >= third.start]
    hits = []
    for start in range(0, len(rare), ROWS):
        own = rare[start : start + ROWS]
        cosines = u[own] @ u[known].T
        cosines[np.arange(len(own)), np.searchsorted(known, own)] = -np.inf
        hits.append(np.array(known)[np.argpartition(-cosines, k - 1, axis=1)[:, :k]] >= third.start)
    found["rare_neighbours", groups[0][2], "weights@best"] = np.concatenate(hits).mean() if rare else math.nan
    with np.load(run / "arrays.npz") as recorded:
        queries = recorded["best.neighbour_queries"]
    near = [nearest(query) for query in queries]
    arrays["best.neighbour_cosines"] = np.array([cosines for _, cosines in near]).reshape(len(queries), k)
    if not data.is_translation:
        return
    share = {side: c / c.sum() for side, c in (("source", data.source_counts), ("target", data.counts))}
    language = np.sign(share["target"] - share["source"])
    others = [language[i] * language[query] < 0 for query, (ids, _) in zip(queries, near, strict=True) for i in ids]
    found["neighbours_other_language", "", "weights@best"] = np.mean(others) if others else math.nan
    for query in queries:
        ids = [i for i in known if i != query]
        rho = stats.spearmanr(-np.asarray(data.counts)[ids].astype(int), u[ids] @ u[query]).statistic
        found["cosine_rank_correlation", data.symbols[query], "weights@best"] = rho


def of_snapshots(run, groups, arrays):
    snapshots = load_file(run / "snapshots.safetensors")
    names = sorted(snapshots)
    if not names:
        return
    matrices = [snapshots[name].astype(np.float64) for name in names]
    parts = [[w[part.start : part.stop] for part in groups[1]] for w in matrices]
    arrays["snapshots.steps"] = [int(re.sub(r"\D", "", name)) for name in names]
    arrays["snapshots.isotropy_sign_free"] = [[isotropies(part)[0] for part in of] for of in parts]
    arrays["snapshots.inner_product"] = [[mean_product(part) for part in of] for of in parts]
    arrays["snapshots.cosine_rare_frequent"] = [np.mean(unit(of[2]) @ unit(of[0]).T) for of in parts]
    if len(names) <= 8:
        arrays["snapshots.svd"] = [plane(w, False) for w in matrices]
        arrays["snapshots.pca"] = [plane(w, True) for w in matrices]


def unit(w):
    norms = np.linalg.norm(w, axis=1, keepdims=True)
    return np.where(norms > 0, w / np.where(norms > 0, norms, 1), 0)


def blocks(w):
    return (w[start : start + ROWS] for start in range(0, len(w), ROWS))


# --- language models --------------------------------------------------------------------------------------------------


def of_text(w, data, sets, settings, checkpoint, found):
    """Perplexities and Uniq: windowed for `best` only, and in independent blocks."""
    passes = [("perplexity_plain", "test", 0)]
    if checkpoint == "best":
        passes += [("perplexity", "test", settings["window"]), ("perplexity_plain", "valid", 0)]
    for metric, split, window in passes:
        ids = data.ids(split)
        nll, predicted, masses, within = scores(w, ids, settings["block"], window, sets[0][1])
        put(found, {(metric, g): v for g, v in perplexities(nll, ids, sets).items()}, f"{split}@{checkpoint}")
        if metric == "perplexity":
            factors = {("group_mass", label): mass for label, mass in zip(sets[0][0], masses, strict=True)}
            values = perplexities(within, ids, sets[:1])
            factors |= {("perplexity_within", label): values[label] for label in sets[0][0]}
            put(found, factors, f"{split}@{checkpoint}")
        if (checkpoint, metric, split) == ("best", "perplexity_plain", "valid"):
            put(found, kept_gradient(w, ids[:32768], settings["block"], sets[:1]), "valid@best")
        if (metric, split) == ("perplexity_plain", "test"):
            different = set(predicted.tolist())
            uniq = over_groups(sets, lambda part, different=different: len(different & set(part)))
            put(found, {("uniq", group): value for group, value in uniq.items()}, f"{split}@{checkpoint}")


def scores(w, ids, block, window, parts):
    """Of every id, the first after </s>: negative log-likelihood, likeliest type, and likelihood among its group alone.

    Also the mean probability of each group of `parts`, ranges of ids.
    """
    text = np.append(END, ids)
    nll, predicted, within = np.empty(len(ids)), np.empty(len(ids), dtype=np.int64), np.empty(len(ids))
    masses = np.zeros(len(parts))
    step = block - window
    for start in range(0, len(ids), step):
        stop, begin = min(start + step, len(ids)), max(0, start - window)
        z = w.logits(decoder(w, text[begin:stop])[start - begin :])
        nll[start:stop] = logsumexp(z, axis=1) - z[np.arange(stop - start), ids[start:stop]]
        predicted[start:stop] = z.argmax(1)
        masses += [softmax(z, axis=1)[:, part.start : part.stop].sum() / len(ids) for part in parts]
        for row, place in zip(z, range(start, stop), strict=True):
            (part,) = [part for part in parts if ids[place] in part]
            within[place] = logsumexp(row[part.start : part.stop]) - row[ids[place]]
    return nll, predicted, masses, within


def kept_gradient(w, ids, block, sets):
    """The share of the squared length of softmax - one-hot that its projection on the columns of W has, by group."""
    text, energies = np.append(END, ids), np.empty((2, len(ids)))
    columns, _ = np.linalg.qr(w.output.astype(np.float64))
    for start in range(0, len(ids), block):
        here = slice(start, min(start + block, len(ids)))
        slopes = softmax(w.logits(decoder(w, text[here])), axis=1)
        slopes[np.arange(len(slopes)), ids[here]] -= 1
        energies[:, here] = (slopes**2).sum(1), ((slopes @ columns) ** 2).sum(1)

    def of(part):
        inside = (ids >= part.start) & (ids < part.stop)
        return energies[1, inside].sum() / energies[0, inside].sum() if inside.any() else math.nan

    return {("gradient_kept", group): value for group, value in over_groups(sets, of).items()}


def perplexities(nll, ids, sets):
    def of(part):
        inside = (ids >= part.start) & (ids < part.stop)
        return math.exp(nll[inside].mean()) if inside.any() else math.nan

    return over_groups(sets, of)


def of_continuations(w, data, prefixes, found):
    """Distinct tokens of greedy continuations."""
    number, length = prefixes["number"], prefixes["length"]
    ids = data.ids("test")
    starts = [round(i * (len(ids) - length) / max(1, number - 1)) for i in range(number)]
    texts = greedy(w, np.stack([ids[start : start + length] for start in starts]), prefixes["continuation"])
    uniq = [len(set(text.tolist())) for text in texts]
    put(found, {("generated_uniq", "mean"): np.mean(uniq)}, "test@best")
    examples = min(prefixes["examples"], number)
    for i in range(examples):
        place = round(i * (number - 1) / max(1, examples - 1))
        put(found, {("generated_uniq", f"example{i + 1}"): uniq[place]}, "test@best")


def of_words(w, data, name, path, found):
    """Spearman's rho of cosines and people's scores, and the share of words without unknown pieces."""
    lines = [re.split(r"\t| +", line.strip()) for line in Path(path).read_text().splitlines() if line.strip()]
    judged = [(a, b, float(score)) for a, b, score, *_ in lines if re.fullmatch(r"[\d.]+", score)]
    saved = json.loads((data.folder / "tokenizer.json").read_text())
    ids = {symbol: i for i, symbol in enumerate(data.symbols) if i > UNKNOWN}
    variants = {"": ""} if saved["name"] == "words" else {"": "", "_with_space": " "}
    for suffix, space in variants.items():

        def pieces(word, space=space):
            found = [word] if saved["name"] == "words" else byte_pieces(space + word, saved["merges"])
            return [ids.get(piece, UNKNOWN) for piece in found]

        words = {word: pieces(word) for a, b, _ in judged for word in (a, b)}
        vector = {word: w[of].mean(0) for word, of in words.items()}
        cosines = [
            vector[a] @ vector[b] / (np.linalg.norm(vector[a]) * np.linalg.norm(vector[b])) for a, b, _ in judged
        ]
        rho = 100 * stats.spearmanr(cosines, [score for *_, score in judged]).statistic
        covered = np.mean([UNKNOWN not in of for of in words.values()])
        put(
            found,
            {(f"word_similarity{suffix}", name): rho, (f"word_similarity_coverage{suffix}", name): covered},
            "weights@best",
        )


def byte_pieces(text, merges):
    """Byte-level BPE as GPT-2's, merge by merge; pieces as text."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    back, ranks = {letter: byte for byte, letter in letters.items()}, {tuple(m): i for i, m in enumerate(merges)}
    pieces = []
    for word in regex.findall(GPT2_WORDS, text):
        parts = [letters[byte] for byte in word.encode()]
        while candidates := [pair for pair in pairwise(parts) if pair in ranks]:
            pair, merged, i = min(candidates, key=ranks.get), [], 0
            while i < len(parts):
                here = tuple(parts[i : i + 2]) == pair
                merged.append("".join(pair) if here else parts[i])
                i += 1 + here
            parts = merged
        pieces += [bytes(back[letter] for letter in part).decode("utf-8", "backslashreplace") for part in parts]
    return pieces


# --- translation ------------------------------------------------------------------------------------------------------


def of_pairs(w, data, sets, split, checkpoint, found):
    """Perplexity given the true prefix; ids, and log-likelihoods with and without the output bias."""
    ids, full, plain = [], [], []
    for source, target in zip(data.lines(split, "source"), data.lines(split, "target"), strict=True):
        if max(len(source), len(target)) > w.settings["context"]:
            continue
        hidden = decode(w, np.append(START, target[:-1])[None], encode(w, source))[0]
        for kept, with_bias in ((full, True), (plain, False)):
            z = w.logits(hidden, with_bias)
            kept.append(logsumexp(z, axis=1) - z[np.arange(len(target)), target])
        ids.append(target)
    ids, full, plain = map(np.concatenate, (ids, full, plain))
    put(found, {("perplexity", g): v for g, v in perplexities(full, ids, sets).items()}, f"{split}@{checkpoint}")
    return ids, full, plain if w.bias is not None else None


def of_frequency(test, counts, settings, found):
    """Slopes of log-likelihood on unigram log-frequency: through bins, and through tokens."""
    bins = settings.get("calibration_bins", 0)
    ids, *parts = test
    x = np.log((counts + 1) / (counts + 1).sum())[ids]
    for group, nll in zip(("full", "without_bias"), parts, strict=True):
        if bins and nll is not None:
            kept = np.histogram(x, bins)[0] > 0
            means = [stats.binned_statistic(x, values, "mean", bins).statistic[kept] for values in (x, -nll)]
            slopes = np.polyfit(*means, 1)[0], stats.linregress(x, -nll).slope
            for metric, slope in zip(("calibration_slope", "calibration_token_slope"), slopes, strict=True):
                put(found, {(metric, group): slope}, "test@best")


def of_translations(w, run, data, settings, found, sentences):
    """Translations, and BLEU, chrF and F1 of those that are recorded."""
    beam, exponent = settings["beam"], settings["length_exponent"]
    words = Tokenizer13a()
    for split in data.manifest["reference_bleu"]:
        themselves = [plain_text(ids, data) for ids in data.lines(split, "target")]
        sides = [[words(line).split() for line in side] for side in (themselves, data.texts(f"{split}.target.txt"))]
        put(found, {("reference_bleu", ""): bleu(*sides, smooth=True)}, split)
    for split, texts in json.loads((run / "hypotheses.json").read_text()).items():
        sources, references = data.lines(split, "source")[:sentences], data.texts(f"{split}.target.txt")
        ours = [beam_search(w, source, beam, exponent) for source in sources]
        same = np.mean([plain_text(ids, data) == other for ids, other in zip(ours, texts[:sentences], strict=True)])
        put(found, {("same_translations", ""): same}, f"{split}@best")
        sides = [[words(line).split() for line in side] for side in (texts, references)]
        scores = {("bleu", ""): bleu(*sides, smooth=True), ("chrf", ""): chrf(texts, references)}
        put(found, scores | {("chrf++", ""): chrf(texts, references, word_order=2)}, f"{split}@best")
        buckets = settings.get("f1_buckets", ())
        if buckets:
            seen = Counter(word for line in data.texts("train.target.txt") for word in words(line).split())
            put(found, word_f1(*sides, seen, buckets), f"{split}@best")
        if settings.get("tokenised_bleu") and same == 1 and len(ours) == len(texts):
            put(found, {("bleu_tokenised", ""): tokenised_bleu(ours, split, data)}, f"{split}@best")


def tokenised_bleu(translated, split, data):
    """BLEU of Moses tokens with compounds split, of ids."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=data.manifest["languages"]["target"])
    lines, references = [joined(ids, data) for ids in translated], data.texts(f"{split}.target.tok.txt")
    if data.manifest["preparation"].get("tokenise", "none") == "none":
        aggressive = data.manifest["preparation"].get("aggressive", False)
        lines, references = (
            [moses.tokenize(line, aggressive_dash_splits=aggressive, return_str=True) for line in side]
            for side in (lines, data.texts(f"{split}.target.txt"))
        )
    sides = [
        [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line.replace("@@ ", "")).split() for line in side]
        for side in (lines, references)
    ]
    return bleu(*sides, smooth=False)


def joined(ids, data):
    """Ids of a translation as prepared text."""
    counts = data.counts + data.source_counts
    pieces = [data.symbols[i] for i in ids if i > UNKNOWN and counts[i] > 0]
    if data.manifest["tokenizer"]["name"] == "sentencepiece":
        return "".join(pieces).replace("▁", " ").strip(" ")
    return (" ".join(pieces) + " ").replace("@@ ", "").strip()


def plain_text(ids, data):
    """Ids of a translation as plain text."""
    from sacremoses import MosesDetokenizer

    if data.manifest["preparation"].get("tokenise", "none") == "none":
        return joined(ids, data)
    return MosesDetokenizer(lang=data.manifest["languages"]["target"]).detokenize(joined(ids, data).split())


def ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def bleu(hypotheses, references, smooth):
    """BLEU of lists of words; smooth: an order without a match counts as 1/2, the next such as 1/4, and so on."""
    precisions, halvings = [], 0
    for n in range(1, 5):
        found = [(ngrams(h, n), ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True)]
        matched, all_ = sum((h & r).total() for h, r in found), sum(h.total() for h, _ in found)
        if n == 1 and not matched:
            return 0.0
        if not all_:
            break
        if not matched:
            if not smooth:
                return 0.0
            halvings += 1
            matched = 0.5**halvings
        precisions.append(matched / all_)
    if len(precisions) < 4:
        return 0.0
    given, wanted = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * min(1, math.exp(1 - wanted / given)) * math.exp(np.log(precisions).mean())


def words_and_marks(line):
    """Words, with a mark at the end or else at the beginning of one as a word of its own."""
    for word in line.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            yield from (word[:-1], word[-1])
        elif len(word) > 1 and word[0] in string.punctuation:
            yield from (word[0], word[1:])
        else:
            yield word


def chrf(hypotheses, references, word_order=0):
    """chrF2: mean precision and recall of n-grams of 1 to 6 characters, blanks left out; chrF++ with those of words."""
    precisions, recalls = [], []
    pairs = list(zip(hypotheses, references, strict=True))
    orders = [(lambda line: "".join(line.split()), n) for n in range(1, 7)]
    orders += [(lambda line: list(words_and_marks(line)), n) for n in range(1, word_order + 1)]
    for parts, n in orders:
        found = [[ngrams(parts(line), n) for line in pair] for pair in pairs]
        matched = sum((h & r).total() for h, r in found)
        # As sacrebleu, a hypothesis counts where the reference is long enough to have any.
        given, wanted = sum(h.total() for h, r in found if r), sum(r.total() for _, r in found)
        if given and wanted:
            precisions.append(matched / given)
            recalls.append(matched / wanted)
    p, r = (np.mean(values) if values else 0 for values in (precisions, recalls))
    return 100 * 5 * p * r / (4 * p + r) if p + r else 0.0


def word_f1(hypotheses, references, seen, buckets):
    """F1 of words by how often training saw them."""
    edges = [*([0] if buckets[0] > 0 else []), *buckets, math.inf]
    found = {}
    for low, high in pairwise(edges):
        name = f"{low}+" if high == math.inf else str(low) if high == low + 1 else f"{low}-{high - 1}"
        sums = np.zeros(3)
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            h, r = (Counter(x for x in side if low <= seen[x] < high) for side in (hypothesis, reference))
            sums += (h & r).total(), h.total(), r.total()
        found["word_f1", name] = 2 * sums[0] / sums[1:].sum() if sums[1:].sum() else math.nan
    return found


def of_training(run, settings, counts, found):
    """Areas under the validation curves, and what training observed of predictions and of the output bias."""
    with open(run / "history.csv", newline="") as file:
        history = list(csv.DictReader(file))
    for metric in ("bleu", "chrf"):
        points = sorted((int(r["step"]), float(r["loss"])) for r in history if r["split"] == f"valid_{metric}")
        if not points:
            continue
        put(found, {(f"best_validation_{metric}", ""): max(value for _, value in points)}, "valid")
        points = points if points[0][0] == 0 else [(0, 0.0), *points]
        names = [f"early{i}" if i > 1 else "early" for i in range(1, len(settings.get("alc", ())) + 1)]
        for name, end in [*zip(names, settings.get("alc", ()), strict=True), ("full", points[-1][0])]:
            end = min(end, points[-1][0])
            # The mean over all steps of the linear interpolation between measurements.
            heights = np.interp(np.arange(end * 4 + 1) / 4, *zip(*points, strict=True))
            put(found, {(f"alc_{metric}", name): (heights[1:] + heights[:-1]).mean() / 2}, "valid")
    with np.load(run / "observations.npz") as file:
        seen = dict(file)
    if "divergence.steps" in seen:
        steps, references = seen["divergence.steps"], ("unigram", "uniform", "empirical")
        least = int(np.nanargmin(seen["divergence.unigram"]))
        put(found, {("nearest_to_unigram_step", ""): steps[least]}, "train")
        for name in references:
            values = seen[f"divergence.{name}"]
            put(found, {("divergence_nearest_to_unigram", name): values[least]}, "train")
            if steps[0] == 0:
                put(found, {("divergence_at_start", name): values[0]}, "train")
    unigram = (counts + 1) / (counts + 1).sum()
    known = {"norm": np.linalg.norm(np.log(unigram)), "divergence": np.log(len(counts)) - stats.entropy(unigram)}
    for name, scale in known.items():
        if f"output_bias.{name}" in seen:
            values = seen[f"output_bias.{name}"]
            change = max(abs(value - values[0]) for value in values) / scale
            for group, value in (("start", values[0]), ("end", values[-1]), ("change", change)):
                put(found, {(f"output_bias_{name}", group): value}, "train")


def of_alignment(w, data, groups, links, found):
    """AlignSim: cosine of each type's links and its softmax over all types."""
    sources, targets = data.lines("train", "source"), data.lines("train", "target")
    first, second = [], []
    for line, source, target in zip(Path(links).read_text().splitlines(), sources, targets, strict=True):
        for link in line.split():
            i, j = map(int, link.split("-"))
            first.append(source[i])
            second.append(target[j])
    types = len(w)
    one = sparse.coo_array((np.ones(len(first)), (first, second)), shape=(types, types)).tocsr()
    gold, u, values, of_others = (one + one.T).tocsr(), unit(w), [], []
    for start in range(0, types, ROWS):
        soft = np.exp(10 * (u[start : start + ROWS] @ u.T))
        soft /= soft.sum(1, keepdims=True)
        rows = gold[start : start + ROWS].toarray()
        with np.errstate(invalid="ignore"):
            values.append((rows * soft).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(soft, axis=1))
            own = np.arange(len(rows)), np.arange(start, start + len(rows))
            rows[own] = soft[own] = 0
            of_others.append((rows * soft).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(soft, axis=1))
    for name, parts in (("align_similarity", values), ("align_similarity_others", of_others)):
        whole = np.concatenate(parts)
        for label, part in zip([*groups[0], "total"], [*groups[1], range(types)], strict=True):
            some = whole[part.start : part.stop]
            linked = some[~np.isnan(some)]
            mean = linked.mean() if len(linked) else math.nan
            put(found, {(name, label): mean}, "weights@best")
            put(found, {(f"{name}_skipped", label): len(some) - len(linked)}, "weights@best")


def main():
    """Compare one run and print, for each metric, the largest distance and the number of values."""
    parser = argparse.ArgumentParser(description="The metrics of a run by a second route.")
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--links", type=Path)
    parser.add_argument("--word-similarity", nargs="*", default=[])
    parser.add_argument("--sentences", type=int)
    given = parser.parse_args()
    pairs = dict(pair.split("=", 1) for pair in given.word_similarity)
    found, arrays = measure(given.run, given.corpus, given.links, pairs, given.sentences)
    distances, lacking = compare(given.run, found, arrays)
    metrics = {}
    for (metric, group, split), apart in distances.items():
        metrics.setdefault(group if metric == "array" else metric, []).append((apart, group, split))
    for metric, values in sorted(metrics.items()):
        apart, group, split = max(values)
        print(f"{metric:35} {len(values):3} values, at most {apart:.1e} apart ({group or '-'} {split})")
    for key, value in found.items():
        if key[0] == "same_translations":
            print(f"{key[2]}: {value:.1%} of the translations are the same")
    print("not compared:", sorted({" ".join(key).strip() for key in lacking}) or "nothing")


if __name__ == "__main__":
    main()
