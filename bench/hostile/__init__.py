"""Clients that ask for as much as they can, are very slow, or never read: ``bench.polite`` measures who waits for them.

``rest.py`` and ``smb.py`` have the loads: some are lanes of requests, others are crowds of connections that dawdle.
"""
