"""Tables, figures, verdicts on claims and the report, from measurements alone: no torch.

May import core, metrics and experiments.
"""
