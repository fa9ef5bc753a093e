"""Presentation of each paper: its figures, and its claims that need code; modules are loaded by the paper's name.

May import core, metrics and reporting.
"""
