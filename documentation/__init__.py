"""The parts of the documentation that are made from the code: ``make docs`` writes them, ``tests/docs`` compares them.

Nothing here is part of the server. A page has marks, and what is between two of them is written again from the tables
of the code (``generated.py``); the rest of the page is written by hand.
"""
