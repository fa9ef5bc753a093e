"""Times of real runs, many at once, by `rarepapers work`. Results stay in results/<scale>."""

import time

from gpu_stages.tables import ROOT
from gpu_stages.working import work
from rarepapers.core.files import read_json


def main(bench) -> None:
    scale, minutes = ("smoke", 0.5) if bench.tiny else (bench.scale, bench.minutes)
    before, started = set(records(scale)), time.monotonic()
    more = ["--order", str(bench.order.resolve())] if bench.order else []
    work(ROOT, scale, 2 if bench.tiny else bench.workers, minutes, bench.device, *more)
    wall = time.monotonic() - started
    new = [path for path in records(scale) if path not in before]
    for path in new:
        record = read_json(path)
        bench.emit(
            run=f"{record['experiment']}/{record['method']}/seed{record['seed']}",
            seconds=round(record["seconds"], 1),
            tokens_per_s=round(record["tokens"] / max(record["seconds"], 1e-9)),
            gib=round(record["peak_memory_gib"], 3),
            evaluated=(path.parent / "metrics.json").exists(),
        )
    bench.emit(workers=bench.workers, wall_seconds=round(wall, 1), runs=len(new), ok=bool(new))


def records(scale: str) -> list:
    """Records of the trained runs."""
    return sorted((ROOT / "results" / scale / "runs").glob("*/*/seed*/training.json"))
