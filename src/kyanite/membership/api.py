"""The contract for membership: which processes and nodes are alive."""

OWNER_BYTES = 12
"""The length of the id of one incarnation of one process."""
