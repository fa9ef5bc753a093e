"""What runs will cost, and whether this machine is ready for them: before anything long. Free of torch.

May import core, machine, data, experiments, reporting and rule_inputs.
"""
