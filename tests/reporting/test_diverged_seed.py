"""One number of one seed is odd: the recorded report is made, and only what depends on the number changes."""

import functools
import itertools
import math

import pytest
from fake_results import PUBLISHED, ROOT
from matplotlib.text import Text

from rarepapers.__main__ import main
from rarepapers.core.files import read_arrays
from rarepapers.reporting import results as results_module
from rarepapers.reporting.claims.agreement import agreements
from rarepapers.reporting.claims.claim_text import claim_sentence, shown_numbers
from rarepapers.reporting.claims.claims_command import evidence_of, finding_of, judge_paper
from rarepapers.reporting.definition import Definition, read_definition
from rarepapers.reporting.figures.figure_command import draw
from rarepapers.reporting.figures.style import house_style
from rarepapers.reporting.page.page_card import card
from rarepapers.reporting.page.page_claims import in_words
from rarepapers.reporting.page.page_forest import drawn_row
from rarepapers.reporting.page.page_statistics import agreement_rows
from rarepapers.reporting.results import KEY, Results, index_results, read_published, read_results
from rarepapers.reporting.tables.table_command import cells_of, sentences_of, tidy
from rarepapers.reporting.tables.table_text import latex, markdown

RECORDED = ROOT / "results" / "recorded" / "small"
PAPERS = ("agg", "agps", "cross", "follow_up", "natural_bias", "stop_jostling")
ODD = (math.inf, -math.inf, math.nan, 0.0, 1e200, 1e-320)
# Figures that draw numbers of the tables; all others draw arrays alone.
DRAWN = {
    "agg": ("figure3", "figure5"),
    "agps": ("figure3", "figure5"),
    "cross": ("figure1",),
    "follow_up": (),
    "natural_bias": ("figure2", "figure4", "figure11"),
    "stop_jostling": ("figureS1",),
}
# What each command says of a claim or pair that does not depend on other claims.
OF_CLAIM = ("ours", "lower", "upper", "predict_lower", "predict_upper", "seeds", "p", "alone")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The recorded results, and each paper's definition."""
    folder = tmp_path_factory.mktemp("definitions")
    for paper in PAPERS:
        made = ["--paper", paper, "--scale", "small", "--output", str(folder / f"{paper}.json")]
        assert main(["definition", *made]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results_module, "read_arrays", functools.cache(read_arrays))
        yield read_results(RECORDED), {paper: read_definition(str(folder / f"{paper}.json")) for paper in PAPERS}


def tables_of(definition: Definition, results: Results, items=None) -> dict[tuple, object]:
    """What the tables (or some of them) say, by place; they are also written in each format."""
    said = {}
    for item in definition.tables if items is None else items:
        cells = cells_of(definition, item, results, PUBLISHED)
        sentences = sentences_of(definition, item, cells)
        assert markdown(definition, item, cells, sentences)
        assert latex(definition, item, cells, sentences)
        assert len(tidy(cells)) == len(cells)
        for cell in cells:
            place = (item, cell.block, cell.row, cell.column, cell.group)
            said[place] = (cell.value, cell.spread, cell.seeds, cell.difference, cell.interval)
    return said


def report_of(definition: Definition, results: Results) -> dict[tuple, object]:
    """What tables, claims and statistics say, by place."""
    said = tables_of(definition, results)
    claims = judge_paper(definition, results, PUBLISHED)
    published = {row.id: row for row in read_published(PUBLISHED, "claims", definition.paper).itertuples()}
    for claim in claims:
        words = in_words({name: str(value) for name, value in claim.items()}, False)
        drawn = drawn_row(claim, published[claim["id"]])
        assert drawn is None or all(
            value is None or math.isfinite(value) for name, value in drawn.items() if name != "leaves"
        )
        said["note", claim["id"]] = claim["note"]
        said["claim", claim["id"]] = (*(claim[name] for name in OF_CLAIM), words["our_value"])
    found = agreements(definition, results, PUBLISHED)
    texts = agreement_rows([{name: str(value) for name, value in row.items()} for row in found], definition.paper)
    for row, text in zip(found, texts, strict=True):
        said["agreements", *(str(row.get(name)) for name in ("item", "row", "column", "group"))] = text
    for label, *bars in (card(definition, results, PUBLISHED) or {"bars": []})["bars"]:
        for who, (share, number) in zip(("paper", "ours"), bars, strict=True):
            assert share is None or math.isfinite(share)
            said["card", who, label] = (share, number)
    return said


