"""Metrics as pure functions of arrays and tensors.

May import core.
"""
