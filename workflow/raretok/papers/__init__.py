"""How each paper is shown: its figures and its claims that are functions, loaded by the paper's name.

May import data, metrics and reporting.
"""
