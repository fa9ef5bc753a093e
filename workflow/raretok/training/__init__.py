"""Training of one run: loop, trainer, tasks, probes, checkpoints.

May import core, machine, data, methods, models, library and experiments.
"""
