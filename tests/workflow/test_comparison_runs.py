"""The comparison of all methods at scale smoke, from the config to the sentences above the table."""

import json

import pandas as pd
import pytest
from tests.workflow.running import snakemake

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

STEM = "results/smoke/tables/cross/table1"


def test_three_tasks_are_trained_chosen_and_compared(project):
    result = snakemake(project, "--cores", "2", f"{STEM}.csv", "results/smoke/figures/cross/figure1.svg")
    assert result.returncode == 0, result.stdout[-5000:]
    runs = sorted((project / "results/smoke/runs").glob("cross_*/*/seed1/metrics.json"))
    assert len(runs) == 3 * 3 * 2
    table = pd.read_csv(project / f"{STEM}.csv")
    for task, experiment in (
        ("characters", "cross_character"),
        ("BPE tokens", "cross_bpe"),
        ("translation", "cross_translation"),
    ):
        # The candidate in the table has the lowest perplexity of the validation text in its file.
        scores, used = {}, {}
        for path in runs:
            if path.parts[-4] == experiment and path.parts[-3].startswith("agg_"):
                content = json.loads(path.read_text(encoding="utf-8"))
                rows, name = content["metrics"], path.parts[-3]
                # In units of the corpus, as the run derived it.
                used[name] = content["training"]["derived"].get("alpha") or float(name.removeprefix("agg_alpha"))
                keys = ("fitted_perplexity", "total", "valid@best")
                (scores[path.parts[-3]],) = [
                    row["value"] for row in rows if (row["metric"], row["group"], row["split"]) == keys
                ]
        best = min(scores, key=scores.get)
        row = table[table["row"] == f"AGG [{task}]"].set_index("column")["value"]
        assert row["chosen"] == f"alpha={used[best]:.4g}"
        for column in ("frequent", "rare", "rare - MLE, %", "Uniq", "I(W)", "time / MLE's", "GiB"):
            assert float(row[column]) == float(row[column]), column  # no NaN
    text = (project / f"{STEM}.md").read_text(encoding="utf-8")
    assert "One seed." in text
    assert "not comparable" not in text
    assert "Nothing to be done" in snakemake(project, "--cores", "2", f"{STEM}.csv").stdout
