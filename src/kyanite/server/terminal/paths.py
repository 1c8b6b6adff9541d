"""How commands name what is stored: ``blob://ACCOUNT/CONTAINER/NAME``, ``file://ACCOUNT/SHARE/PATH`` and so on.

A text without ``://`` is a path of this machine.
"""

import re
from dataclasses import dataclass, replace

from kyanite.server.failures import BadUsage

SERVICES = ("blob", "file", "queue", "table")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RemotePath:
    service: str
    account: str
    container: str = ""
    """Or share, queue or table; empty for the whole account."""
    name: str = ""
    """Of a blob, or the path of a file or directory, or the beginning of one. No slash in front."""

    def __str__(self) -> str:
        return f"{self.service}://" + "/".join(
            part for part in (self.account, self.container, self.name) if part
        )

    def below(self, name: str) -> "RemotePath":
        """Something with a longer name. A slash goes between, unless there is one."""
        if not self.name or self.name.endswith("/"):
            return replace(self, name=self.name + name)
        return replace(self, name=f"{self.name}/{name}")


def parse(text: str, *services: str) -> RemotePath | None:
    """The path, or None for one of this machine. ``services`` are those that the command has to do with."""
    match = _SCHEME.fullmatch(text)
    if match is None:
        return None
    service, rest = match[1].lower(), match[2]
    allowed = services or SERVICES
    if service not in allowed:
        known = ", ".join(f"{name}://" for name in allowed)
        raise BadUsage(f"{text!r} cannot be used here: a stored thing begins with {known}.")
    return _parts(text, service, rest)


def parse_remote(text: str, *services: str, default: str | None = None) -> RemotePath:
    """The same for what cannot be of this machine. With a ``default`` the service may be left out."""
    found = parse(text, *services)
    if found is not None:
        return found
    if default is None:
        known = ", ".join(f"{name}://" for name in services or SERVICES)
        raise BadUsage(f"{text!r} names nothing that is stored: it is to begin with {known}.")
    return _parts(text, default, text)


def _parts(text: str, service: str, rest: str) -> RemotePath:
    account, _, rest = rest.partition("/")
    container, _, name = rest.partition("/")
    if not account:
        raise BadUsage(f"{text!r} names no account. A path of this machine is written without {service}://.")
    if name and not container:
        raise BadUsage(f"{text!r} has an empty name in it.")
    return RemotePath(service, account, container, name)
