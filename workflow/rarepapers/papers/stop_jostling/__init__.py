"""Turumtaev 2025, Stop Jostling."""
