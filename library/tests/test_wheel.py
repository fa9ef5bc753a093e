"""The wheel: one top-level package, which works if no package of the pipeline can be imported."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[1]
# Importing any of these fails.
PIPELINE = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    names = {"snakemake", "pandas", "yaml", "matplotlib", "seaborn", "tokenizers", "sentencepiece",
             "sacrebleu", "sacremoses", "subword_nmt", "pooch", "requests", "scipy", "jinja2", "tqdm", "filelock"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"no module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
sys.path[:] = [path for path in sys.path if path != CHECKOUT]  # not the editable installation
sys.path.insert(0, INSTALLED)
"""
EXAMPLE = """
import torch
import raretok
assert raretok.__file__.startswith(INSTALLED)
from raretok import AGG, AGPS, CosReg, FrequencyGroups, OutputLoss, Threshold, UnigramDivergence, isotropy

hidden = torch.randn(4, 32, 16, requires_grad=True)
weight = torch.randn(100, 16, requires_grad=True)
targets = torch.randint(100, (4, 32))
counts = 10_000 // torch.arange(1, 101)
for parts in ({"gate": AGG(alpha=1.0, memory=10)}, {"gate": AGPS(30, 400, 200), "penalty": CosReg()},
              {"loss": Threshold(margin=1.0), "penalty": UnigramDivergence(0.1)}):
    OutputLoss(**parts, counts=counts)(hidden, weight, targets).backward()
assert weight.grad.isfinite().all()
FrequencyGroups(counts).perplexity(torch.rand(128), targets.flatten())
isotropy(weight)
print("done")
"""


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of a copy of the library, because a build writes next to its sources."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".*")
    shutil.copytree(LIBRARY, folder / "library", ignore=ignored)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(folder / "library"))
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_has_the_package_with_its_types_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    sources = {path.relative_to(LIBRARY).as_posix() for path in (LIBRARY / "raretok").rglob("*.py*") if path.is_file()}
    sources = {name for name in sources if "__pycache__" not in name} | {"raretok/py.typed"}
    information = f"{wheel.name.split('-py3')[0]}.dist-info"
    assert {name for name in names if not name.startswith(f"{information}/")} == sources
    assert {name.partition("/")[0] for name in names} == {"raretok", information}
    assert "Provides-Extra: hf" in metadata
    assert "# raretok" in metadata.partition("\n\n")[2]


def test_the_index_would_take_the_wheel(wheel):
    pytest.importorskip("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_wheel_works_without_the_pipelines_packages(wheel, tmp_path):
    installed = tmp_path / "installed"
    pip("install", "--no-deps", "--target", str(installed), str(wheel))
    code = f"INSTALLED, CHECKOUT = {str(installed)!r}, {str(LIBRARY)!r}\n{PIPELINE}{EXAMPLE}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env={"HOME": "/"})
    assert done.stdout == "done\n", done.stderr
