# What `raretok` offers, for type checkers and editors; at run time __init__.py finds the same names when asked for.

__version__: str
