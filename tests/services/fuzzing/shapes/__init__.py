"""The shapes of the requests to each service: a file with a table for each."""
