"""The profile `slurm` on a real SLURM of one node, or two: time limits, failures, preemption, restarts.

Run by `make test-slurm`. A SLURM that runs here is used; else one is started by the program `start-slurm` (of the
variable SLURM_TEST_START, of ../shared/tools/slurm beside the project, or of PATH), which needs root. Without either
the tests are skipped. A cluster that lacks what a test needs (preemption, an end for jobs that use more memory than
they asked for) skips that test. Most of their time is waiting, so `make test-slurm` runs several side by side, each
process of pytest with a cluster of its own.
"""

import contextlib
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import safetensors.torch
import torch
import yaml
from filelock import FileLock
from tests.workflow.conftest import PARTS, ROOT
from tests.workflow.running import has_state, slow_down, snakemake, wait_for
from tests.workflow.test_dag import MODELS

from rarepapers.core.files import read_json

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1200)]

STARTER = Path("..") / "shared" / "tools" / "slurm" / "start-slurm"
RUNS = "results/smoke/runs/shakespeare"
RUN = f"{RUNS}/baseline/seed1"
# The profile of a user, but for a cluster of two CPUs, and with more frequent status checks.
PROFILE = (
    *("--workflow-profile", "slurm", "--cores", 2, "--latency-wait", 10),
    *("--slurm-init-seconds-before-status-checks", 2, "--seconds-between-status-checks", 2),
)


def starter():
    """The program that starts a SLURM, or None."""
    named = os.environ.get("SLURM_TEST_START")
    found = [Path(named)] if named else [ROOT / STARTER, Path(shutil.which("start-slurm") or "nowhere")]
    return next((path for path in found if path.is_file()), None)


@pytest.fixture(scope="module")
def cluster(request):
    """A running SLURM."""
    if "slurm" not in (request.config.getoption("markexpr") or ""):
        pytest.skip("these tests start a cluster; run them with make test-slurm")
    if shutil.which("sinfo") and ask("sinfo", "--noheader"):
        yield
        return
    program = starter()
    if program is None:
        pytest.skip("no SLURM runs here, and there is no start-slurm; name it in SLURM_TEST_START")
    if os.geteuid() != 0:
        pytest.skip("no SLURM runs here, and starting one needs root")
    # Not in a folder of pytest, which the other users of SLURM's daemons cannot read.
    folder = Path(tempfile.mkdtemp(prefix="raretok-slurm-"))
    options = ["--install", "--accounting", "--preempt", "--kill-over-memory"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_TEST_DIR", str(folder))
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        patch.setenv("SLURM_TEST_CPUS", "2")
        patch.setenv("SLURM_TEST_KILL_WAIT", "15")
        patch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        # Only one process can install packages at a time.
        with FileLock(Path(tempfile.gettempdir()) / "raretok-start-slurm.lock"):
            started = subprocess.run([program, *options], capture_output=True, text=True)
        if started.returncode == 0:
            yield
        subprocess.run([program.with_name("stop-slurm"), "--purge"], capture_output=True)
    if started.returncode != 0:
        reasons = [line for line in started.stderr.splitlines() if "error" in line.lower()]
        pytest.skip(f"SLURM does not start: {' '.join(reasons)}")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A project with a prepared character corpus."""
    folder = copy_project(tmp_path_factory.mktemp("prepared") / "project")
    result = snakemake(folder, "--cores", 1, "results/smoke/data/synthetic_characters/manifest.json")
    assert result.returncode == 0, result.stdout
    return folder


@pytest.fixture
def ready(cluster, prepared, tmp_path):
    """A copy of it; its jobs are removed from the queue at the end."""
    project = shutil.copytree(prepared, tmp_path / "project", symlinks=True)
    yield project
    if left_over := jobs_of(project):
        subprocess.run(["scancel", *left_over])


@pytest.fixture
def two_nodes(cluster):
    """The names of the cluster's node and of a second one, which the machine is, too, until the test ends."""
    folder = Path(os.environ.get("SLURM_TEST_DIR", "no cluster of these tests"))
    settings = folder / "slurm.conf"
    if not settings.is_file():
        pytest.skip("only a cluster that the tests started gets a second node")
    before, gpus = settings.read_text(), (folder / "gres.conf").read_text()
    name, rest = re.search(r"^NodeName=(\S+) (.*)$", before, flags=re.MULTILINE).groups()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        second = f"NodeName=second NodeHostname={name} Port={free.getsockname()[1]} {rest}"
    both = before.replace(rest, f"{rest}\n{second}").replace(f"Nodes={name} ", f"Nodes={name},second ")
    of_second = re.sub(
        r"^(SlurmdSpoolDir|SlurmdPidFile|SlurmdLogFile)=(.*)$", r"\1=\2-second", both, flags=re.MULTILINE
    )
    (folder / "second.conf").write_text(of_second)
    (folder / "gres.conf").write_text(gpus + gpus.replace(f"NodeName={name} ", "NodeName=second "))
    settings.write_text(both)
    restart_controller()
    subprocess.run(["slurmd", "-f", folder / "second.conf", "-N", "second"], check=True)
    end = time.monotonic() + 60
    while ask("sinfo", "--noheader", "--partition=cpu", "--format=%t %D") != "idle 2":
        assert time.monotonic() < end, ask("sinfo")
        time.sleep(0.5)
    yield name, "second"
    (pid_file,) = re.findall(r"SlurmdPidFile=(\S+)", of_second)
    psutil.Process(int(Path(pid_file).read_text())).kill()
    settings.write_text(before)
    (folder / "gres.conf").write_text(gpus)
    restart_controller()


def restart_controller(pause=0):
    """Kill SLURM's controller and start it again, after some seconds; skips a test if it is on another machine."""
    (pid_file,) = re.findall(r"SlurmctldPidFile *= (\S+)", ask("scontrol", "show", "config"))
    if not Path(pid_file).is_file():
        pytest.skip("the controller of this SLURM is on another machine")
    controller = psutil.Process(int(Path(pid_file).read_text()))
    command, environment = controller.cmdline(), controller.environ()
    controller.kill()
    time.sleep(pause)
    subprocess.run(command, env=environment, check=True)
    subprocess.run(["scontrol", "reconfigure"], capture_output=True)


def copy_project(folder):
    """The files a workflow needs, and the link by which Snakemake finds the profiles."""
    folder.mkdir()
    for part in PARTS:
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / part)
    (folder / "profiles").symlink_to("workflow/profiles")
    return folder


