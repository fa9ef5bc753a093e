"""losses.svg: how hard each loss pushes a type down that is not the target, by its logit's distance to the target's.

python docs/losses.py
"""

from pathlib import Path

import torch

from raretok import CrossEntropy, LogitAdjustment, OutputLoss, Softminus, Threshold, Unlikelihood

# The target has logit 0, the type in question one of LOGITS, and so many others REST: every push is D at the type.
OTHERS, REST = 40, -3.0
LOGITS = torch.arange(-6.0, 4.01, 0.05, dtype=torch.float64)
# Counts in the training text, for what looks at them: the type in question is rare.
COUNTS = [400, 20, *[400] * OTHERS]
CURVES = {
    "cross-entropy": ({"loss": CrossEntropy()}, "#444444"),
    "threshold, margin 2": ({"loss": Threshold(margin=2.0)}, "#0072b2"),
    "softminus, margin 2": ({"loss": Softminus(margin=2.0)}, "#56b4e9"),
    "unlikelihood, type in the context": ({"penalty": Unlikelihood()}, "#d55e00"),
    "logit adjustment, type 20 times rarer": ({"loss": LogitAdjustment()}, "#009e73"),
}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 360, 56, 44, 12
HIGHEST = 2.0


def pushes(parts) -> torch.Tensor:
    """D at the type in question, by its logit."""
    z = torch.full((len(LOGITS), 2 + OTHERS), REST, dtype=torch.float64)
    z[:, 0], z[:, 1] = 0.0, LOGITS
    z.requires_grad_()
    # The logits are the hidden vectors, and the matrix is the identity.
    identity = torch.eye(z.shape[1], dtype=torch.float64)
    targets, seen = torch.zeros(len(z), 1, dtype=torch.int64), torch.ones(len(z), 1, dtype=torch.int64)
    criterion = OutputLoss(**parts, counts=COUNTS, reduction="sum")
    criterion(z[:, None], identity, targets, inputs=seen).backward()
    return z.grad[:, 1]


def place(x: float, y: float) -> str:
    """Where a point lies in the picture."""
    low, high = LOGITS[0].item(), LOGITS[-1].item()
    right = LEFT + (x - low) / (high - low) * (WIDTH - LEFT - 12)
    return f"{right:.1f},{HEIGHT - BOTTOM - y / HIGHEST * (HEIGHT - BOTTOM - TOP):.1f}"


def text(at: str, words: str, anchor: str = "middle", fill: str = "#222222") -> str:
    x, y = at.split(",")
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}">{words}</text>'


def picture() -> str:
    """The SVG."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        "<title>Gradient of five losses with respect to the logit of a type that is not the target</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for x in range(-6, 5, 2):
        lines.append(f'<path d="M{place(x, 0)} L{place(x, HIGHEST)}" stroke="#dddddd"/>')
        lines.append(text(place(x, -0.13), str(x)))
    for y in (0.0, 0.5, 1.0, 1.5, 2.0):
        lines.append(f'<path d="M{place(-6, y)} L{place(4, y)}" stroke="#dddddd"/>')
        lines.append(text(place(-6.15, y - 0.03), f"{y:.1f}", "end"))
    lines.append(text(place(-1, -0.25), "logit of the type minus that of the target"))
    for number, (name, (parts, colour)) in enumerate(CURVES.items()):
        points = " ".join(place(x, y) for x, y in zip(LOGITS.tolist(), pushes(parts).tolist(), strict=True))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(text(place(-5.8, 1.85 - 0.13 * number), name, "start", colour))
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("losses.svg").write_text(picture(), encoding="utf-8")
