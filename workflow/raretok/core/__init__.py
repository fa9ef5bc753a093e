"""Errors, files, config files, code digests.

May import no other room.
"""