def with_number(results: Results, place: dict, number) -> Results:
    """The results with another number for a metric (all its groups and splits) of one run; number: of the old one."""
    metrics = results.metrics.copy()
    rows = (metrics[list(place)] == list(place.values())).all(axis=1)
    metrics.loc[rows, "value"] = metrics.loc[rows, "value"].map(number)
    return index_results(results.folder, metrics)


def metrics_of(definition: Definition, results: Results) -> list[dict]:
    """A metric of the first seed of every method and experiment, of all that its experiment's tables show, in turn."""
    shown = {
        how["metric"] for entry in definition.tables.values() for how in (entry.get("columns") or {}).values() if how
    }
    shown |= {"bleu", "alc_bleu", "separability", "mean_cosine", "calibration_slope", "mask_cosine"}
    places = []
    for number, method in enumerate(definition.shown()):
        seeds = results.seeds_of(method)
        own = sorted(
            {key[KEY.index("metric")] for key in results.values if key[:2] == (method.experiment, method.name)} & shown
        )
        if own and seeds:
            about = {"experiment": method.experiment, "method": method.name, "seed": seeds[number % len(seeds)]}
            places.append(about | {"metric": own[number % len(own)]})
    return places


def of_paper(recorded, paper: str) -> tuple[Results, Definition]:
    """A paper's recorded results alone, which are indexed faster, and its definition."""
    results, definitions = recorded
    definition = definitions[paper]
    experiments = {method.experiment for method in definition.shown()}
    own = results.metrics[results.metrics["experiment"].isin(experiments)]
    return index_results(results.folder, own), definition


