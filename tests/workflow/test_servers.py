"""Jobs in copies of a server give what jobs by themselves give, bit for bit."""

import psutil
import pytest
from tests.workflow.running import slow_down, snakemake

RUNS = [f"results/smoke/runs/shakespeare/{method}/seed1" for method in ("baseline", "dut_m1", "cwt")]
# But training.json, metrics.json and the times in history.csv, which say how long it took.
FILES = ("model.safetensors", "last.safetensors", "observations.npz", "snapshots.safetensors", "arrays.npz")


@pytest.mark.slow
def test_runs_in_copies_are_those_of_processes_of_their_own(project_at):
    made = {}
    for name, environment in (("served", {}), ("alone", {"RARETOK_SERVERS": "/nowhere"})):
        folder = project_at(name)
        slow_down(folder, 40)
        result = snakemake(folder, "--cores", 2, *(f"{run}/metrics.json" for run in RUNS), **environment)
        assert result.returncode == 0, result.stdout
        made[name] = {(run, file): (folder / run / file).read_bytes() for run in RUNS for file in FILES}
    assert made["served"] == made["alone"]


@pytest.mark.slow
def test_servers_do_the_work_and_end_with_the_workflow(project):
    slow_down(project, 2000)
    process = snakemake(project, "--cores", 2, *(f"{run}/training.json" for run in RUNS), background=True)

    def servers():
        found = []
        for one in psutil.process_iter(["cmdline", "cwd"]):
            if "raretok.forkserver" in (one.info["cmdline"] or ()) and one.info["cwd"] == str(project):
                found.append(one)
        return found

    # The server, and the copies that train two runs at a time.
    while process.poll() is None and len(servers()) < 3:
        pass
    assert len(servers()) == 3
    process.kill()
    # Jobs go on, as without a server; who asks them to stop reaches those that asked.
    asking = [one for one in psutil.process_iter(["cmdline"]) if "train" in (one.info["cmdline"] or ())]
    for one in asking:
        if one.name().startswith("python") and one.cwd() == str(project):
            one.terminate()
    psutil.wait_procs(servers(), timeout=60)
    assert servers() == []
    assert list(project.glob("results/smoke/state/**/checkpoint.safetensors"))
