"""Independent numpy implementation of both models and their decoding, in float64, one sentence at a time.

Shapes: T positions, S source positions, k hypotheses, d width, V types.
"""

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf, log_softmax, softmax

START, PAD, END = 0, 1, 2


class Weights:
    """The weights in a safetensors file, float64, and the settings of their model."""

    def __init__(self, path, settings):
        self.tensors = {name: value.astype(np.float64) for name, value in load_file(path).items()}
        self.settings = settings
        self.width, self.heads = settings["width"], settings["heads"]
        embedding = self.tensors["token_embedding.weight"]
        self.output = self.tensors.get("output_embedding", embedding)
        self.bias = self.tensors.get("output_bias")

    def logits(self, hidden, with_bias=True):
        """T x V of hidden vectors T x d."""
        z = hidden @ self.output.T
        return z if self.bias is None or not with_bias else z + self.bias

    def embed(self, ids, table="token_embedding", positions="position_embedding"):
        """Vectors (... x T x d) that enter the first block, of ids (... x T)."""
        x = self.tensors[f"{table}.weight"][ids]
        if self.settings.get("scale_embedding", "encoder_layers" in self.settings):
            x = x * self.width**0.5
        length = x.shape[-2]
        learned = self.tensors.get(f"{positions}.weight")
        return x + (sinusoids(length, self.width) if learned is None else learned[:length])

    def linear(self, name, x):
        y = x @ self.tensors[f"{name}.weight"].T
        return y + self.tensors.get(f"{name}.bias", 0)

    def norm(self, name, x):
        if f"{name}.weight" not in self.tensors:
            return x
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x * self.tensors[f"{name}.weight"] + self.tensors.get(f"{name}.bias", 0)

    def attend(self, name, query, key, value, causal):
        """Attention of all heads: queries ... x T x d, keys and values ... x S x d."""
        size, parts = self.width // self.heads, []
        for start in range(0, self.width, size):
            part = slice(start, start + size)
            scores = query[..., part] @ np.swapaxes(key[..., part], -1, -2) / size**0.5
            if causal:
                scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
            parts.append(softmax(scores, axis=-1) @ value[..., part])
        return self.linear(f"{name}.projection", np.concatenate(parts, axis=-1))

    def attend_self(self, name, x, causal):
        return self.attend(name, *np.split(self.linear(f"{name}.qkv", x), 3, axis=-1), causal)

    def attend_source(self, name, x, memory):
        query = self.linear(f"{name}.query", x)
        return self.attend(name, query, *np.split(self.linear(f"{name}.key_value", memory), 2, axis=-1), False)

    def feed_forward(self, name, x, activation):
        x = self.linear(f"{name}.expansion", x)
        x = np.maximum(x, 0) if activation == "relu" else x * (1 + erf(x / 2**0.5)) / 2
        return self.linear(f"{name}.projection", x)


def sinusoids(length, width):
    """fairseq's table: sines, then cosines; the first position takes the angle 2."""
    half = width // 2
    angles = np.outer(np.arange(length) + 2, 10_000 ** (-np.arange(half) / (half - 1)))
    return np.concatenate([np.sin(angles), np.cos(angles), np.zeros((length, width % 2))], axis=1)


def decoder(w, ids):
    """Hidden vectors (... x T x d) of a decoder, of ids (... x T)."""
    x = w.embed(ids)
    for i in range(w.settings["layers"]):
        at = f"blocks.{i}"
        x = x + w.attend_self(f"{at}.attention", w.norm(f"{at}.attention_norm", x), causal=True)
        x = x + w.feed_forward(f"{at}.feed_forward", w.norm(f"{at}.feed_forward_norm", x), "gelu")
    return w.norm("final_norm", x)


def encode(w, source):
    """Memory (S x d) of one sentence's ids."""
    shared = "source_embedding.weight" not in w.tensors
    x = w.embed(source, "token_embedding" if shared else "source_embedding", "source_position_embedding")
    for i in range(w.settings["encoder_layers"]):
        at = f"encoder.{i}"
        x = _add(w, f"{at}.attention_norm", x, lambda y, at=at: w.attend_self(f"{at}.attention", y, causal=False))
        x = _feed(w, at, x)
    return w.norm("encoder_norm", x)


def decode(w, inputs, memory):
    """Hidden vectors (k x T x d) of an encoder-decoder's target ids (k x T), given one sentence's memory."""
    x = w.embed(inputs)
    for i in range(w.settings["decoder_layers"]):
        at = f"decoder.{i}"
        x = _add(w, f"{at}.attention_norm", x, lambda y, at=at: w.attend_self(f"{at}.attention", y, causal=True))
        at_source = f"{at}.cross_attention"
        x = _add(w, f"{at_source}_norm", x, lambda y, name=at_source: w.attend_source(name, y, memory))
        x = _feed(w, at, x)
    return w.norm("decoder_norm", x)


def greedy(w, prefix, length):
    """`length` greedy ids after each prefix (k x T)."""
    text = prefix
    for _ in range(length):
        hidden = decoder(w, text[:, -w.settings["context"] :])[:, -1]
        text = np.concatenate([text, w.logits(hidden).argmax(1)[:, None]], axis=1)
    return text[:, prefix.shape[1] :]


def beam_search(w, source, beam, exponent):
    """The best translation of one sentence's ids (with </s>), without </s>."""
    context = w.settings["context"]
    source = source if len(source) <= context else np.append(source[: context - 1], source[-1])
    memory, limit = encode(w, source), min(len(source) * 12 // 10 + 10, context)
    hypotheses, closed, best = [(0.0, [START])], 0, (-np.inf, [])
    for length in range(1, limit + 1):
        written = np.array([ids for _, ids in hypotheses])
        log_p = log_softmax(w.logits(decode(w, written, memory)[:, -1]), axis=1)
        log_p[:, [START, PAD]] = -np.inf
        if length == limit:
            log_p[:, np.arange(log_p.shape[1]) != END] = -np.inf
        total = log_p + np.array([score for score, _ in hypotheses])[:, None]
        order = np.argsort(-total, axis=None, kind="stable")[: 2 * beam]
        following = []
        for place, flat in enumerate(order):
            parent, type_ = divmod(int(flat), total.shape[1])
            score = float(total[parent, type_])
            if type_ != END:
                following.append((score, [*hypotheses[parent][1], type_]))
            elif place < beam and np.isfinite(score):
                closed += 1
                if score / length**exponent > best[0]:
                    best = score / length**exponent, hypotheses[parent][1][1:]
        if closed >= beam:
            break
        hypotheses = following[:beam]
    return best[1]


def _add(w, norm, x, part):
    if w.settings.get("norm", "pre") == "pre":
        return x + part(w.norm(norm, x))
    return w.norm(norm, x + part(x))


def _feed(w, at, x):
    activation = w.settings.get("activation", "relu")
    return _add(w, f"{at}.feed_forward_norm", x, lambda y: w.feed_forward(f"{at}.feed_forward", y, activation))
