"""The sub-tests that smbd passes and this server does not, each with the reason. `docs/smb-torture.md` shows them."""

EXCEPTIONS: dict[str, str] = {}
