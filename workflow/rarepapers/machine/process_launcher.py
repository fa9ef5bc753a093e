"""Several processes of one command on this machine, started and monitored by torch's launcher (torchrun)."""

import logging
import os
import signal
import sys

from rarepapers.core.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR, UserError
from rarepapers.machine.signals import SIGNALS

# Time that processes have to save their state after they were asked to stop; then they are killed.
SAVE_SECONDS = 600


def launch(processes: int, arguments: list[str]) -> int:
    """Run `python -m rarepapers` with these arguments in `processes` processes; the exit status of the whole command.

    Signals are passed on to all processes; this returns when all have ended. If one fails, the others are stopped.

    Raises:
        UserError: torch is older than 2.13, whose launcher kills processes that take long to save their state.
    """
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        raise UserError(f"several processes need torch 2.13 or later, not {torch.__version__}; set processes to 1")
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    def stop(number, frame) -> None:
        # Schedulers send signals repeatedly, on which torch's handlers would abandon processes that are saving.
        for further in SIGNALS:
            signal.signal(further, signal.SIG_IGN)
        raise SignalException("asked to stop", signal.Signals(number))

    for number in SIGNALS:
        signal.signal(number, stop)
    # The processes report errors themselves; torch's reports are long.
    for name in ("agent.server", "agent.server.api", "multiprocessing.api", "rendezvous.dynamic_rendezvous"):
        logging.getLogger(f"torch.distributed.elastic.{name}").setLevel(logging.CRITICAL)
    if sys.platform == "linux":
        # All processes run on this machine, whatever its host name resolves to.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=f"raretok-{os.getpid()}",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
        signals_to_handle="",
        shutdown_timeout=SAVE_SECONDS,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "rarepapers", *arguments)
    except SignalException:
        return EXIT_INTERRUPTED
    except ChildFailedError as error:
        number, status = first_failure(error.failures)
        if status in (EXIT_USER_ERROR, EXIT_INTERRUPTED):
            return status
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        print(
            f"raretok {arguments[0]}: error: process {number} of {processes} {how}, and the others were stopped; start "
            "the same command again to continue from the last saved state",
            file=sys.stderr,
        )
        return 1
    return 0


def first_failure(failures: dict) -> tuple[int, int]:
    """Number and exit status of the process that failed first (from torch's records by number).

    Torch may see several failures at once. A process that reports an error or was stopped counts as failing after one
    that was not, because it may just have lost contact with that one.
    """
    after = (EXIT_USER_ERROR, EXIT_INTERRUPTED, -signal.SIGTERM)
    number = min(failures, key=lambda number: (failures[number].exitcode in after, failures[number].timestamp))
    return number, failures[number].exitcode
