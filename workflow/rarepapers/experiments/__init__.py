"""The run table and what it is built from: config types and checks, grids, scaling.

May import core, data, metrics and models.
"""
