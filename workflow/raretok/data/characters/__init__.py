"""Corpora of characters."""
