"""Metrics as pure functions of arrays and tensors.

May import core, data and methods.
"""
