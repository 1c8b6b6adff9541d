"""One request of a browser that was admitted, with what a page needs to know of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kyanite.model.accounts import Account
from kyanite.services.console import rendering, sessions
from kyanite.services.console.client import BadInput, Client
from kyanite.services.console.environment import ConsoleEnvironment
from kyanite.services.console.sessions import Session
from kyanite.wire.http import Request, Response

if TYPE_CHECKING:
    from kyanite.services.console.rendering import Templates

DONE = {
    "created": "It was created.",
    "deleted": "It was deleted.",
    "restored": "It was restored.",
    "saved": "It was saved.",
    "uploaded": "It was uploaded.",
    "added": "The message was added.",
    "cleared": "All messages were removed.",
    "broken": "The lease was broken.",
    "closed": "The handle was closed.",
    "snapshot": "A snapshot was taken.",
}
"""What a page says after a change: by a word, so that a link from elsewhere cannot make it say anything else."""


class NotFound(Exception):
    """There is no such page, or none that this visitor may see."""


@dataclass(frozen=True, slots=True)
class Visit:
    environment: ConsoleEnvironment
    templates: "Templates"
    request: Request
    query: Mapping[str, str]
    session: Session
    is_signed_in: bool
    """Whether the session is for one account only."""
    form: Mapping[str, str] = field(default_factory=dict)
    """The fields of a form that was sent."""

    # What was asked for

    def get(self, name: str, default: str = "") -> str:
        """A field of the form, or a parameter of the address."""
        return self.form.get(name, self.query.get(name, default))

    def need(self, name: str) -> str:
        value = self.get(name)
        if not value:
            raise BadInput(f"Something is missing: {name}.")
        return value

    def number(self, name: str, default: int, largest: int) -> int:
        text = self.get(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit()) or int(text) > largest:
            raise BadInput(f"{name} has to be a number of at most {largest}.")
        return int(text)

    # Accounts

    @property
    def accounts(self) -> list[Account]:
        """Those that this visitor may see."""
        served = self.environment.accounts
        if not self.is_signed_in:
            return sorted(served.values(), key=lambda account: account.name)
        account = served.get(self.session.account)
        return [] if account is None else [account]

    @property
    def account(self) -> Account:
        name = self.get("account")
        found = self.environment.accounts.get(name)
        if found is None or (self.is_signed_in and name != self.session.account):
            raise NotFound
        self.request.account = name
        return found

    @property
    def client(self) -> Client:
        """Sends requests as the owner of the account."""
        request = self.request
        return Client(self.environment.own, self.account.name, request.peer, request.local_port)

    @property
    def public_client(self) -> Client:
        """Sends requests with credentials of their own."""
        request = self.request
        return Client(self.environment.public, self.account.name, request.peer, request.local_port)

    def endpoints(self) -> dict[str, str]:
        """The addresses of the services for this visitor, by name, with the account. They are those of the listeners;
        a service on all addresses of the machine is where the console is."""
        scheme = "https" if self.request.secure else "http"
        found = {}
        for name, (host, port) in self.environment.addresses.items():
            if name != "smb":
                found[name] = f"{scheme}://{host}:{port}/{self.account.name}"
        return found

    # Answers

    def render(self, template: str, **values: object) -> bytes:
        done = DONE.get(self.query.get("done", ""), "")
        common: dict[str, object] = {
            "accounts": self.accounts,
            "account": "",
            "csrf": sessions.form_token(self.environment.secret, self.session),
            "is_signed_in": self.is_signed_in,
            "services": [name for name in ("blob", "queue", "table", "file") if name in self.environment.own],
            "has_smb": "smb" in self.environment.addresses,
            "done": done,
            "section": "",
        }
        chosen = self.session.account if self.is_signed_in else self.get("account")
        if any(each.name == chosen for each in self.accounts):
            common["account"] = chosen
        return self.templates.render(template, {**common, **values})

    def page(self, template: str, **values: object) -> Response:
        return rendering.html(self.render(template, **values))

    def failed_page(self, status: int, template: str, **values: object) -> Response:
        return rendering.html(self.render(template, **values), status)

    def go_to(self, page: str, done: str = "", **values: object) -> Response:
        """After a change: the browser asks for the page that shows it."""
        location = rendering.link(page, **values, done=done)
        return Response(
            303, [("Location", location), ("Cache-Control", "no-store"), *rendering.SECURITY_HEADERS]
        )
