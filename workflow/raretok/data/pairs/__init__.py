"""Parallel corpora: cleaning, joint tokenizers, token ids, batches."""
