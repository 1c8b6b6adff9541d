"""Histories of clients of both protocols on few files, and what must be true of them."""
