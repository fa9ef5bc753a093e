"""raretok: rare tokens in neural language generation, four papers reproduced in one pipeline."""

__version__ = "0.1.0"
