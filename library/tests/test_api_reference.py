"""The API reference of `make docs`."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import raretok

pytest.importorskip("pdoc")
ROOT = Path(__file__).parents[2]


def test_the_reference_has_every_public_name(tmp_path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (words,) = re.findall(r"^docs:.*\n\t@\.venv/bin/python (.*) docs-site && ", makefile, flags=re.MULTILINE)
    command = [sys.executable, *shlex.split(words), str(tmp_path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    # pdoc warns if it cannot parse a docstring.
    assert "warn" not in done.stdout.lower()
    page = (tmp_path / "raretok.html").read_text(encoding="utf-8")
    assert [name for name in raretok.__all__ if f'id="{name}"' not in page] == []
    assert "Arguments" in page
    # The page loads nothing from elsewhere.
    assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]*\.(?:js|css)', page)
