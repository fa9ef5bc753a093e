"""Devices and copies to them, GPU locks, signals, SLURM, the list of commands, and the server that starts jobs fast.

May import core.
"""
