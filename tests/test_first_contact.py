"""What somebody finds first: metadata that agree, and advice that can be followed."""

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml

from rarepapers.core.files import read_json

ROOT = Path(__file__).parents[1]
# Options of pip with a value, in our pages; and those that only look a package up.
VALUED = ("-r", "-c", "-w", "-e", "--editable", "--target", "--find-links", "--progress-bar")
DRY = ("--dry-run", "--no-deps", "--ignore-installed", "--quiet")


def test_codemeta_says_what_the_citation_says():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    metadata = read_json(ROOT / "codemeta.json")
    assert metadata["description"] == cited["title"]
    assert metadata["version"] == cited["version"]
    assert metadata["dateModified"] == str(cited["date-released"])
    assert metadata["license"] == f"https://spdx.org/licenses/{cited['license']}"
    assert [author["name"] for author in metadata["author"]] == [author["name"] for author in cited["authors"]]
    assert metadata["keywords"] == cited["keywords"]
    assert metadata["name"] == cited["title"].partition(":")[0]


def test_the_advice_for_contributors_names_what_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for page in ("CONTRIBUTING.md", "AGENTS.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert set(re.findall(r"[`$] ?make ([a-z][a-z-]+)", text)) <= targets
        links = [link for link in re.findall(r"\]\((.*?)\)", text) if not link.startswith("https:")]
        assert [link for link in links if not (ROOT / link).exists()] == []
        for folder in re.findall(r"\btests/[a-z_]+", text):
            assert (ROOT / folder).is_dir()


def test_ci_runs_actions_of_known_commits_and_may_only_read():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        used = re.findall(r"uses: (.*)", text)
        assert used
        assert [one for one in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", one)] == []
    assert yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["permissions"] == {"contents": "read"}


def extras():
    """Requirements of both distributions, with every extra."""
    for path in (ROOT / "pyproject.toml", ROOT / "library" / "pyproject.toml"):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        yield from chain(project["dependencies"], *project["optional-dependencies"].values())


def advised():
    """Packages that a page or an error tells a user to install."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("library/**/*.md"), *ROOT.glob("envs/*.py")]
    for path in [*pages, *ROOT.glob("workflow/rarepapers/**/*.py"), *ROOT.glob("library/raretok/**/*.py")]:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for words in re.findall(r"\bpip (?:install|wheel)([^\n`#]*)", text):
            before = ""
            for word in re.split(r'"?, ', words)[0].replace('"', " ").replace("\\", " ").split():
                # The word after an option with a value is a file or folder.
                is_value = before in VALUED
                if not is_value and re.fullmatch(r"[a-z][a-z0-9-]+(\[[a-z,]+\])?([<=>~]=?[\d.]+)?", word):
                    yield word
                before = word
    yield from ("sacrebleu[ja]", "sacrebleu[ko]")  # of an error in metrics/translation_scores.py


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_package_that_users_are_to_install_exists():
    wanted = sorted({*extras(), *advised()})
    assert {"rocrate", "unbabel-comet", "peft>=0.17"} <= set(wanted)
    # raretok itself is in this folder.
    wanted = [one for one in wanted if re.split(r"[=<>]", one)[0] != "raretok"]
    missing = []
    for one in wanted:
        command = [sys.executable, "-m", "pip", "install", *DRY, one]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            missing.append(f"{one}: {done.stderr.strip().splitlines()[-1]}")
    assert missing == []