def ask(*command):
    """The output of a command; empty if it fails."""
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def queue(*columns):
    """Rows of squeue, this user's."""
    return [line.split("|") for line in ask("squeue", "--me", "--noheader", "--format", "|".join(columns)).splitlines()]


def jobs_of(project):
    """Jobs in the queue that were submitted from a folder."""
    return [job for job, folder in queue("%A", "%Z") if folder == str(project)]


def needs(setting):
    """Skip a test unless the cluster has this setting."""
    if setting not in re.sub(r" *= *", "=", ask("scontrol", "show", "config")):
        pytest.skip(f"this SLURM is set up without {setting}")


def submitted(text):
    """Jobs that a Snakemake submitted, in order."""
    return re.findall(r"has been submitted with SLURM jobid (\d+)", text)


def accounts(jobs, *columns):
    """SLURM's accounting of jobs: rows of sacct, for the last start of each."""
    asked = ["sacct", "-X", "-P", "-n", "--jobs", ",".join(jobs), f"--format={','.join(columns)}"]
    return [line.split("|") for line in ask(*asked).splitlines()]


@contextlib.contextmanager
def no_delay():
    """SLURM delays a requeued job by two minutes; let it start at once."""
    done = threading.Event()

    def hurry():
        while not done.wait(1):
            for job, reason in queue("%A", "%r"):
                if reason == "BeginTime":
                    subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], capture_output=True)

    thread = threading.Thread(target=hurry)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def hold_until_warned(project):
    """Stop the trainings of a project until SLURM has sent them SIGTERM, with or without a SIGCONT before it."""
    trainings = [process for process in psutil.process_iter() if is_training(process, project)]
    assert trainings
    for training in trainings:
        training.suspend()
    time.sleep(1)  # SIGSTOP needs a moment
    end = time.monotonic() + 150
    while any(is_held(training) for training in trainings):
        assert time.monotonic() < end, "SLURM sent no warning"
        time.sleep(0.2)
    for training in trainings:
        with contextlib.suppress(psutil.NoSuchProcess):
            training.resume()


def is_training(process, project):
    with contextlib.suppress(psutil.Error):
        return {"rarepapers", "train"} <= set(process.cmdline()) and process.cwd() == str(project)


