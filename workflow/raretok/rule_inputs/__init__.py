"""Input functions, parameters and resources of the rules, as functions of (run table, wildcards).

`data`, `tokenize`, `train`, `evaluate` and `report` serve the file of that name in workflow/rules, `code` and
`resources` all of them. A run can stand for the wildcards of its job: it has the same names.

May import core, machine, data, experiments, training and reporting.
"""
