"""What tests read in the answers of the services, whichever way they came."""

from collections.abc import Mapping
from http.client import HTTPMessage
from xml.etree import ElementTree


class ServiceAnswer:
    __slots__ = ()

    headers: Mapping[str, str] | HTTPMessage
    body: bytes

    @property
    def code(self) -> str:
        return self.headers.get("x-ms-error-code", "")

    @property
    def xml(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.body.decode("utf-8-sig"))
