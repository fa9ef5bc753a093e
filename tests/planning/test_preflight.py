"""The preflight check: what would fail is one sentence before any job."""

import json
import re
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
import yaml

from rarepapers.__main__ import main
from rarepapers.experiments.run_table import load
from rarepapers.experiments.trained_runs import code_that_trains
from rarepapers.planning import preflight

ROOT = Path(__file__).parents[2]
RUN = "shakespeare/baseline/seed1"
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def root(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    return tmp_path


def check(root, *choices, only=(RUN,), files=None):
    options = ["--root", root, "--config", *choices, "--only", *only, "--elsewhere"]
    options += ["--files", *files] if files is not None else []
    return main(["preflight", *map(str, options)])


def test_the_plan_is_printed_and_written(root, capsys):
    assert check(root) == 0
    printed = capsys.readouterr().out
    assert re.search(r"1 of \d+ models to train", printed)
    assert "Data: all there" in printed
    plan = (root / "results/smoke/plan.txt").read_text()
    assert plan.startswith(printed.partition("Cost of each run")[0])
    assert f"\n{RUN} " in plan
    assert "H100: 3 measured rows" in plan


def test_an_unknown_run_is_an_error(root, capsys):
    assert check(root, only=[RUN, "shakespeare/baseline/seed01"]) == 2
    assert "there is no run shakespeare/baseline/seed01" in capsys.readouterr().err
    assert not (root / "results/smoke/plan.txt").exists()


def test_the_memory_of_an_unmeasured_machine_is_unknown(root, capsys):
    path = root / "config/throughput.yaml"
    speeds = yaml.safe_load(path.read_text())
    speeds["machines"] = {"mine": {"source": "a test"}}
    speeds["measured"] = [{k: v for k, v in speeds["measured"][0].items() if k != "gib"} | {"machine": "mine"}]
    path.write_text(yaml.safe_dump(speeds))
    assert check(root) == 0
    assert re.search(r"peak GiB .*\nstop_jostling +1 .* \? ", capsys.readouterr().out)


def test_finished_runs_are_not_planned(root, capsys):
    options = ["preflight", "--root", str(root), "--papers", "stop_jostling", "--elsewhere"]
    assert main(options) == 0
    assert "49 of 49 models to train" in capsys.readouterr().out
    record = root / "results/smoke/runs" / RUN / "training.json"
    record.parent.mkdir(parents=True)
    run = load(yaml.safe_load((root / "config/config.yaml").read_text()), root).named(RUN)
    code = code_that_trains(run)
    # A training with other settings, or by other code, is repeated.
    for settings, sources, number in (("other", code, 49), (run.hash, "other", 49), (run.hash, code, 48)):
        record.write_text(json.dumps({"hash": settings, "sources": sources}))
        assert main(options) == 0
        assert f"{number} of 49 models to train" in capsys.readouterr().out


def test_weights_of_gpt2_are_among_the_files(root, capsys):
    options = ["preflight", "--root", str(root), "--scale", "small", "--papers", "stop_jostling", "--elsewhere"]
    for choice, number in (("skip", 1), ("hub", 5)):
        assert main([*options, "--config", f"gpt2_weights={choice}"]) == 0
        assert f"Data: to download, files: {number}" in capsys.readouterr().out
    # They do not belong to a run.
    assert check(root, "scale=small", "gpt2_weights=hub") == 0
    assert "Data: to download, files: 1" in capsys.readouterr().out


def test_a_disk_that_is_too_small_is_an_error(root, capsys, monkeypatch):
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda folder: Usage(10**9, 10**9 - 1000, 1000))
    assert check(root) == 2
    message = capsys.readouterr().err
    assert "has 0.0 GB free, and about 0.0 GB are needed; make room" in message
    assert not (root / "results/smoke/plan.txt").exists()


def test_a_mirror_that_lacks_a_file_is_an_error(root, capsys):
    mirror = root / "mirror"
    mirror.mkdir()
    choices = ("scale=small", f"data_mirror={mirror}")
    assert check(root, *choices) == 2
    message = capsys.readouterr().err
    assert f"the data mirror {mirror} lacks 1 of 1 files, such as input.txt of tiny_shakespeare;" in message
    assert f"make fetch SCALE=small MIRROR={mirror}" in message
    (mirror / "tinyshakespeare").mkdir()
    (mirror / "tinyshakespeare" / "input.txt").touch()
    assert check(root, *choices) == 0
    assert f"Data: in {mirror}, files: 1" in capsys.readouterr().out


def test_a_file_to_download_by_hand_is_an_error(root, capsys):
    run, wanted = "afromt_af-en/zero/seed1", "afromt/afromt/en-af/train.af"
    assert check(root, "scale=paper", only=[run], files=[wanted]) == 2
    message = capsys.readouterr().err
    assert "afromt.tar.xz of afromt cannot be downloaded: the authors share it on Google Drive only" in message
    assert "resources/cache/afromt/afromt.tar.xz, or leave out what needs it" in message
    (root / "resources/cache/afromt").mkdir(parents=True)
    (root / "resources/cache/afromt/afromt.tar.xz").touch()
    assert check(root, "scale=paper", only=[run], files=[wanted]) == 0
    assert check(root, "scale=paper", "gpt2_weights=nowhere", only=[run], files=[]) == 2
    assert "gpt2_weights is nowhere, which is not a folder" in capsys.readouterr().err


def test_a_missing_device_is_an_error(root, capsys, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    options = ["preflight", "--root", str(root), "--only", RUN]
    assert main([*options, "--config", "device=cuda"]) == 2
    assert "device is cuda, but torch sees no GPU here" in capsys.readouterr().err
    assert main([*options, "--config", "device=cpu"]) == 0
    assert "Device: the CPU (device: cpu)" in capsys.readouterr().out
    assert main(options) == 0
    assert "sees no GPU" in capsys.readouterr().out


def test_a_gpu_is_found_by_name_and_a_small_one_gives_a_warning(root, capsys, monkeypatch):
    import torch

    small = namedtuple("Properties", "total_memory")(2**30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA A100-SXM4-80GB")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: small)
    options = ["preflight", "--root", str(root), "--scale", "paper", "--only", "language_model/mle/seed1", "--files"]
    assert main(options) == 0
    printed = capsys.readouterr().out
    assert "Device: 2 x NVIDIA A100-SXM4-80GB" in printed
    assert "hours, A100" in printed
    assert "hours, H100" not in printed
    assert "Warning: the largest model is estimated to take 9 GiB of the device's 1." in printed
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA B200")
    assert main(options) == 0
    assert "which is not in config/throughput.yaml" in capsys.readouterr().out
