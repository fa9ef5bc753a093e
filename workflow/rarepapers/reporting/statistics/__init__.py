"""Intervals, tests and coefficients, independent of any paper."""