def judged(definition: Definition, results: Results, start: int, step: int) -> dict:
    """The findings by their own tests on every `step`th claim of a paper; each has a sentence."""
    if not definition.printed:
        return {}
    evidence = evidence_of(definition, results, PUBLISHED)
    found = {}
    for claim in [*evidence.claims.values()][start::step]:
        found[claim.id] = finding_of(claim, evidence)
        assert claim_sentence(claim, found[claim.id], shown_numbers(found[claim.id]))
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_an_odd_number_changes_its_own_row_alone(recorded, paper):
    """Each odd number, in another row and metric of a paper: all tables with it, and a sixth of the claims."""
    results, definition = of_paper(recorded, paper)
    places = metrics_of(definition, results)
    for number, odd in enumerate(ODD):
        place = places[number * len(places) // len(ODD)]
        items = [
            item
            for item in definition.tables
            if (place["experiment"], place["method"]) in {(one.experiment, one.name) for one in definition.behind(item)}
        ]
        before = tables_of(definition, results, items)
        usual = tables_of(definition, with_number(results, place, lambda x: 1.5 * x + 0.01), items)
        after = tables_of(definition, with_number(results, place, lambda _, odd=odd: odd), items)
        assert after.keys() == before.keys(), (place, odd)
        own = {key for key in before if usual[key] != before[key]}
        assert {key for key in before if after[key] != before[key]} <= own, (
            place,
            odd,
        )


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_names_a_seed_that_diverged(recorded, paper):
    """A seed without a finite number: a claim on it says so, the others are as before. Other odd numbers end none."""
    results, definition = of_paper(recorded, paper)
    before = judged(definition, results, 0, 1)
    after = judged(definition, with_seed(results, 2, math.nan), 0, 1)
    for name, finding in after.items():
        assert finding == before[name] or "seed 2" in finding.note, name
    for number, odd in enumerate(ODD):
        found = judged(definition, with_seed(results, 2, odd), number, len(ODD))
        assert all(finding.verdict for finding in found.values())
        if math.isinf(odd):
            for name, finding in found.items():
                assert finding == before[name] or "seed 2" in finding.note, name


def with_seed(results: Results, seed: int, number: float) -> Results:
    """The results with one number for every metric of a seed."""
    metrics = results.metrics.copy()
    metrics.loc[metrics["seed"] == seed, "value"] = number
    return index_results(results.folder, metrics)


@pytest.mark.parametrize("paper", PAPERS)
def test_tables_and_claims_without_a_run_and_with_one_seed(recorded, paper):
    results, definition = of_paper(recorded, paper)
    before = tables_of(definition, results)
    for metrics in without_runs(definition, results):
        fewer = index_results(results.folder, metrics)
        assert tables_of(definition, fewer).keys() <= before.keys()
        for name, finding in judged(definition, fewer, 0, 5).items():
            assert finding.verdict, name


def without_runs(definition: Definition, results: Results):
    """The metrics without a run, and those of one seed."""
    method = definition.shown()[0]
    place = {"experiment": method.experiment, "method": method.name, "seed": results.seeds_of(method)[0]}
    kept = ~(results.metrics[list(place)] == list(place.values())).all(axis=1)
    return results.metrics[kept], results.metrics[results.metrics["seed"] == 1]


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_an_odd_number_in_any_row_ends_nothing(recorded, paper):
    """All tables, texts and files are made, with the same cells, whatever a seed of any row is."""
    results, definition = of_paper(recorded, paper)
    before = tables_of(definition, results)
    places = metrics_of(definition, results)
    for place, odd in zip(places, itertools.cycle(ODD), strict=False):
        after = tables_of(definition, with_number(results, place, lambda _, odd=odd: odd))
        assert after.keys() == before.keys(), (place, odd)


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_an_odd_number_changes_only_what_depends_on_it(recorded, paper):
    """What does not change with a very large or very small number, does not with an odd one, to the last digit."""
    results, definition = of_paper(recorded, paper)
    before = report_of(definition, results)
    places = metrics_of(definition, results)
    for place, numbers in zip((places[0], places[len(places) // 2]), (ODD[::2], ODD[1::2]), strict=True):
        depends = set()
        for change in (lambda x: 1e6 * (abs(x) + 1), lambda x: -1e6 * (abs(x) + 1), lambda x: 1.5 * x + 0.01):
            usual = report_of(definition, with_number(results, place, change))
            depends |= {key for key, said in usual.items() if said != before.get(key)}
        for odd in numbers:
            after = report_of(definition, with_number(results, place, lambda _, odd=odd: odd))
            changed = {key for key in before if after.get(key) != before[key] and key[0] != "note"}
            # A conjunction may not change with a number of a part that does not decide, but is not judged without it.
            named = {("claim", key[1]) for key in after if key[0] == "note" and f"seed {place['seed']}" in after[key]}
            assert changed <= depends | named, (place, odd)
            assert after.keys() == before.keys(), (place, odd)


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.filterwarnings("ignore:constrained_layout")
def test_figures_of_odd_numbers(recorded, paper):
    """Every figure that shows metrics is drawn with each odd number in one seed of one of its methods."""
    results, definition = of_paper(recorded, paper)
    for item in DRAWN[paper]:
        methods = definition.behind(item)
        for number, odd in enumerate(ODD):
            method = methods[number % len(methods)]
            place = {"experiment": method.experiment, "method": method.name, "seed": results.seeds_of(method)[0]}
            changed = with_number(results, place, lambda _, odd=odd: odd)
            with house_style():
                figure, text = draw(definition, item, changed)
                figure.draw_without_rendering()
            assert text
            assert math.isfinite(odd) or f"in seed {place['seed']}" in text + words_of(figure) or item == "figure4"


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.slow
def test_a_run_that_is_missing_and_an_experiment_with_one_seed(recorded, paper):
    results, definition = of_paper(recorded, paper)
    for metrics in without_runs(definition, results):
        assert report_of(definition, index_results(results.folder, metrics))


def words_of(figure) -> str:
    """All texts in a figure."""
    return " ".join(one.get_text() for one in figure.findobj(Text))
