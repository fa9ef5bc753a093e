"""Seeded texts in invented languages."""
