"""What a job needs of its machine: devices, GPU locks, signals, SLURM, servers.

May import core.
"""
