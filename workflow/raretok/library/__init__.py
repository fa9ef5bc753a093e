"""What other people's training code may use: the loss, frequency groups, metrics.

May import core, data, methods, models and metrics.
"""
