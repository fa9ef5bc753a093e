"""The page: needs no network, escapes what it shows, links to its files."""

import json
import re
from html.parser import HTMLParser

import pytest
from fake_results import PUBLISHED, definition_of, write_cost

from raretok.__main__ import main
from raretok.reporting.definition import parse_definition
from raretok.reporting.page import own_claims


class Reader(HTMLParser):
    """Collects tags, and checks that they close in order."""

    VOID = ("meta", "img", "input", "br", "link", "hr")

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(scale, figures):
    common = [f"--definitions={scale.text}", f"--results={scale.folder}", f"--published={PUBLISHED}"]
    output = scale.folder / "report" / "index.html"
    for item in scale.definition["tables"]:
        assert scale.table(item, scale.folder / "tables" / "stop_jostling" / item) == 0
    assert main(["claims", *common, f"--output={scale.folder / 'claims.csv'}"]) == 0
    write_cost(scale.folder)
    deviations = scale.folder / "deviations.md"
    deviations.write_text("# Deviations\n")
    assert main(["page", *common, f"--deviations={deviations}", f"--output={output}"]) == 0
    reader = Reader()
    reader.feed(output.read_text(encoding="utf-8"))
    assert reader.open == []
    return output, reader.tags


def test_nothing_is_fetched(page):
    output, tags = page
    names = {name for name, _ in tags}
    assert not names & {"script", "link", "iframe", "object"}
    sources = [attributes["src"] for _, attributes in tags if "src" in attributes]
    assert len(sources) == 8
    assert all(source.startswith("data:image/") for source in sources)
    style = re.search(r"<style>(.*?)</style>", output.read_text(), re.S)[1]
    assert "url(" not in style
    assert "@import" not in style


def test_links_lead_to_files_and_ids(page):
    output, tags = page
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for name, attributes in tags if name == "a"]
    assert len(links) > 40
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids
        else:
            assert (output.parent / link).exists(), link


def test_cost_of_training_stands_on_the_page(page):
    text = page[0].read_text(encoding="utf-8")
    (section,) = re.findall(r'<h2 id="cost">(.*?)</section>', text, re.S)
    assert "small scale, real data" in section
    # 49 methods and two seeds, a minute each; every second seed was resumed once
    row = "<td>98</td><td>1.63 GPU hours</td><td>1.50</td><td>102,400 (102,400 to 102,400)</td><td>49</td>"
    assert row in section


def test_text_is_escaped(page):
    text = page[0].read_text(encoding="utf-8")
    assert "made up &lt;b&gt;&amp;" in text
    assert "made up <b>" not in text
    assert "&lt; v(&#39;table1&#39;" in text


def test_every_claim_has_a_chip_and_every_title_the_scale(page):
    text = page[0].read_text(encoding="utf-8")
    assert len(re.findall(r'<tr class="(?:reproduced|not-reproduced|inconclusive|not-run)">', text)) == 43
    titles = re.findall(r"<h3[^>]*>((?:Table|Readings|Figure) .*?)</h3>", text)
    assert len(titles) == 22
    assert all("small scale, real data" in title for title in titles)
    assert "0123456789ab" in text


def test_the_sections_title_alone_says_the_scale_of_its_claims():
    definition = parse_definition(json.dumps(definition_of("smoke", comparable=False)))
    scale = "smoke scale, synthetic data; not comparable with the paper"
    claims = [
        {"paper": "stop_jostling", "note": scale},
        {"paper": "stop_jostling", "note": f"by margin 2; {scale}"},
        {"paper": "stop_jostling", "note": ""},
        {"paper": "agg", "note": scale},
    ]
    assert [claim["note"] for claim in own_claims(definition, claims)] == ["", "by margin 2", ""]
