"""Throughput: measured rows, and estimates in proportion to the nearest one."""

from pathlib import Path

import pytest
import yaml

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json, write_json
from rarepapers.experiments.run_size import Size, Training
from rarepapers.machine import processor
from rarepapers.planning import throughput
from rarepapers.planning.local_device import load_local
from rarepapers.planning.throughput import CPU, find, load, rows_of

ROOT = Path(__file__).parents[2]
SMALL = {"layers": 2, "width": 128, "types": 1000, "parameters": 2**20, "flops": 1e6}
LARGE = {"layers": 4, "width": 256, "types": 1000, "parameters": 2**24, "flops": 1e8}
BIG, SLOW = {"source": "made"}, {"slower": 3.0, "than": "big", "source": "made"}


@pytest.fixture(scope="module")
def machines():
    return load(ROOT)


def row(shape, **facts):
    return {"machine": "big", "what": "made", "shape": shape, "tokens": 1000, "seconds": 1.0, "where": "here"} | facts


def project(folder, rows, **machines):
    (folder / "config").mkdir(parents=True)
    content = {"machines": machines, "measured": rows}
    (folder / "config" / "throughput.yaml").write_text(yaml.safe_dump(content))
    return folder


def test_estimates_scale_the_nearest_row(tmp_path):
    rows = [row(SMALL, seconds=0.5), row(LARGE, seconds=8.0, gib=2.25)]
    machines = load(project(tmp_path, rows, big=BIG, slow=SLOW))
    # Nearer to the large row by ratio, though not by difference.
    middle = Size(**LARGE | {"flops": 2e7, "layers": 2, "parameters": 2**23})
    assert machines["big"].seconds(middle, 500) == pytest.approx(8.0 / 5 / 2)
    assert machines["slow"].seconds(middle, 500) == pytest.approx(3 * 8.0 / 5 / 2)
    # 2 GiB of the row are not its parameters'; the run has half the layers and half the tokens.
    assert machines["big"].gib(middle, 500) == pytest.approx(0.125 + 2 / 4)
    assert machines["slow"].gib(middle, 500) == machines["big"].gib(middle, 500)
    assert machines["big"].seconds(Size(**SMALL), 1000) == 0.5
    # The memory of the nearest row is not known, so the other one counts.
    assert machines["big"].gib(Size(**SMALL), 1000) == pytest.approx(2**-6 + 2 / 4)


def test_bfloat16_takes_longer_where_the_machine_lacks_it(tmp_path, monkeypatch):
    rows = [row(SMALL, machine=CPU), row(LARGE, machine=CPU, precision="float32", seconds=9.0)]
    root = project(tmp_path, rows, cpu=BIG | {"float32": 3.0})
    settings = {name: {"training": {"precision": name}} for name in ("float32", "bfloat16")} | {"": {"training": {}}}
    for flags, factor, precision in (("fpu avx512_bf16", 1.0, "bfloat16"), ("fpu avx2", 3.0, "float32")):
        (tmp_path / "cpuinfo").write_text(f"model name\t: A 1\nflags\t: {flags}\n")
        monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
        machine = load_local(root)[CPU]
        assert machine.precision == precision
        assert [machine.slowdown(one) for one in settings.values()] == [1.0, factor, 1.0]
        # A row that was measured in float32 needs no factor.
        for shape, seconds in ((SMALL, factor), (LARGE, 9.0)):
            monkeypatch.setattr(throughput, "size_of", lambda _, shape=shape: Size(**shape))
            monkeypatch.setattr(throughput, "training_of", lambda _: Training(steps=2, passes=1, tokens=1000))
            assert machine.training_seconds(settings["bfloat16"]) == pytest.approx(2 * seconds)


def test_rows_of_the_cpu_equal_recorded_runs(machines):
    recorded = {entry["what"]: entry for entry in rows_of(ROOT / "results/recorded/small")}
    written = yaml.safe_load((ROOT / "config/throughput.yaml").read_text(encoding="utf-8"))["measured"]
    written = [row for row in written if row["machine"] == CPU]
    assert len(written) == len({str(row["shape"]) for row in written})
    for row in written:
        own = recorded[row["what"]]
        assert row == own | {key: row[key] for key in ("shape", "where")}
        assert row["shape"] == pytest.approx(own["shape"])
        assert machines[CPU].seconds(Size(**own["shape"]), own["tokens"]) == pytest.approx(own["seconds"], rel=0.1)


def test_rows_are_of_runs_trained_alone(tmp_path):
    (one, *_) = (ROOT / "results/recorded/small").glob("runs/shakespeare/baseline/seed1/metrics.json")
    training = read_json(one)["training"] | {"device": "H100", "seconds": 100.0, "cpu_seconds": 50.0}
    runs = {
        "alone": {},
        "on_a_cpu": {"device": "CPU of some kind"},
        "in_a_shared_job": {"together": 4},
        "copied": {"same_as": {"method": "alone"}},
    }
    for name, facts in runs.items():
        path = tmp_path / "runs" / "shakespeare" / name / "seed1" / "metrics.json"
        write_json(path, {"training": training | {"method": name} | facts})
    rows = {row["what"].split("/")[1]: row for row in rows_of(tmp_path)}
    passes = training["settings"]["training"]["steps"]
    expected = {"alone": 100 / passes, "on_a_cpu": 50 / passes}
    assert {name: row["seconds"] for name, row in rows.items()} == pytest.approx(expected, abs=1e-5)


def test_mistakes_are_refused(tmp_path, machines):
    with pytest.raises(UserError, match="has no machine 'B200'; choose one of A40, A100, H100, cpu"):
        find(machines, "B200")
    with pytest.raises(UserError, match=r"machines.other has no measured rows; let `than` name"):
        load(project(tmp_path / "a", [row(SMALL)], big=BIG, other=BIG))
    with pytest.raises(UserError, match="measured names the machine 'big', which is not under machines"):
        load(project(tmp_path / "b", [row(SMALL)], other=BIG))
    with pytest.raises(UserError, match=r"unknown key machines\.big\.speed"):
        load(project(tmp_path / "c", [row(SMALL)], big=BIG | {"speed": 1}))
    with pytest.raises(UserError, match=r"key machines\.big\.than is missing; slower requires it"):
        load(project(tmp_path / "d", [row(SMALL)], big={"slower": 2.0, "source": "made"}))
    with pytest.raises(UserError, match="holds no evaluated run"):
        rows_of(tmp_path)
