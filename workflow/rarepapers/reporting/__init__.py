"""Tables, figures, verdicts on claims and report pages, computed from recorded measurements without torch.

May import core, metrics and experiments.
"""
