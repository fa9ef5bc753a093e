"""From config to the run table: grids, scaling, checks.

May import core, data and methods.
"""
