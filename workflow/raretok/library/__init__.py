"""Public library for other training code: the loss, frequency groups, metrics.

May import core, data, methods, models and metrics.
"""
