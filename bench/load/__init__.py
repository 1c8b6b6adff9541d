"""The clients that make the load: raw sockets in Python, and wrk where it can serve."""
