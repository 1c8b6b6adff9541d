"""smbtorture, Samba's own tests of a server: one process for each sub-test, against smbd and against this server."""
