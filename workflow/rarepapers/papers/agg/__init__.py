"""Yu et al. 2022, Rare Tokens Degenerate All Tokens."""
