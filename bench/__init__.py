"""The benchmark: Kyanite beside Azurite and nginx, on one machine, in one interleaved run.

Run it with ``make bench`` or ``python -m bench``; ``docs/benchmarks.md`` says how to read what it prints.
Linux only: memory and processor time are read from ``/proc``, and the load client waits with ``epoll``.

``peers`` starts and stops the servers, ``installs`` fetches those that are not ours, ``client`` makes the
load, ``rows`` is the table of what is measured, ``gauges`` measures what is not load, ``growth`` fills a
store to a million blobs, ``report`` prints. A new row is a generator of requests in ``works`` and a line in
``rows``.

Apart from that, ``costs`` counts what hot operations cost in one process, and ``versions`` compares the rates of two
checkouts of Kyanite.
"""
