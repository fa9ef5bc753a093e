"""Measurements of trained runs, one module a task.

May import core, machine, data, models, metrics and experiments.
"""
