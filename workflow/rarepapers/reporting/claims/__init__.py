"""Claims of papers: quantities, tests and verdicts."""
