"""A browser without a screen: it keeps cookies, follows redirections, and sends forms with the token of a page."""

import http.client
import re
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode, urlsplit

_TOKEN = re.compile(r'(?:name="csrf" value|data-csrf)="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    headers: dict[str, str]
    body: bytes
    address: str

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """What a reader sees: without tags, and with the characters that entities stand for."""
        return unescape(re.sub(r"<[^>]*>", " ", self.text))

    @property
    def token(self) -> str:
        found = _TOKEN.search(self.text)
        assert found is not None, self.text
        return found[1]


@dataclass(slots=True)
class Visitor:
    endpoint: str
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = ""
    """What the Host header says, if not the address."""

    def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Page:
        """One request, without following where it leads."""
        parts = urlsplit(self.endpoint)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        sent = {"Host": self.host or parts.netloc, **(headers or {})}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, path, body or None, sent)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        for name, value in response.getheaders():
            if name.lower() == "set-cookie":
                cookie, _, rest = value.partition(";")
                key, _, text = cookie.partition("=")
                if "max-age=0" in rest.lower():
                    self.cookies.pop(key, None)
                else:
                    self.cookies[key] = text
        return Page(
            response.status, {name.lower(): value for name, value in response.getheaders()}, data, path
        )

    def get(self, page: str, **values: str) -> Page:
        path = f"{page}?{urlencode(values)}" if values else page
        return self._followed(self.request("GET", path))

    def send(self, page: str, *, csrf: str | None = None, **values: str) -> Page:
        """Send a form with the token of this session."""
        given = self.token() if csrf is None else csrf
        body = urlencode({"csrf": given, **values}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._followed(self.request("POST", page, body, headers))

    def token(self) -> str:
        """Of a page that always has a form."""
        return self.get("/sign-in").token

    def upload(self, page: str, content: bytes, content_type: str = "text/plain", **values: str) -> Page:
        headers = {"X-CSRF-Token": self.token(), "Accept": "application/json", "Content-Type": content_type}
        return self.request("PUT", f"{page}?{urlencode(values)}", content, headers)

    def _followed(self, page: Page) -> Page:
        return self.get(page.headers["location"]) if page.status == 303 else page
