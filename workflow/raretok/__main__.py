"""`python -m raretok COMMAND --help`; what there is says `raretok.machine.commands`."""

import sys

from raretok.machine.commands import main
from raretok.machine.fork_server import run_elsewhere

if __name__ == "__main__":
    status = run_elsewhere(sys.argv[1:])
    sys.exit(main() if status is None else status)
