"""Parallel corpora: cleaning, token ids, counts, batches."""
