"""Errors, files, config files, code digests, special types.

May import no other room.
"""
