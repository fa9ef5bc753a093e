"""Write the rules' conda environments, container recipes and requirements-report.txt from requirements.txt.

    python envs/conda.py

Run this where requirements.txt is installed, because the dependencies of packages are read from their metadata. Each
environment of NEEDS holds the packages that its commands import, and their dependencies; raretok.yaml holds all pins,
for Snakemake and any rule. Conda installs Python and pip, and pip the same pinned packages as `make` does, so there is
one list of versions. Snakemake uses the environments with --software-deployment-method conda; otherwise the rules run
in the environment that runs Snakemake.
"""

import re
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

FOLDER = Path(__file__).parent
PYTHON = "3.11"
# The multi-platform image python:3.11-slim of one day; `docker buildx imagetools inspect` shows that of today.
IMAGE = f"python:{PYTHON}-slim@sha256:db3ff2e1800a8581e2c48a27c3995339d47bdf046da21c7627accd3d51053a93"
HEAD = f"""# Written by envs/conda.py from requirements.txt; edit that and run it again.
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python={PYTHON}
  - pip
  - pip:
"""
PIECES = ["tokenizers", "sentencepiece", "subword-nmt", "sacremoses"]
FETCHING = ["pooch", "requests", "tqdm", "filelock"]
# Packages that the commands of each kind of rule import; tests/test_environments.py compares them with the imports.
NEEDS = {
    "data": ["numpy", "sacrebleu", "PyYAML", *PIECES, *FETCHING],
    "align": ["numpy", "scipy"],
    "train": ["torch", "numpy", "safetensors", "sacrebleu", "PyYAML", *PIECES, *FETCHING],
    "evaluate": ["torch", "numpy", "scipy", "safetensors", "sacrebleu", "filelock", "PyYAML", *PIECES],
    "report": [
        "numpy",
        "pandas",
        "scipy",
        "matplotlib",
        "seaborn",
        "Jinja2",
        "MarkupSafe",
        "markdown-it-py",
        "pillow",
        "PyYAML",
    ],
}
# Packages that render a report of finished runs: those of the `report` rules, and Snakemake.
RENDERING = ["snakemake", "psutil", "Pygments", *NEEDS["report"]]
PINNED = """# Written by envs/conda.py from requirements.txt; edit that and run it again.
# All that `make recorded` and `make finished` need, without torch: envs/setup.sh report.
"""
CONTAINER = f"""# Written by envs/conda.py. From the project's folder:
#   docker build -f envs/Containerfile -t raretok .        (or podman)
#   docker run --gpus all --user "$(id -u):$(id -g)" -v "$PWD":/work raretok snakemake --cores all
# The image holds the pinned packages; the workflow is the one in the folder it is started in.
FROM {IMAGE}
# A compiler for torch.compile on a GPU, and git for the record of the commit.
RUN apt-get update && apt-get install --yes --no-install-recommends git gcc g++ libc6-dev && rm -rf /var/lib/apt/lists/*
COPY envs/requirements.txt /opt/requirements.txt
RUN pip install --no-cache-dir --requirement /opt/requirements.txt
ENV PYTHONUNBUFFERED=1 HOME=/tmp
WORKDIR /work
USER nobody
"""
APPTAINER = f"""# Written by envs/conda.py. From the project's folder:
#   apptainer build raretok.sif envs/raretok.def
#   apptainer exec --nv raretok.sif snakemake --cores all
# The image holds the pinned packages; the workflow is the one in the folder it is started in.
Bootstrap: docker
From: {IMAGE}

%files
    envs/requirements.txt /opt/requirements.txt

%post
    # A compiler for torch.compile on a GPU, and git for the record of the commit.
    apt-get update
    apt-get install --yes --no-install-recommends git gcc g++ libc6-dev
    rm -rf /var/lib/apt/lists/*
    pip install --no-cache-dir --requirement /opt/requirements.txt

%environment
    export PYTHONUNBUFFERED=1
"""


def pins(text: str) -> list[str]:
    """The requirements in a requirements file, without comments."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def normal(name: str) -> str:
    """A package's normalised name, as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(names: list[str], pinned: set[str]) -> set[str]:
    """Normalised names of packages and all their dependencies that are `pinned` (CUDA libraries are not)."""
    found, waiting = set(), {normal(name) for name in names}
    while waiting:
        name = waiting.pop()
        found.add(name)
        for line in requires(name) or []:
            requirement = Requirement(line)
            # The environment is for this Python, whichever runs now.
            here = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.0", "extra": ""}
            if requirement.marker is None or requirement.marker.evaluate(here):
                waiting |= ({normal(requirement.name)} & pinned) - found
    return found


def environments() -> dict[str, str]:
    """Contents of the files to write, by name."""
    requirements = pins((FOLDER / "requirements.txt").read_text(encoding="utf-8"))
    by_name = {normal(pin.partition("==")[0]): pin for pin in requirements}
    files = {"raretok.yaml": _environment(requirements), "Containerfile": CONTAINER, "raretok.def": APPTAINER}
    for need, names in NEEDS.items():
        files[f"{need}.yaml"] = _environment(_pins_of(names, by_name))
    files["requirements-report.txt"] = PINNED + "".join(f"{pin}\n" for pin in _pins_of(RENDERING, by_name))
    return files


def _pins_of(names: list[str], by_name: dict[str, str]) -> list[str]:
    wanted = needed(names, set(by_name))
    return [pin for name, pin in by_name.items() if name in wanted]


def _environment(requirements: list[str]) -> str:
    return HEAD + "".join(f"      - {pin}\n" for pin in requirements)


if __name__ == "__main__":
    for file, content in environments().items():
        (FOLDER / file).write_text(content, encoding="utf-8")
