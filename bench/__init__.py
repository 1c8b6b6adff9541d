"""The benchmark: Kyanite beside Azurite and nginx, on one machine, in one interleaved run.

Run it with ``make bench`` or ``python -m bench``; ``docs/benchmarks.md`` says how to read what it prints.
Linux only: memory and processor time are read from ``/proc``, and the load client waits with ``epoll``.

``rows`` is what is measured, ``load`` makes the load, ``servers`` fetches, starts and stops the servers, ``report``
prints, keeps and draws what was found. ``gauges`` measures what is not load, and ``growth`` fills a store to a million
blobs.

Apart from that, ``costs`` counts what hot operations cost in one process, and ``versions`` compares the rates of two
checkouts of Kyanite.
"""
