"""Intervals, tests and coefficients; no paper is known here."""
