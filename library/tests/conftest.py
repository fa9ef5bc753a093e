"""One thread per process: a forked process waits for ever for the OpenMP threads of the first."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
