"""Training and evaluating runs without Snakemake: several at once, most important first, within a time limit.

May import core, machine, experiments, training, rule_inputs and planning.
"""
