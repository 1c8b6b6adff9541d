"""Requests a user delegation key with a bearer token."""

import base64
from xml.etree import ElementTree

from kyanite.server.failures import Failure
from kyanite.server.terminal.paths import RemotePath
from kyanite.server.terminal.rest_client import RestClient
from kyanite.server.terminal.running_server import RunningServer
from kyanite.wire import xml

_FIELDS = {
    "SignedOid": "skoid",
    "SignedTid": "sktid",
    "SignedStart": "skt",
    "SignedExpiry": "ske",
    "SignedService": "sks",
    "SignedVersion": "skv",
    "SignedDelegatedUserTid": "skdutid",
}


def request_key(
    server: RunningServer, target: RemotePath, token: str, *, starts: str, expires: str, user_tenant_id: str
) -> tuple[bytes, dict[str, str]]:
    """The key, and the fields of a token that state it."""
    info = xml.element("Start", starts) + xml.element("Expiry", expires)
    if user_tenant_id:
        info += xml.element("DelegatedUserTid", user_tenant_id)
    document = xml.document(xml.wrapped("KeyInfo", info))
    account = RemotePath(target.service, target.account)
    query = {"restype": "service", "comp": "userdelegationkey"}
    headers = {"x-ms-file-request-intent": "backup"} if target.service == "file" else {}
    with RestClient(server.description, target.service, target.account, token=token) as client:
        answer = client.send("POST", account, query, headers, document)
    found = {element.tag: element.text or "" for element in ElementTree.fromstring(answer.body)}
    value = found.pop("Value", "")
    if not value:
        raise Failure("The server has returned no user delegation key.")
    return base64.b64decode(value), {
        _FIELDS[name]: text for name, text in found.items() if name in _FIELDS and text
    }
