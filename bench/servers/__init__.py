"""The servers that are measured: fetched, started, stopped, and what the kernel says about them."""
