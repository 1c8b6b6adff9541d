"""Shared access signatures whose fields are not quite right, with a signature that covers them or not."""

from urllib.parse import parse_qsl

from kyanite.server.config import AccountKeys
from kyanite.server.identity.delegation_file import secret_of_account
from kyanite.wire import sas, shared_key
from kyanite.wire.malformed import Malformed
from kyanite.wire.sas import AccountSas, ServiceSas, UserDelegationSas
from kyanite.wire.uri import decode_query
from tests.services.fuzzing.bearer import STORED_SECRET
from tests.services.fuzzing.oddities import Chance, near, odd
from tests.services.fuzzing.request import encode_query

_FIELDS = (
    "sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "sr", "si", "sig", "skoid", "sktid", "skt", "ske", "sks", "skv",
    "sdd", "ses", "tn", "spk", "srk", "epk", "erk", "rscc", "rscd", "rsce", "rscl", "rsct", "saoid", "suoid", "scid",
    "api-version", "sduoid", "skdutid", "srh", "srq",
)  # fmt: skip
_VALUES = {
    "sv": ("2015-04-05", "2012-02-12", "2018-11-09", "2026-10-06", "2099-01-01", ""),
    "sr": ("b", "c", "bs", "bv", "d", "f", "s", "x"),
    "spr": ("https", "https,http", "http"),
    "sip": ("127.0.0.1", "0.0.0.0-255.255.255.255", "1.2.3.4-1.2.3.3", "::1"),
    "sdd": ("0", "1", "999"),
    "rscd": ("inline", "a\nb: c", "é", "名"),
}


def spoil(token: str, account: AccountKeys, service: str, path: str, chance: Chance) -> str:
    """Change some fields. Two of three times the signature is made anew, so that the fields are read further."""
    pairs = parse_qsl(token, keep_blank_values=True)
    for _ in range(chance.choice((1, 1, 2, 3))):
        kind = chance.random()
        at = chance.randrange(len(pairs))
        name, old = pairs[at]
        if kind < 0.5:
            pairs[at] = name, _value(chance, name, old)
        elif kind < 0.6 and len(pairs) > 1:
            del pairs[at]
        elif kind < 0.7:
            pairs.append((name, old))
        else:
            new = chance.choice(_FIELDS)
            pairs.append((new, _value(chance, new, "x")))
    if chance.random() < 0.66:
        pairs = _signed(pairs, account, service, path)
    return encode_query(pairs)


def _value(chance: Chance, name: str, old: str) -> str:
    kind = chance.random()
    if kind < 0.4 and name in _VALUES:
        return chance.choice(_VALUES[name])
    return odd(chance)[:2000] if kind < 0.7 else near(chance, old)[:2000]


def _signed(
    pairs: list[tuple[str, str]], account: AccountKeys, service: str, path: str
) -> list[tuple[str, str]]:
    first, _, rest = path[1:].partition("/")
    try:
        token = sas.decode(decode_query(encode_query(pairs)), service)
        if isinstance(token, AccountSas):
            text = token.string_to_sign(account.name)
        elif isinstance(token, ServiceSas):
            text = token.string_to_sign(account.name, first.partition("(")[0], rest)
        elif isinstance(token, UserDelegationSas):
            key = token.key.value(secret_of_account(b"", account.name, STORED_SECRET))
            text = token.string_to_sign(account.name, first, rest, "", {}, {})
            return [pair for pair in pairs if pair[0] != "sig"] + [("sig", shared_key.sign(key, text))]
        else:
            return pairs
        signature = shared_key.sign(account.keys[0], text)
    except (Malformed, UnicodeError):
        return pairs
    return [(name, value) for name, value in pairs if name != "sig"] + [("sig", signature)]
