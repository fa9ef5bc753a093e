"""Training of one run: loop, trainer, tasks, probes, checkpoints.

May import core, machine, data, methods, models, metrics, library and experiments.
"""
