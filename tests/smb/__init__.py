"""Real SMB clients against a real server: Debian's smbclient and smbtorture, and smbprotocol. smbd is the oracle."""
