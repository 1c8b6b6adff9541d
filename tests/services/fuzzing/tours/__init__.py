"""What the official clients can do, each operation once, to record the requests that they send."""
