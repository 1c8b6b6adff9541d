"""Whole sessions with a connection in memory, most of whose messages are not quite right.

``python -m tests.services.smb.fuzzing --inputs 1000000`` runs as many as one likes.
"""
