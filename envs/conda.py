"""Write envs/raretok.yaml, the conda environment of every rule, from the pins of envs/requirements.txt.

    python envs/conda.py

Conda brings Python and pip, pip brings the same pinned packages as `make` does, so there is one list of versions.
Snakemake uses it with --software-deployment-method conda; without that the rules run in the environment that
runs Snakemake.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
PYTHON = "3.11"
HEAD = f"""# Written by envs/conda.py from requirements.txt; edit that and run it again.
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python={PYTHON}
  - pip
  - pip:
"""


def pins(text: str) -> list[str]:
    """The requirements in a requirements file, without comments."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def environment() -> str:
    """The content of envs/raretok.yaml."""
    requirements = pins((FOLDER / "requirements.txt").read_text(encoding="utf-8"))
    return HEAD + "".join(f"      - {pin}\n" for pin in requirements)


if __name__ == "__main__":
    (FOLDER / "raretok.yaml").write_text(environment(), encoding="utf-8")
