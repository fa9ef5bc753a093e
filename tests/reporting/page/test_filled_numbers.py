"""Measured numbers of the documentation are recorded ones, between markers."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import load
from rarepapers.reporting.definition import definition_of
from rarepapers.reporting.deviations import without_comments
from rarepapers.reporting.page.filled_numbers import MARK, Quantity, Recorded, filled, shown, written
from rarepapers.rule_inputs import report

ROOT = Path(__file__).parents[3]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))}
MLE, AGG = "cross_bpe/mle_rate1", "cross_bpe/agg_alpha1"

# Numbers that nobody measured: names, settings, places in papers and code, and printed numbers that are quoted.
NAMES = r"GPT-2|WikiText-\d+|Multi30k|WMT14|IWSLT14|\bC4\b|Recall@5|g[12]|mu_[12]|\bA16\b|\bS1\b|MIT|2(?= the\b)"
PLACES = (
    r"(?:[Tt]ables?|[Ff]igures?|[Ss]ections?|Eq\.|Lemma|Algorithm|Turumtaev|et al\.) \d+(?:(?:,| and|, and| to) \d+)*"
)
SETTINGS = r"""
    \b(?:[Mm]argin|C|T|tau|temperature|strength|MLE\ with|at\ most)\ (?:(?:=|of|to)\ )?
        (?:1e-4|0\.46|0\.6|10|[0-35]|3\ nats)(?![\d%]|\.\d)
    | (?:last|next|first|makes|same)\ \d0% | 95%(?=\ intervals?) | [14]\.[15]\ epochs | [\d,]+\ steps | within\ 2%
    | [\d,]+\ (?:BPE\ )?types | 4\ x\ 128 | 16,000\ most\ frequent
