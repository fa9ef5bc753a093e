"""A new paper needs two folders and one line of config.yaml for its table, figure and claim."""

import pandas as pd
import pytest
from tests.workflow.running import snakemake

PAPER = """
title: "A fifth paper"
experiments:
  fifth_task:
    corpus: {name: synthetic_characters, low_resource_probability: 0.1}
    model: {name: decoder, layers: 1, heads: 1, width: 16, context: 16, tied: true}
    training:
      steps: 20
      batch_size: 4
      optimiser: {name: adamw, betas: [0.9, 0.99], eps: 1.0e-8, weight_decay: 0.1}
      schedule: {name: cosine, peak: 1.0e-3, final: 1.0e-4, warmup: 2}
      clip_norm: 1.0
      validation: {every: 10, batches: 2}
      threads: 1
    evaluation: {batch_size: 4, drop_incomplete: true, examples: 8, neighbours: 3}
methods:
  plain: {label: "Plain"}
  dropped: {label: "Dropped", loss: {name: threshold, margin: 1}}
tables:
  table1:
    title: "Perplexity"
    kind: metrics
    columns: {PPL: {metric: perplexity, format: ".2f"}}
    groups: [HR, LR]
    methods: [plain, dropped]
figures:
  figure1: {title: "A number", methods: [plain]}
"""
NUMBERS = """item,row,column,group,value,unit,direction,rerun_by_paper,note,reference
table1,Plain,PPL,LR,20.0,perplexity,down,yes,,
table1,Dropped,PPL,LR,19.0,perplexity,down,yes,,
"""
CLAIMS = """id,kind,sentence,quantity,unit,null,direction,margin,size,ours,predicate,where,measured_by,\
holds_on_printed_numbers,note
fifth.t1.lower,experiment,Dropping helps,table1 | Dropped | PPL | LR against Plain,perplexity,0,<,,,,,1,table,yes,
"""
FIGURES = '''"""Figures of the fifth paper."""

from rarepapers.reporting.figures.shown import first_run
from rarepapers.reporting.figures.style import sheet


def figure1(definition, item, results):
    """Counts of characters."""
    figure = sheet(2)
    figure.subplots().plot(first_run(results, definition.methods_of(item)[0])["counts"])
    return figure, "Counts."
'''


def sized_as_written(project, paper):
    """Scale smoke takes the sizes of the paper's own file."""
    scale = project / "config/scales/smoke.yaml"
    scale.write_text(scale.read_text().replace("\npapers:\n", f"\npapers:\n  {paper}: {{}}\n"))


def test_a_paper_may_not_have_the_name_of_a_rule(project):
    """Each paper is a rule."""
    folder = project / "config" / "papers" / "table"
    folder.mkdir()
    for name, text in (
        ("paper.yaml", PAPER),
        ("numbers.csv", NUMBERS),
        ("claims.csv", CLAIMS.replace("fifth.", "table.")),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    shown = project / "workflow/rarepapers/papers/table"
    shown.mkdir()
    (shown / "figures.py").write_text(FIGURES)
    sized_as_written(project, "table")
    result = snakemake(project, "-n", "--config", "papers=[table]")
    assert result.returncode == 1
    assert "config/papers/table: a rule has this name; give the paper another one" in result.stdout


@pytest.mark.timeout(600)
def test_a_fifth_paper_needs_two_folders_and_one_line(project):
    said, shown = project / "config/papers/fifth", project / "workflow/rarepapers/papers/fifth"
    for folder, files in (
        (said, {"paper.yaml": PAPER, "numbers.csv": NUMBERS, "claims.csv": CLAIMS}),
        (shown, {"__init__.py": '"""The fifth paper."""\n', "figures.py": FIGURES}),
    ):
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    sized_as_written(project, "fifth")
    config = project / "config/config.yaml"
    lines = config.read_text().splitlines()
    config.write_text("\n".join("papers: [fifth]" if line.startswith("papers:") else line for line in lines))

    result = snakemake(project, "--cores", "2")
    assert result.returncode == 0, result.stdout
    results = project / "results/smoke"
    table = pd.read_csv(results / "tables/fifth/table1.csv")
    assert {"Plain", "Dropped"} <= set(table["row"])
    assert set(table["published"].dropna()) == {19.0, 20.0}
    assert table["value"].notna().all()
    assert (results / "figures/fifth/figure1.svg").exists()
    assert list(pd.read_csv(results / "claims.csv")["id"]) == ["fifth.t1.lower"]
    assert "A fifth paper" in (results / "report/fifth.html").read_text()
    assert "Nothing to be done" in snakemake(project, "--cores", "2").stdout
