"""The page: needs no network, escapes what it shows, links to its files, says what it rests on."""

import json
import re
from html.parser import HTMLParser

import pytest
from fake_results import definition_of

from raretok.reporting.definition import parse_definition
from raretok.reporting.page.page_claims import own_claims

VERDICTS = "reproduced|not-reproduced|inconclusive|not-run|holds|holds-corrected|fails"


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
def tags(page):
    reader = Reader()
    reader.feed(page.text)
    assert reader.open == []
    return reader.tags


def section(page, start, end="</section>"):
    (found,) = re.findall(f"{re.escape(start)}(.*?){end}", page.text, re.DOTALL)
    return found


def test_nothing_is_fetched(page, tags):
    assert not {name for name, _ in tags} & {"link", "iframe", "object"}
    sources = [attributes["src"] for _, attributes in tags if "src" in attributes]
    assert len(sources) == 3
    assert all(source.startswith("data:image/") for source in sources)
    style = section(page, "<style>", "</style>")
    assert "url(" not in style
    assert "@import" not in style
    policy = dict(tags)["meta"]  # the last one
    assert policy["content"].startswith("default-src 'none'; img-src data:;")


def test_links_lead_to_files_and_ids(page, tags):
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for name, attributes in tags if name == "a"]
    assert len(links) > 300
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids, link
        elif "/results/recorded/" not in link and not link.endswith("report.pdf"):
            assert (page.path.parent / link.partition("#")[0]).exists(), link


def test_cost_of_training_stands_on_the_page(page):
    cost = section(page, '<h2 id="cost">')
    assert "small scale, real data" in cost
    # 49 methods and two seeds, a minute each; every second seed was resumed once
    assert "<td>98</td><td>1.63 GPU hours</td><td>1.50</td><td>102,400 (102,400 to 102,400)</td><td>49</td>" in cost


def test_text_is_escaped(page, tags):
    assert "made up &lt;b&gt;&amp;" in page.text
    assert "made up <b>" not in page.text
    assert "&lt; v(&#39;table1&#39;" in page.text
    assert "&lt;/td&gt;&lt;script&gt;window.hostile=1" in page.text
    assert "{{ 7*7 }}" in page.text
    assert [name for name, _ in tags].count("script") == 1
    assert not [attributes for _, attributes in tags if any(name.startswith("on") for name in attributes)]


def test_every_claim_has_a_chip_and_every_title_the_scale(page):
    assert len(re.findall(rf'<tr role="row" id="claim-[^"]+" class="(?:{VERDICTS})">', page.text)) == 44 + 53
    titles = re.findall(r"<h4[^>]*>((?:Table|Readings|Figure) .*?)</h4>", page.text)
    assert len(titles) == 11
    assert all("small scale, real data" in title for title in titles)
    assert "0123456789ab" in page.text


def test_every_item_says_what_makes_it_and_which_runs_it_rests_on(page):
    table = section(page, '<h4 id="agg-table3">')
    assert f"<pre>snakemake --cores all --config scale=small {page.folder}/tables/agg/table3.csv</pre>" in table
    assert "3 of 6 runs" in table
    assert re.search(
        r'MLE</a> \(language_model\): seed 1 <a href="[^"]*/metrics.json"><code>\w{16}</code></a></li>', table
    )
    assert "Not run: every method (seed 2)." in table
    assert "Not run" not in section(page, '<h4 id="stop_jostling-table1">')
    assert "It rests on no training." in section(page, "<h4>Figure 1. Three kinds", "</figure>")
    # the settings of a method, once
    runs = section(page, '<tr id="runs-language_model-agg">', "</tr>")
    assert '"name": "agg"' in json.dumps(runs) or "&#34;name&#34;: &#34;agg&#34;" in runs


def test_pictures_are_told_to_who_does_not_see_them(tags):
    texts = [attributes["alt"] for name, attributes in tags if name == "img"]
    assert all(re.match(r"Figure \d\. .*small scale, real data.*\)\. .{20}", text) for text in texts), texts
    sizes = [(int(attributes["width"]), int(attributes["height"])) for name, attributes in tags if name == "img"]
    assert all(width > height > 100 for width, height in sizes)


def test_every_table_has_a_caption_and_every_head_a_scope(page):
    tables = re.findall(r"<table.*?</table>", page.text, re.DOTALL)
    assert len(tables) > 12
    for table in tables:
        assert re.search(r"<table[^>]*>\n<caption", table)
        assert not re.search(r"<th(?![^>]*scope=)[ >]", table)


def test_deviations_stand_beside_what_they_affect(page):
    table = section(page, '<h4 id="stop_jostling-table7">')
    assert "<b>S7</b>" in table
    assert "<b>S9</b>" not in table
    claim = section(page, 'id="claim-stop_jostling.min_p"', "</tr>")
    assert re.search(r'<a href="#(stop_jostling-deviation-stop-jostling-s2)">S2</a>', claim)
    assert '<li id="stop_jostling-deviation-stop-jostling-s2">' in page.text


def test_contradictions_have_their_question_answer_and_deviation(page):
    contradictions = page.text.partition('<h3 id="stop_jostling-contradictions">')[2].partition("<h3 ")[0]
    assert "Does choosing the checkpoint by plain cross-entropy" in contradictions
    assert re.search(r'<p class="said">\S', contradictions)
    assert "<b>S6</b>" in contradictions
    assert "readings-S6" not in page.text.partition('<h3 id="stop_jostling-tables">')[2].partition("<h3 ")[0]


def test_statistics_over_seeds_are_told_from_tests_over_sentences(page):
    improvement = section(page, '<h3 id="stop_jostling-improvement">')
    assert "bootstrap interval over\nseeds" in improvement
    row = r'<tr><th scope="row">table1</th><td>[^<]*</td><td>Baseline</td>(?:<td[^>]*>[^<]*</td>){4}'
    assert re.search(
        row + r"<td>[-.\de]+ \[[-.\de]+, [-.\de]+\]</td><td>\[[^<]*\]</td><td>[.\d]+ \[[^<]*\]</td>", improvement
    )
    # The labels of table 1, and which of its values are better.
    assert re.search(
        r"<td>Proposed \(margin=1, T=0.46\)</td><td>Baseline</td><td>PPL</td><td>LR</td><td>lower</td>", improvement
    )
    assert re.search(r"<td>Monolingual</td><td>Baseline</td><td>Accuracy</td><td>LR</td><td>higher</td>", improvement)
    assert "Kendall" in section(page, '<h3 id="stop_jostling-agreement">')
    claim = section(page, 'id="claim-stop_jostling.t1.isotropy_lr"', "</tr>")
    assert re.search(r"p [.\de-]+, after Holm's correction [.\de-]+", claim)


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
