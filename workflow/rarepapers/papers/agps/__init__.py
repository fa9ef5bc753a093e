"""Yu et al., Rare Words Degenerate All Words."""