def is_held(process):
    """Whether a process is stopped and no SIGTERM waits for it (proc(5): ShdPnd, a hexadecimal mask)."""
    try:
        waiting = re.search(r"ShdPnd:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text()).group(1)
        return process.status() == psutil.STATUS_STOPPED and not int(waiting, 16) >> (signal.SIGTERM - 1) & 1
    except (OSError, psutil.NoSuchProcess):
        return False


def weights(folder):
    return safetensors.torch.load_file(folder / "last.safetensors")


def finish(process, seconds=400):
    """The output of a Snakemake that must succeed."""
    output = process.communicate(timeout=seconds)[0]
    assert process.returncode == 0, output
    return output


def test_a_whole_paper(cluster, tmp_path):
    project = copy_project(tmp_path / "project")
    # Four runs per job, as for tiny models.
    packed = ("--groups", "train=run", "evaluate=run", "table=items", "figure=items")
    packed = (*packed, "--group-components", "run=4", "items=20", "shards=50")
    seen = set()
    with ThreadPoolExecutor() as pool:
        running = pool.submit(snakemake, project, "natural_bias", *PROFILE, *packed)
        while not running.done():
            seen |= gpus_of_trainings(project)
            time.sleep(0.5)
    output = running.result().stdout
    assert running.result().returncode == 0, output
    paper = yaml.safe_load((project / "config/papers/natural_bias/paper.yaml").read_text())
    for item in paper["figures"]:
        assert (project / f"results/smoke/figures/natural_bias/{item}.svg").stat().st_size > 0
    records = [read_json(path) for path in project.glob("results/smoke/runs/**/training.json")]
    assert len(records) == MODELS["natural_bias"]
    # Each of the two concurrent jobs had its own GPU; torch cannot use them, and device is auto.
    assert seen == {"0", "1"}
    assert all(record["resumes"] == 0 for record in records)
    jobs = accounts(submitted(output), "State", "AllocTRES")
    if jobs:
        assert {state for state, _ in jobs} == {"COMPLETED"}
        # Four runs per job, one GPU each; figures and corpora need none.
        assert ["gres/gpu=1" in granted for _, granted in jobs].count(True) == math.ceil(len(records) / 4)
        # Five of runs, one of items; the parallel text, its two directions and its unigrams take a job each.
        assert len(jobs) <= math.ceil(len(records) / 4) + 6
    assert "Nothing to be done" in snakemake(project, *PROFILE, "natural_bias").stdout


def gpus_of_trainings(project):
    """CUDA_VISIBLE_DEVICES of all running trainings in a folder."""
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "train" in process.cmdline()[:4] and process.cwd() == str(project):
                found.add(process.environ().get("CUDA_VISIBLE_DEVICES"))
    return found


def test_a_cancelled_job_is_retried(ready):
    slow_down(ready, 4000)
    arguments = (f"{RUN}/training.json", "--config", "checkpoint_seconds=1")
    process = snakemake(ready, *PROFILE, *arguments, background=True)
    wait_for(has_state(ready), process)
    (job,) = jobs_of(ready)
    subprocess.run(["scancel", job], check=True)
    output = finish(process)
    check_report(output, job)
    assert f"JOB {job} ON" in output
    assert "CANCELLED AT" in output
    assert len(submitted(output)) == 2
    assert read_json(ready / RUN / "training.json")["resumes"] == 1


def check_report(output, job):
    """Assert that the report of a failed job has its rule, the rule's log, and SLURM's log."""
    _, _, report = output.partition("Error in group run")
    assert "rule train:" in report
    assert "log: logs/smoke/train/shakespeare/baseline/seed1.txt" in report
    assert re.search(rf"Logfile \S*/logs/slurm/group_run[\w-]*/{job}\.log:", report)


def test_a_job_out_of_memory_gets_more(ready):
    needs("OverMemoryKill")
    slow_down(ready, 4000)
    # The estimate is too low: the job with Snakemake's processes takes more than that, but not three times as much.
    hardware = ready / "workflow/rarepapers/rule_inputs/resources.py"
    text = hardware.read_text()
    assert "BASE_MEGABYTES = 2500" in text
    hardware.write_text(text.replace("BASE_MEGABYTES = 2500", "BASE_MEGABYTES = 350"))
    result = snakemake(ready, *PROFILE, f"{RUN}/training.json")
    assert result.returncode == 0, result.stdout
    jobs = submitted(result.stdout)
    assert len(jobs) > 1
    check_report(result.stdout, jobs[0])
    assert "exceeded memory limit" in result.stdout
    logs = "".join(path.read_text() for path in (ready / ".snakemake/log").glob("*.log"))
    asked = {int(memory) for memory in re.findall(r"rule train:\n(?: .*\n)*? +resources: .*?mem_mb=(\d+)", logs)}
    assert asked == {351 * attempt for attempt in range(1, len(jobs) + 1)}


def test_a_job_that_fails(ready):
    path = ready / "config/scales/smoke.yaml"
    scale = yaml.safe_load(path.read_text())
    scale["papers"]["stop_jostling"]["experiments"]["shakespeare"]["training"]["schedule"]["peak"] = 1e30
    path.write_text(yaml.safe_dump(scale))
    result = snakemake(ready, *PROFILE, f"{RUN}/metrics.json")
    assert result.returncode == 1
    jobs = submitted(result.stdout)
    for job in jobs:
        check_report(result.stdout, job)
    assert "raretok train: error: the loss of shakespeare/baseline seed 1 is not finite" in result.stdout
    # Three attempts, not three times three: nothing is retried within the cluster's job. The second and
    # third attempts end at once.
    assert len(jobs) == 3
    log = (ready / "logs/smoke/train/shakespeare/baseline/seed1.txt").read_text()
    assert log.count("is not finite at step") == 1
    assert "continuing" not in log
    logs = [path.read_text() for path in (ready / "logs/slurm").rglob("*.log")]
    assert len(logs) == 3
    assert not any("Trying to restart" in log for log in logs)


def test_a_node_that_fails_its_jobs_gets_no_further_attempts(ready):
    """The second attempt excludes it; this cluster has no other node, so SLURM refuses the job."""
    (node,) = set(ask("sinfo", "--noheader", "--format", "%n").split())
    for method in ("cwt", "cosreg"):
        log = ready / f"logs/smoke/train/shakespeare/{method}/seed1.txt"
        log.parent.mkdir(parents=True)
        log.write_text(f"raretok train: failed on node {node}\n")
    slow_down(ready, 4000)
    process = snakemake(ready, *PROFILE, f"{RUN}/training.json", "--config", "checkpoint_seconds=1", background=True)
    wait_for(has_state(ready), process)
    subprocess.run(["scancel", *jobs_of(ready)], check=True)
    output = process.communicate(timeout=400)[0]
    assert process.returncode == 1
    assert len(submitted(output)) == 1
    asked = "".join(path.read_text() for path in (ready / ".snakemake/log").glob("*.log"))
    assert asked.count(f"slurm_extra=--signal=TERM@120 --exclude={node}") == 2


def test_a_killed_snakemake_continues(ready):
    path = ready / "config/scales/smoke.yaml"
    slow_down(ready, 6000)
    scale = yaml.safe_load(path.read_text())
    scale["papers"]["stop_jostling"]["methods"]["cwt"] = {"training": {"steps": 50}}
    path.write_text(yaml.safe_dump(scale))
    short = f"{RUNS}/cwt/seed1/training.json"
    arguments = (*PROFILE, short, f"{RUN}/training.json", "--config", "checkpoint_seconds=1")
    process = snakemake(ready, *arguments, background=True)
    wait_for(lambda: (ready / short).exists() and has_state(ready, "shakespeare/baseline")(), process)
    process.kill()
    process.wait()
    finished = (ready / short).read_bytes()
    assert jobs_of(ready)
    # As `make slurm` does before it starts Snakemake
    unlock = subprocess.run(["python", "envs/unlock.py"], cwd=ready, capture_output=True, text=True)
    assert unlock.returncode == 0, unlock.stderr
    assert "in the queue; trainings save their state first" in unlock.stdout
    assert not jobs_of(ready)
    result = snakemake(ready, *arguments)
    assert result.returncode == 0, result.stdout
    # With its original seconds: Snakemake missed the end, but nothing was trained again.
    assert (ready / short).read_bytes() == finished
    assert read_json(ready / RUN / "training.json")["resumes"] == 1


def test_a_preempted_training_continues(ready):
    needs("PreemptMode=REQUEUE")
    slow_down(ready, 4000)
    spot = ("--default-resources", "slurm_partition=spot", "mem_mb=2000", "runtime=30")
    arguments = (f"{RUN}/training.json", *spot, "--config", "checkpoint_seconds=1")
    with no_delay():
        process = snakemake(ready, *PROFILE, *arguments, background=True)
        wait_for(has_state(ready), process)
        other = ask("sbatch", "--parsable", "--partition=cpu", "--exclusive", "--output=/dev/null", "--wrap=sleep 5")
        output = finish(process)
    assert accounts([other], "State") == [["COMPLETED"]]
    assert len(submitted(output)) == 1
    assert "Trying to restart" not in output
    assert read_json(ready / RUN / "training.json")["resumes"] == 1


def test_two_nodes(ready, two_nodes):
    """Every job is on one node, whether it asks for one CPU or two, and the nodes share the work."""
    slow_down(ready, 1500)
    targets = [f"{RUNS}/{method}/seed1/training.json" for method in ("baseline", "cwt", "cosreg", "monolingual")]
    result = snakemake(ready, *PROFILE, "--set-threads", "train=2", "--", *targets)
    assert result.returncode == 0, result.stdout
    jobs = [ask("scontrol", "show", "job", job) for job in submitted(result.stdout)]
    assert len(jobs) == len(targets)
    assert all("NumNodes=1 NumCPUs=2 " in re.sub(r" +", " ", job) for job in jobs), jobs
    assert {re.search(r" NodeList=(\S+)", job).group(1) for job in jobs} == set(two_nodes)


def test_an_attempt_after_a_faulty_node_is_made_on_the_other(ready, two_nodes):
    faulty, other = two_nodes
    for method in ("cwt", "cosreg"):
        log = ready / f"logs/smoke/train/shakespeare/{method}/seed1.txt"
        log.parent.mkdir(parents=True)
        log.write_text(f"raretok train: failed on node {faulty}\n")
    slow_down(ready, 4000)
    process = snakemake(ready, *PROFILE, f"{RUN}/training.json", "--config", "checkpoint_seconds=1", background=True)
    wait_for(has_state(ready), process)
    subprocess.run(["scancel", *jobs_of(ready)], check=True)
    jobs = submitted(finish(process))
    assert len(jobs) == 2
    assert f" NodeList={other}\n" in ask("scontrol", "show", "job", jobs[-1])


def test_jobs_survive_a_restart_of_the_controller(ready):
    """Jobs run on without the controller; Snakemake polls until it is back."""
    slow_down(ready, 4000)
    process = snakemake(ready, *PROFILE, f"{RUN}/metrics.json", "--config", "checkpoint_seconds=1", background=True)
    wait_for(has_state(ready), process)
    # Some of its status checks fail, while the training continues.
    restart_controller(pause=15)
    assert process.poll() is None
    output = finish(process)
    assert len(submitted(output)) == 1
    assert read_json(ready / RUN / "training.json")["resumes"] == 0


def test_a_training_continues_after_its_time_limit(ready, tmp_path):
    """Of two minutes, with a warning at least one before their end, until which even a fast machine has to train."""
    steps = 4000
    slow_down(ready, steps)
    unbroken = shutil.copytree(ready, tmp_path / "unbroken", symlinks=True)
    limit = ("train:runtime=2", "train:gpu=1", "train:gpu_percent=0", "train:slurm_extra='--signal=TERM@60'")
    arguments = (f"{RUN}/training.json", "--config", "checkpoint_seconds=1", "--set-resources", *limit)
    with no_delay():
        process = snakemake(ready, *PROFILE, *arguments, background=True)
        wait_for(has_state(ready), process)
        hold_until_warned(ready)
        alone = snakemake(unbroken, "--cores", 1, f"{RUN}/training.json")
        output = finish(process)
    assert alone.returncode == 0, alone.stdout
    record = read_json(ready / RUN / "training.json")
    assert record["resumes"] >= 1
    assert record["steps"] == steps
    # SLURM restarted the same job and used up none of Snakemake's attempts.
    job, *further = submitted(output)
    assert re.search(r"Restarts=[1-9]", ask("scontrol", "show", "job", job))
    if further:
        # The last warning came after the training but within its job, so the next one only puts files in place.
        assert "was finished before" in (ready / "logs/smoke/train/shakespeare/baseline/seed1.txt").read_text()
    ours, theirs = weights(ready / RUN), weights(unbroken / RUN)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
