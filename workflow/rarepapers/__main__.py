"""Entry point of `python -m rarepapers COMMAND`; `rarepapers.machine.commands` lists the commands."""

import sys

from rarepapers.machine.commands import main
from rarepapers.machine.fork_server import run_elsewhere

if __name__ == "__main__":
    status = run_elsewhere(sys.argv[1:])
    sys.exit(main() if status is None else status)
