"""The README's code does what it says."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_losses_alone():
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names = {}
    exec(code, names)
    assert names["weight"].grad.isfinite().all()
    assert names["hidden"].grad.abs().sum() > 0
