"""Around long jobs: cost estimates, checks of the machine, a data mirror, status, and new seeds for a claim.

May import core, machine, data, experiments, training, reporting and rule_inputs.
"""
