"""The report: one HTML page, one PDF, and what the README shows of it."""
