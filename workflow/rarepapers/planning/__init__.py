"""Before long jobs: cost estimates, checks of the machine, a data mirror, and the runs that would decide claims.

May import core, machine, data, experiments, reporting and rule_inputs.
"""
