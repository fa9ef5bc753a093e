"""Snakemake's own report, as html and as zip: written and read without network, with papers as categories."""

import os
import re
import shutil
import subprocess
import zipfile

import pytest
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

from rarepapers.core.config_files import read_yaml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PAPER = "natural_bias"
CONFIG = ("--cores", 2, "--config", "scale=small", "recorded=true", f"papers=[{PAPER}]")
# Even the loopback is down. Users other than root also need a user namespace.
CUT = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def reported(project_at):
    """The project with the recorded results of one paper rendered, and both reports."""
    project = project_at("reported")
    recorded = "results/recorded/small"
    # copy only measured files, because tables and figures are rendered again
    for name in ("runs", "comparisons"):
        shutil.copytree(ROOT / recorded / name, project / recorded / name)
    shutil.copy(ROOT / "README.md", project / "README.md")
    done = snakemake(project, *CONFIG)
    assert done.returncode == 0, done.stdout
    before = CUT if subprocess.run([*CUT, "true"], capture_output=True).returncode == 0 else ()
    for name in ("report.html", "report.zip"):
        done = snakemake(project, *CONFIG, "--report", name, before=before)
        assert done.returncode == 0, done.stdout
    return project


def test_papers_are_categories_and_items_have_their_titles(reported):
    text = (reported / "report.html").read_text(encoding="utf-8")
    paper = read_yaml(ROOT / "config" / "papers" / PAPER / "paper.yaml")
    for words in (paper["title"], "figures", paper["figures"]["figure4"]["title"], "at scale small"):
        assert words in text
    assert "{{" not in re.findall(r'"caption": "(.*?)"', text)[0]


def test_the_zip_holds_every_file(reported):
    with zipfile.ZipFile(reported / "report.zip") as archive:
        names = {name.rpartition("/")[2] for name in archive.namelist()}
    paper = read_yaml(ROOT / "config" / "papers" / PAPER / "paper.yaml")
    wanted = {f"{item}.svg" for item in paper["figures"]} | {f"{item}.csv" for item in paper["tables"]}
    assert wanted | {"claims.csv"} <= names


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium is on PATH")
def test_the_html_opens_without_requests(reported):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    wrong = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda one: None if one.url[:5] in ("file:", "data:", "blob:") else wrong.append(one.url))
        tab.goto((reported / "report.html").as_uri())
        title = read_yaml(ROOT / "config" / "papers" / PAPER / "paper.yaml")["title"]
        tab.get_by_text(title).first.click()
        tab.get_by_text("figures", exact=True).first.click()
        assert tab.get_by_text("figure4", exact=True).first.is_visible()
        browser.close()
    assert wrong == []
