"""Word alignment of parallel corpora."""
