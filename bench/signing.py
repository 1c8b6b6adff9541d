"""Shared Key signatures, made as the REST reference describes them and without Kyanite's own code."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

_SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


def authorization(
    account: str, key: bytes, method: str, path: str, query: str, headers: Mapping[str, str], *, table: bool
) -> str:
    """The Authorization header of a request. Names of headers are in lower case; tables have a form of their own."""
    text = (_table_text if table else _text)(account, method, path, query, headers)
    signature = base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()
    return f"SharedKey {account}:{signature}"


def _text(account: str, method: str, path: str, query: str, headers: Mapping[str, str]) -> str:
    values = {**headers, "content-length": headers.get("content-length", "").removeprefix("0") or ""}
    lines = [method, *(values.get(name, "") for name in _SIGNED_HEADERS)]
    lines += [f"{name}:{values[name]}" for name in sorted(values) if name.startswith("x-ms-")]
    lines.append(f"/{account}{path}")
    lines += [f"{name}:{value}" for name, value in sorted(parse_qsl(query, keep_blank_values=True))]
    return "\n".join(lines)


def _table_text(account: str, method: str, path: str, query: str, headers: Mapping[str, str]) -> str:
    comp = dict(parse_qsl(query, keep_blank_values=True)).get("comp")
    resource = f"/{account}{path}" + (f"?comp={comp}" if comp else "")
    lines = (headers.get("content-md5", ""), headers.get("content-type", ""), headers["x-ms-date"], resource)
    return "\n".join((method, *lines))
