"""Training of one run: loop, trainer, tasks, probes, checkpoints.

May import core, machine, data, models, metrics and experiments.
"""
