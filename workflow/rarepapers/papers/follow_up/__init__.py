"""Follow-up experiments of ours: what the reduced scale leaves open."""
