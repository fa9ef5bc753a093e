"""Corpora of one language: tokenizers, token ids, frequency groups, blocks."""
