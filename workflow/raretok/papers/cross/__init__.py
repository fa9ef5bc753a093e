"""The comparison of all methods, of no paper."""
