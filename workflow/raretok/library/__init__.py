"""Public library for other training code: the loss, frequency groups, metrics.

May import core, machine, data, methods, models and metrics.
"""
