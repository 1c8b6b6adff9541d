"""Whole HTTP requests to every operation of every REST service, most of them not quite right.

The tables of operations say which requests there are, ``shapes`` what each of them may have, and ``tours`` what the
official clients send. ``python -m tests.services.fuzzing --requests 1000000`` runs as many as one likes.
"""
