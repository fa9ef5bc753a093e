"""HTML pages of the report, and the parts of the README that are generated from it."""
