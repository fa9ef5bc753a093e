"""Cost of runs, from their metrics.json."""

import json

import pandas as pd
from tests.workflow.conftest import ROOT

from rarepapers.__main__ import main
from rarepapers.reporting.cost import COLUMNS, by_device, costs, trained
from rarepapers.reporting.csv_rows import read_rows

RECORDED = sorted((ROOT / "results/recorded/small").glob("runs/*/*/*/metrics.json"))


def write(folder, name, **changes):
    run = {"paper": "agg", "experiment": "e", "method": name, "seed": 1, "device": "NVIDIA H200", "seconds": 3600.0}
    run |= {"tokens": 7_200_000, "peak_memory_gib": 10.0, "resumes": 2, "settings": {"training": {"threads": 4}}}
    path = folder / name / "metrics.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"training": run | changes, "metrics": []}))
    return path


def test_there_is_one_row_per_run(tmp_path):
    paths = [write(tmp_path, "b"), write(tmp_path, "a", seconds=1800.0)]
    table = costs(paths)
    assert list(table.columns) == COLUMNS
    assert list(table["method"]) == ["a", "b"]
    assert list(table["tokens_per_second"]) == [4000, 2000]
    output = tmp_path / "cost.csv"
    assert main(["cost", "--metrics", *map(str, paths), "--output", str(output)]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(output, keep_default_na=False), table.reset_index(drop=True))


def test_a_copied_training_is_counted_once(tmp_path):
    copied = {"experiment": "e", "method": "a", "seed": 1}
    paths = [write(tmp_path, "a"), write(tmp_path, "copy", same_as=copied)]
    table = costs(paths)
    assert list(table["same_as"]) == ["", "e/a/1"]
    assert list(table["seconds"]) == [3600, 0]
    (row,) = by_device(table)
    assert (row["runs"], row["hours"], row["slowest"]) == (1, "1.00 GPU-hours", "2,000")


def test_hours_are_of_a_gpu_or_a_core(tmp_path):
    paths = [
        write(tmp_path, "a"),
        write(tmp_path, "b", seconds=1800.0, peak_memory_gib=20.0),
        write(tmp_path, "c", device="CPU, made up, 4 thread(s)"),
        write(tmp_path, "d", device="NVIDIA H100", cpu_seconds=9.0),
        write(tmp_path, "e", device="CPU, made up, 4 thread(s)", cpu_seconds=900.0),
    ]
    cpu, other, gpu = by_device(costs(paths))
    assert (cpu["hours"], cpu["runs"]) == ("4.25 core-hours", 2)
    assert other["hours"] == "1.00 GPU-hours"
    assert (gpu["hours"], gpu["runs"], gpu["resumes"]) == ("1.50 GPU-hours", 2, 4)
    assert (gpu["peak"], gpu["speed"], gpu["slowest"], gpu["fastest"]) == ("20.00", "3,000", "2,000", "4,000")


def test_recorded_runs_have_costs():
    table = costs(RECORDED)
    assert len(table) == len(RECORDED) > 20
    assert table.notna().all().all()
    assert (trained(table)["tokens_per_second"] > 100).all()


def test_the_recorded_table_has_every_recorded_run():
    """Copied runs, too; if this fails, run `make recorded`."""
    rows = read_rows(ROOT / "results/recorded/small/cost.csv")
    listed = [(row["experiment"], row["method"], f"seed{row['seed']}") for row in rows]
    assert sorted(listed) == sorted(path.parts[-4:-1] for path in RECORDED)
    assert ("cross_bpe", "mle_rate1", "seed3") in listed
