"""Report pages: no network, escaped content, links to files, runs behind the numbers."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import fake_comparison
import pytest
from fake_page import HOSTILE
from fake_results import make_report
from fake_table import definition_of as made_up
from fake_table import results_of, results_with, write_published

from rarepapers.__main__ import main
from rarepapers.reporting.definition import definition_of
from rarepapers.reporting.page import page_card
from rarepapers.reporting.page.page_card import _ours, card, rounded
from rarepapers.reporting.page.page_claims import in_words
from rarepapers.reporting.page.page_command import templates
from rarepapers.reporting.page.page_items import ceilings
from rarepapers.reporting.page.page_words import findings
from rarepapers.rule_inputs import report

PAPERS = ("stop_jostling", "agg")


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

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def tags(page):
    """The tags of every page."""
    found = {}
    for name, text in page.pages.items():
        reader = Reader()
        reader.feed(text)
        assert reader.open == []
        found[name] = reader.tags
    return found


def between(text, start, end="</section>"):
    (found,) = re.findall(f"{re.escape(start)}(.*?){end}", text, re.DOTALL)
    return found


def test_a_page_for_each_paper_and_what_concerns_them_all(page):
    assert set(page.pages) == {"index", *PAPERS, "method", "cost", "provenance"}
    for name, text in page.pages.items():
        assert f'href="{name}.html" aria-current="page"' in text


def test_pages_make_no_requests(page, tags):
    for name, found in tags.items():
        assert not {tag for tag, _ in found} & {"link", "iframe", "object"}
        sources = [attributes["src"] for _, attributes in found if "src" in attributes]
        assert len(sources) == {"stop_jostling": 2, "agg": 1}.get(name, 0)
        assert all(source.startswith("data:image/svg+xml,") for source in sources)
        style = between(page.pages[name], "<style>", "</style>")
        assert "url(" not in style
        assert "@import" not in style
        policy = dict(found)["meta"]  # the last one
        assert policy["content"].startswith("default-src 'none'; img-src data:;")


def test_links_lead_to_existing_files_and_anchors(page, tags):
    places = {}
    for name, found in tags.items():
        ids = [attributes["id"] for _, attributes in found if "id" in attributes]
        assert len(ids) == len(set(ids))
        places[f"{name}.html"] = ids
    links = [(name, attributes["href"]) for name, found in tags.items() for tag, attributes in found if tag == "a"]
    assert len(links) > 300
    for name, link in links:
        file, _, place = link.partition("#")
        if file in places or not file:
            assert not place or place in places[file or f"{name}.html"], link
        elif "://" not in link and "/results/recorded/" not in link:
            target = page.path.parent / file
            # Of figures, tests make the svg alone (conftest.py).
            drawn = target.suffix in (".png", ".pdf") and "figures" in target.parts
            assert (target.with_suffix(".svg") if drawn else target).exists(), link


def test_text_is_escaped(page, tags):
    agg, stop = page.pages["agg"], page.pages["stop_jostling"]
    assert "made up <b>" not in agg + stop
    assert "made up &lt;b&gt;&amp;" in page.pages["provenance"] + agg + stop
    assert "&lt;/td&gt;&lt;script&gt;window.hostile=1" in agg
    assert HOSTILE not in agg
    assert "{{ 7*7 }}" in agg
    for found in tags.values():
        assert [tag for tag, _ in found].count("script") == 1
        assert not [attributes for _, attributes in found if any(name.startswith("on") for name in attributes)]


def test_the_first_page_summarises_results_and_shows_every_claim(page):
    index = page.pages["index"]
    assert "<h1>Two papers on rare tokens: what holds up</h1>" in index
    lead = between(index, '<div class="lead">', "</div>")
    assert '<b>9</b> <span class="chip reproduced">reproduced</span>' in lead
    # The numbers of a paper's own size and of a reduced scale are never added.
    sizes = re.split(r"(?=<p>\d+ claims about experiments)", lead)[1:]
    totals = [int(re.search(r"<p>(\d+) claims", one)[1]) for one in sizes]
    assert totals == [sum(map(int, re.findall(r"<b>(\d+)</b>", one))) for one in sizes]
    assert 0 < len(totals) <= 2
    assert sum(totals) > 9
    for one in sizes:
        assert ("holds here" in one) != (">reproduced<" in one)
        assert ("at a reduced scale" in one) == ("holds here" in one)
    assert '<td role="cell" data-head="Seeds">2</td>' in index
    assert re.search("<p>Reproduced: .* Of the inconclusive ones", lead)
    assert '<ul class="found">' not in index  # no README has findings on these results
    for paper in PAPERS:
        own = set(re.findall(r'<tr role="row" id="claim-([^"]+)"', page.pages[paper]))
        linked = set(re.findall(rf'href="{paper}.html#claim-([^"]+)"', index))
        assert own == linked
        assert len(own) == {"stop_jostling": 44, "agg": 53}[paper]


def test_numbers_of_the_cards_have_three_digits(page):
    values = (41780.17, 999.7, 438.67, 10.97, 0.0123, None)
    assert [*map(rounded, values)] == ["41,800", "1,000", "439", "11.0", "0.0123", ""]
    cards = between(page.pages["index"], '<ul class="cards">', "<section")
    for number in re.findall(r"(?:paper|ours)</span> ([\d.,]+)", cards):
        assert len(re.sub(r"\D", "", number).lstrip("0")) <= 3 or number.endswith("0")


def test_a_card_compares_means_over_the_same_seeds(tmp_path):
    """Third, which was not run, does not count; the lucky third seed of Other is not shown."""
    headline = {
        "table": "table1",
        "methods": ["base", "other", "third"],
        "column": "Score",
        "group": "",
        "says": "Score",
    }
    definition = replace(made_up({"base": "Base", "other": "Other (Ours)", "third": "Third"}), headline=headline)
    write_published(tmp_path, {("Base", ""): "2", ("Other (Ours)", ""): "1"})
    results = results_of(tmp_path, {"base": [4.0, 5.0], "other": [2.0, 3.0, 100.0]})
    found = card(definition, results, tmp_path)
    assert found["about"] == "means over 2 seeds"
    assert found["bars"] == [
        ("Base", (1.0, "2.00"), (1.0, "4.50 ± 0.71")),
        ("Other", (0.5, "1.00"), (2.5 / 4.5, "2.50 ± 0.71")),
    ]


ODD = {"inf": "inf", "-inf": "-inf", "nan": "undefined", "0": "2.25 ± 3.2", "1e200": "5e+199 ± 7.07e+199"}


@pytest.mark.parametrize("seed_of", ["base", "other"])
@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "0", "1e200", "1e-320"])
def test_an_odd_seed_leaves_the_other_bars_of_a_card_as_they_are(tmp_path, value, seed_of):
    headline = {"table": "table1", "methods": ["base", "other"], "column": "Score", "group": "", "says": "Score"}
    definition = replace(made_up({"base": "Base", "other": "Other"}), headline=headline)
    write_published(tmp_path, {("Base", ""): "2", ("Other", ""): "1"})
    scores = {"base": [4.0, 4.5], "other": [2.0, 2.5]}
    usual = card(definition, results_of(tmp_path, scores), tmp_path)
    results = results_of(tmp_path, scores)
    results.values["e1", seed_of, "score", "", "test@best"][1] = float(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_card, "index_results", lambda *_: results)
        found = card(definition, results, tmp_path)
    assert [bar[1] for bar in found["bars"]] == [bar[1] for bar in usual["bars"]]
    other = "other" if seed_of == "base" else "base"
    place = ["base", "other"].index(seed_of)
    assert found["bars"][1 - place][2][1] == usual["bars"][1 - place][2][1]
    if not math.isfinite(float(value)):
        assert found["bars"][place][2] == (None, ODD[value])
        assert f"{seed_of.capitalize()} is " in found["about"]
        assert "in seed 1" in found["about"]
    html = str(templates().get_template("macros.html.j2").make_module({}).card_of(found))
    widths = [float(width) for width in re.findall(r"width: ([^%]*)%", html)]
    assert all(0 <= width <= 52 for width in widths)
    assert max(widths) == 52
    # The printed bars are as long as without the odd number, or shorter beside a longer one, but do not vanish.
    assert min(widths[:1]) >= 52 / 100
    assert html.count("ours</span>") == 2, other


def test_a_card_relative_to_zero_has_no_bars(tmp_path):
    headline = {"table": "table1", "methods": ["base", "other"], "column": "Score", "group": "", "says": "Score"}
    definition = replace(made_up({"base": "Base", "other": "Other"}), headline=headline)
    write_published(tmp_path, {})
    found = card(definition, results_of(tmp_path, {"base": [0.0, 0.0], "other": [2.0, 2.5]}), tmp_path)
    assert found["bars"] == [("Base", (None, ""), (None, "0.00")), ("Other", (None, ""), (None, "2.25 ± 0.35"))]


@pytest.mark.parametrize(("spread", "text"), [(0.7071, "0.71"), (25.9, "26"), (99.7, "99.7"), (212.4, "212")])
def test_a_card_has_spreads_with_two_digits_and_no_trailing_point(spread, text):
    assert _ours(SimpleNamespace(value=821.0, spread=spread)) == f"821 ± {text}"


def test_abbreviations_are_explained_at_the_top(page):
    for name in ("index", "stop_jostling"):
        text = page.pages[name]
        assert text.index("<b>LR</b> low-resource language") < text.index("<section")
    assert "<b>LR</b>" not in page.pages["agg"]


def test_the_scale_is_named_once_per_page(page):
    text = page.pages["stop_jostling"]
    assert len(re.findall("small scale, real data", re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL))) <= 3
    assert not re.search(r"<h[1-4][^>]*>[^<]*small scale", text)


def test_the_cost_page_has_the_training_cost(page):
    # 49 methods and two seeds, a minute each; every second seed was resumed once
    row = "<td>98</td><td>1.63 GPU-hours</td><td>1.50</td><td>102,400 (102,400 to 102,400)</td><td>49</td>"
    assert row in page.pages["cost"]
    assert re.search(r"<p>\d+ runs took [\d.]+ GPU-hours in all\.</p>", page.pages["cost"])


def test_every_item_names_its_command_and_runs(page):
    table = between(page.pages["agg"], '<h3 id="agg-table3">')
    command = "snakemake --cores all --config scale=small"
    assert f"<pre>{command} {page.folder}/tables/agg/table3.csv</pre>" in table
    assert "3 of 6 runs" in table
    assert '<li><a href="provenance.html#runs-language_model-mle">MLE</a> (language_model): seed 1</li>' in table
    assert "Not run: language_model, seed 2: " in table
    assert "Not run" not in between(page.pages["stop_jostling"], '<h3 id="stop_jostling-table1">')
    # the hash of a run and the settings of a method, once
    assert "metrics.json" not in page.pages["agg"]
    runs = between(page.pages["provenance"], '<tr id="runs-language_model-agg">', "</tr>")
    assert re.search(r"gate: \{alpha: [\d.]+, name: agg\}", runs)
    assert re.search(r'1\s<a href="[^"]*/metrics.json"><code>\w{8}</code></a>', runs)


def test_groups_of_tokens_are_columns_as_in_the_paper(page):
    table = between(page.pages["agg"], '<h3 id="agg-table3">')
    assert '<th scope="colgroup" colspan="4" class="over">PPL ↓</th>' in table
    assert table.index(">freq</th>") < table.index(">med</th>") < table.index(">rare</th>")


def test_a_comparison_opens_with_its_outcome_and_its_figure(tmp_path):
    table = fake_comparison.workflow("smoke")
    fake_comparison.write(tmp_path, table, lambda experiment, method: (0.0, 0.0, 40.0))
    definition = json.dumps(report.definition(table, "cross"))
    fake_comparison.results_of(tmp_path, definition_of(json.loads(definition))).metrics.to_csv(tmp_path / "metrics.csv")
    where = [f"--definition={definition}", f"--results={tmp_path}"]
    assert main(["figure", "--item=figure1", *where, f"--output-stem={tmp_path}/figures/cross/figure1"]) == 0
    text = make_report(tmp_path, definition).with_name("cross.html").read_text(encoding="utf-8")
    assert text.index("<p>") < text.index('<h2 id="figures">') < text.index('<h2 id="tables">')
    assert text.index('<a href="#figures">') < text.index('<a href="#tables">')


def test_pictures_have_descriptions_for_screen_readers(tags):
    images = [attributes for found in tags.values() for name, attributes in found if name == "img"]
    assert all(re.match(r"Figure \d\. .{20}", one["alt"]) for one in images)
    assert all(int(one["width"]) > int(one["height"]) > 100 for one in images)


def test_tables_have_captions_and_header_cells_scopes(page):
    for text in page.pages.values():
        for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
            assert re.search(r"<table[^>]*>\n<caption", table)
            assert not re.search(r"<th(?![^>]*scope=)[ >]", table)


def test_deviations_are_linked_from_what_they_affect(page):
    text = page.pages["stop_jostling"]
    table = between(text, '<h3 id="stop_jostling-table7">')
    assert ">S7</a>" in table
    assert ">S9</a>" not in table
    claim = between(text, 'id="claim-stop_jostling.min_p"', "</tr>")
    assert '<a href="#deviation-stop-jostling-s2">S2</a>' in claim
    assert '<li id="deviation-stop-jostling-s2">' in text


def test_a_claim_leads_to_its_runs_their_settings_and_outputs(page):
    claim = between(page.pages["agg"], 'id="claim-agg.t3.rare_ppl"', "</tr>")
    assert 'href="provenance.html#runs-language_model-agg"' in claim
    assert "rarepapers verify agg.t3.rare_ppl" in claim
    assert 'href="#agg-table5"' in claim  # what the models wrote


def test_contradictions_have_a_question_and_an_answer(page):
    text = page.pages["stop_jostling"]
    contradictions = between(text, '<h2 id="contradictions">', "<h2 ")
    assert "Does choosing the checkpoint by plain cross-entropy" in contradictions
    assert re.search(r'<p class="said">\S', contradictions)
    assert "readings-S6" not in between(text, '<h2 id="tables">', "<h2 ")


def test_a_claim_has_its_p_before_and_after_correction(page):
    claim = between(page.pages["stop_jostling"], 'id="claim-stop_jostling.t1.isotropy_lr"', "</tr>")
    assert re.search(r"<dt>p</dt><dd>[.\de-]+, after Holm's correction [.\de-]+", claim)


def test_the_summary_counts_only_experiments():
    made = {"kind": "experiment", "verdict": "reproduced", "lean": "", "seeds": "5", "sentence": "A", "our_value": "x2"}
    claims = [
        made,
        made | {"verdict": "not reproduced", "sentence": "B"},
        made | {"verdict": "inconclusive", "lean": "against it", "seeds": "1"},
        made | {"verdict": "inconclusive", "seeds": "3"},
        made | {"verdict": "not run"},
        made | {"kind": "mathematics", "verdict": "holds"},
    ]
    said = findings(claims)
    leans = "none point the paper's way, 1 against it, 1 neither way"
    assert said.startswith("Reproduced: A (")
    assert said.endswith(
        f"Not reproduced: B (ours x2). Of the inconclusive ones {leans}. Not counted above: mathematics: 1 holds."
    )


NO_LARGER = dict.fromkeys(("verdict", "planned_verdict"), "no effect larger than X")


@pytest.mark.parametrize(
    ("changes", "untested_size", "said"),
    [
        ({"seeds": "1"}, False, "one seed"),
        ({"p": "0.2"}, True, "p = 0.2"),
        ({"p": "0.2", "part": "HR"}, False, "joint p = 0.2"),
        ({"p": "0.01", "alone": "reproduced"}, False, "Holm's correction"),
        ({"verdict": "reproduced", "planned_verdict": "reproduced"}, False, ""),
        ({"verdict": "holds here", "planned_verdict": "holds here"}, True, "direction only"),
        ({"verdict": "reproduced", "planned_verdict": "inconclusive"}, False, "with added seeds"),
        (NO_LARGER | {"excluded": "1.1055", "unit": "x"}, False, "X = x1.11"),
    ],
)
def test_a_claim_has_the_reason_of_its_verdict(changes, untested_size, said):
    claim = dict.fromkeys(("printed", "ours", "lower", "predict_lower", "size", "lean", "unit", "part", "p"), "")
    claim |= {"verdict": "inconclusive", "alone": "inconclusive", "seeds": "3"}
    assert in_words(claim | changes, untested_size)["verdict_said"] == said


def test_a_bleu_that_preparation_limits_is_named(tmp_path):
    rows = [("e", "reference_bleu", "test", 100), ("e", "reference_bleu", "domain.flores200", 97.4695)]
    rows += [("other", "reference_bleu", "test", 80), ("e", "bleu", "test@best", 20)]
    rows = [["p", experiment, "m", 1, metric, "", split, value, 9, "", ""] for experiment, metric, split, value in rows]
    results = results_with(tmp_path, rows)
    definition = replace(made_up({"m": "M"}), titles={"flores200": "FLORES-200"})
    said = "the references themselves have a BLEU of 97.47 (e, FLORES-200)."
    assert ceilings(definition, results, {"e"}).endswith(said)
    assert ceilings(definition, results, {"another"}) == ""
