"""Seeded synthetic texts in invented languages."""
