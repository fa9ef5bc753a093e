"""Input functions, parameters and resources of the rules.

May import core, machine, data, experiments and training.
"""
