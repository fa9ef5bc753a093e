"""Tables: their cells, as csv, Markdown and LaTeX."""
