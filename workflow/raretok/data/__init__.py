"""Texts, from download to batches of token ids.

May import core.
"""
