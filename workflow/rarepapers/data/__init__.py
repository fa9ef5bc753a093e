"""Data: downloads, synthetic text, tokenizers, prepared corpora, batches and word alignment.

May import core and metrics.
"""
