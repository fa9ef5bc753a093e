"""Input functions, params and resources of the rules, as functions of (run table, wildcards).

`data`, `tokenize`, `train`, `evaluate` and `report` serve the rules file of that name, `code` and `resources` all rules
files. A run can take the place of a job's wildcards, because it has the same attributes.

May import core, machine, data, experiments, training and reporting.
"""
