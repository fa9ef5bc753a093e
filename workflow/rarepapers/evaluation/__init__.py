"""Evaluation of trained runs, one module per task.

May import core, machine, data, models, metrics and experiments.
"""
