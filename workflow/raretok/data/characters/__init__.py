"""Character corpora."""
