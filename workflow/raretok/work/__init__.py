"""Runs without Snakemake: as many of the run table as fit into the time, several at once, most deciding first.

May import core, machine, experiments, training, rule_inputs and planning.
"""
