"""Several nodes on one store: which of their processes are alive, and what they do together.

A node is one ``kyanite serve``: a supervisor and its workers. Nodes need an engine that machines can share. What they
must agree on is rows of that engine (``model/members.py``); this package keeps those rows true.
"""