"""
QUOTED = r"printed x?[-\d.,]+%?|\"x[\d.]+\""
COUNTED = r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty)\s+(?:seeds|runs|trainings)\b"
CODE = r"```.*?```|``.*?``|`[^`]*`|\]\([^)]*\)|https?://\S+"
SECTIONS = {
    "findings.md": ("# What was found", None),
    "README.md": ("## What was found", "\n## Run it"),
    "losses.md": ("## Which one, when", "\n## What it costs"),
}


@pytest.fixture(scope="module")
def recorded():
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    table = load(config | {"scale": "small", "recorded": True}, ROOT)
    definitions = [definition_of(report.definition(table, paper)) for paper in table.papers]
    return Recorded(ROOT / table.results, definitions, ROOT / "config" / "papers")


def test_every_page_has_the_recorded_numbers(recorded):
    """If this fails, results, config or a marker changed: run `make record-page`."""
    for name, text in PAGES.items():
        assert filled(text, recorded, "small") == text, name
    script = (ROOT / "envs/fill_pages.sh").read_text(encoding="utf-8")
    (listed,) = re.findall(r"--pages (.*) \\", script)
    marked = {name for name, text in PAGES.items() if "<!-- small " in text}
    assert {Path(name).name for name in listed.split()} == marked - {"README.md"}
    assert marked >= {"README.md", "findings.md", "losses.md", "statistics.md", "deviations.md"}


def by_hand(text: str) -> list[str]:
    """Numbers outside of markers, code and links that are no name, place, setting or quoted print; with text before."""
    plain = re.sub(MARK.format(scale="small"), "", text, flags=re.DOTALL)
    plain = without_comments(re.sub(CODE, "", plain, flags=re.DOTALL))
    plain = " ".join(plain.split())
    for allowed in (QUOTED, PLACES, NAMES):
        plain = re.sub(allowed, "", plain)
    plain = re.sub(SETTINGS, "", plain, flags=re.VERBOSE)
    return re.findall(rf".{{0,25}}(?:\d[\d.,]*%?|{COUNTED})", plain)


@pytest.mark.parametrize("name", SECTIONS)
def test_no_measured_number_is_written_by_hand(name):
    begin, end = SECTIONS[name]
    text = PAGES[name].partition(begin)[2]
    assert by_hand(text.partition(end)[0] if end else text) == []


@pytest.mark.parametrize(
    "text", ["falls by 73%", "x0.82 here", "(three seeds)", "rises to 813", "p = 0.019", "I(W) 0.56", "7 BLEU more 1.4"]
)
def test_a_number_by_hand_is_found(text):
    assert by_hand(text)


@pytest.mark.parametrize(
    "text", ["table 7 and figures 2, 3 and 4", "margin 1", "printed x1.22", "`0.5`", "1,500 steps"]
)
def test_what_nobody_measured_may_be_written(text):
    assert by_hand(text) == []
    assert by_hand(f"{text} <!-- small a.b -->ours x3, 4 seeds<!-- end -->") == []


def test_a_matched_constant_has_the_rare_perplexity_of_its_method(recorded):
    constant = float(shown(recorded, f"constant; {AGG}; {MLE}; rare; .6f"))
    method = float(shown(recorded, f"change; {AGG}; {MLE}; fitted_perplexity; rare; .6f"))
    assert constant == pytest.approx(method, abs=0.05)
    assert shown(recorded, f"constant; {MLE}; {MLE}; nats; .1f") == "0.0"


def test_quantities_are_those_of_the_tables(recorded):
    for group, column in (("freq", "frequent"), ("rare", "rare")):
        for how in ("+.2f", "interval .2f", "seeds"):
            cell = shown(recorded, f"cell; cross/table1; AGG; {column} - MLE, %; ; {how}")
            assert shown(recorded, f"change; {AGG}; {MLE}; fitted_perplexity; {group}; {how}") == cell
    means = [shown(recorded, f"mean; {AGG}; fitted_perplexity; rare; {how}") for how in (".2f", "seeds")]
    cell = [shown(recorded, f"cell; cross/table1; AGG; rare; ; {how}") for how in (".2f", "seeds")]
    assert means == cell
    assert shown(recorded, f"mean; {AGG} seed 2; uniq; total; seeds") == "1 seed"
    assert shown(recorded, f"difference; {AGG}; {AGG}; uniq; rare; +.1f") == "0.0"


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (".1f", "-73.0"),
        ("less .0f", "73"),
        ("times .2f", "0.27"),
        ("less interval .1f", "(72.0 to 74.5)"),
        ("seeds", "3 seeds"),
        ("p .2g", "0.012"),
        ("printed .1f", "-83.0"),
    ],
)
def test_show(how, text):
    assert written(Quantity(-73.0, (-74.5, -72.0), 3, printed=-83.0, p=0.0123), how) == text


def test_zero_has_no_sign():
    assert [written(Quantity(number), "+.1f") for number in (-0.04, 0.04, -0.06)] == ["0.0", "0.0", "-0.1"]


SAYS = "AGG: it helps (PPL): printed x2, ours x3 (1 to 4), 11 seeds"
CLAIM = {"id": "a.b", "sentence": "AGG: it helps", "says": SAYS, "ours": "3", "lower": "1", "upper": "4", "seeds": "11"}
Claims = SimpleNamespace(claims={"a.b": CLAIM | {"printed": "2", "p": "0.01", "p_holm": ""}})


def test_claims():
    text = "rare: <!-- small a.b -->old<!-- end -->, <!-- paper a.b -->old<!-- end -->"
    assert filled(text, Claims, "small") == text.replace("old", "PPL: printed x2, ours x3 (1 to 4), 11 seeds", 1)
    said = {how: shown(Claims, f"a.b {how}") for how in ("ours", "printed", "seeds", "p .2f")}
    assert said == {"ours": "x3 (1 to 4)", "printed": "x2", "seeds": "11 seeds", "p .2f": "0.01"}
    with pytest.raises(UserError, match=r"names the claim a\.c, which does not exist"):
        filled("<!-- small a.c --><!-- end -->", Claims, "small")


@pytest.mark.parametrize(
    "what", ["cell; agg/table3; AGG; none; rare; .1f", f"mean; {AGG}; none; rare; .1f", "count; none", "other; a; .1f"]
)
def test_a_quantity_that_does_not_exist_is_an_error(recorded, what):
    with pytest.raises(UserError, match=re.escape(what)):
        filled(f"<!-- small {what} -->1<!-- end -->", recorded, "small")
