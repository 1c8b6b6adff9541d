"""What goes wrong with a request: its parts are dropped, repeated, exchanged, or get odd values."""

from tests.services.fuzzing.bearer import bad_tokens
from tests.services.fuzzing.body_mutations import Table, chunked, filter_option, table_of
from tests.services.fuzzing.oddities import in_header, near, odd
from tests.services.fuzzing.request import Credentials, Framing, FuzzRequest, encode_query
from tests.services.fuzzing.scope import Scope
from tests.services.fuzzing.values import HEADERS, PARAMETERS, VALUES

_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE", "TRACE", "get")
_COMPS = [
    "list",
    "properties",
    "stats",
    "metadata",
    "acl",
    "lease",
    "snapshot",
    "copy",
    "tier",
    "undelete",
    "block",
    "blocklist",
    "appendblock",
    "seal",
    "page",
    "pagelist",
    "range",
    "rangelist",
    "batch",
    "rename",
    "filepermission",
    "listhandles",
    "forceclosehandles",
    "tags",
    "query",
    "blobs",
    "incrementalcopy",
    "expiry",
    "x",
]
_RESTYPES = ("container", "service", "account", "share", "directory", "symboliclink", "hardlink", "x", "")
_PARAMETERS = tuple(sorted(PARAMETERS & VALUES.keys()))


def _value(scope: Scope, old: str) -> str:
    """Odd, near the old one, or that of another header or parameter."""
    chance = scope.chance
    kind = chance.random()
    if kind < 0.5:
        return odd(chance)
    if kind < 0.85:
        return near(chance, old)
    return VALUES[chance.choice((*HEADERS, *_PARAMETERS))](scope)


# Headers


def _header_value(scope: Scope, request: FuzzRequest) -> None:
    """Seldom the version, which is refused before anything else is read."""
    own = [at for at, (name, _) in enumerate(request.headers) if name != "x-ms-version" or scope.likely(0.05)]
    if own:
        at = scope.chance.choice(own)
        name, old = request.headers[at]
        request.headers[at] = name, in_header(_value(scope, old))


def _drop_header(scope: Scope, request: FuzzRequest) -> None:
    if request.headers:
        del request.headers[scope.chance.randrange(len(request.headers))]


def _repeat_header(scope: Scope, request: FuzzRequest) -> None:
    if request.headers:
        name, value = scope.chance.choice(request.headers)
        request.headers.append((name, value if scope.likely(0.5) else in_header(_value(scope, value))))


def _add_header(scope: Scope, request: FuzzRequest) -> None:
    name = scope.chance.choice(HEADERS)
    value = VALUES[name](scope) if scope.likely(0.5) else odd(scope.chance)
    request.headers.append((name, in_header(value)))


def _rename_header(scope: Scope, request: FuzzRequest) -> None:
    if request.headers:
        at = scope.chance.randrange(len(request.headers))
        name, value = request.headers[at]
        new = scope.chance.choice(
            (scope.chance.choice(HEADERS), name.upper(), name + "x", "x-ms-meta-" + name)
        )
        request.headers[at] = new, value


def _metadata(scope: Scope, request: FuzzRequest) -> None:
    chance = scope.chance
    name = chance.choice(
        ("", "1", "a-b", "é", "a.b", "x" * 300, "A", "a", "_", "class", "a b".replace(" ", "!"))
    )
    for number in range(chance.choice((1, 1, 2, 80))):
        suffix = "" if number == 0 else str(number)
        request.headers.append((in_header(f"x-ms-meta-{name}{suffix}"), in_header(odd(chance))[:8000]))


# The query


def _parameter_value(scope: Scope, request: FuzzRequest) -> None:
    """Seldom those that name the operation."""
    naming = {"comp", "restype"}
    own = [at for at, (name, _) in enumerate(request.query) if name not in naming or scope.likely(0.1)]
    if own:
        at = scope.chance.choice(own)
        name, old = request.query[at]
        request.query[at] = name, _value(scope, old)[:5000]


def _drop_parameter(scope: Scope, request: FuzzRequest) -> None:
    if request.query:
        del request.query[scope.chance.randrange(len(request.query))]


def _repeat_parameter(scope: Scope, request: FuzzRequest) -> None:
    if request.query:
        name, value = scope.chance.choice(request.query)
        request.query.append((scope.one(name, name.upper(), name.title()), _value(scope, value)[:3000]))


def _add_parameter(scope: Scope, request: FuzzRequest) -> None:
    name = scope.chance.choice(_PARAMETERS)
    value = VALUES[name](scope) if scope.likely(0.5) else odd(scope.chance)
    request.query.append((name, value[:5000]))


def _other_operation(scope: Scope, request: FuzzRequest) -> None:
    request.query = [pair for pair in request.query if pair[0] not in {"comp", "restype"}]
    if scope.likely(0.8):
        request.query.append(("comp", scope.chance.choice(_COMPS)))
    if scope.likely(0.5):
        request.query.append(("restype", scope.chance.choice(_RESTYPES)))


def _raw_query(scope: Scope, request: FuzzRequest) -> None:
    text = encode_query(request.query)
    at = scope.chance.randrange(len(text) + 1)
    piece = scope.one(
        "%", "%0", "%zz", "%00", "%ff", "%ED%A0%80", "&&&", "=", "?", "+", "/", ";", "[]", "%26", "%3d", "&a"
    )
    request.raw_query = (text[:at] + piece + text[at:])[:8000]


# Method, path, version, credentials


def _method(scope: Scope, request: FuzzRequest) -> None:
    request.method = scope.chance.choice(_METHODS)
    if request.method == "OPTIONS" and scope.likely(0.8):
        for name in ("origin", "access-control-request-method", "access-control-request-headers"):
            request.headers.append((name, VALUES[name](scope)))


def _path(scope: Scope, request: FuzzRequest) -> None:
    parts = request.path.split("/")
    at = scope.chance.randrange(len(parts))
    parts[at] = scope.chance.choice((odd, lambda chance: near(chance, parts[at])))(scope.chance)[:2500]
    path = "/".join(parts)
    request.path = path if path.startswith("/") else f"/{path}"


def _raw_path(scope: Scope, request: FuzzRequest) -> None:
    text = request.encoded_path("")
    at = scope.chance.randrange(1, len(text) + 1)
    piece = scope.one(
        "%",
        "%zz",
        "%00",
        "%ff",
        "%2f",
        "%2F..",
        "//",
        "/./",
        "/../",
        "%5c",
        "\\",
        "%ED%A0%80",
        "%EF%BF%BF",
        ":",
    )
    request.raw_path = text[:at] + piece + text[at:]


def _host_style(_scope: Scope, request: FuzzRequest) -> None:
    request.names_account_in_host = True


def _version(scope: Scope, request: FuzzRequest) -> None:
    request.set_header(
        "x-ms-version", VALUES["x-ms-version"](scope) if scope.likely(0.6) else in_header(odd(scope.chance))
    )


def other_credentials(scope: Scope, request: FuzzRequest) -> None:
    request.credentials = scope.chance.choice(list(Credentials))


def _spoiled_credentials(scope: Scope, request: FuzzRequest) -> None:
    """The header that proves who asks, or the date or host that it covers."""
    name = scope.chance.choices(("Authorization", "x-ms-date", "Date", "Host"), (5, 3, 1, 2))[0]
    value = {
        "Authorization": scope.one(
            "", "SharedKey", "SharedKey acme", "SharedKey acme:", "SharedKey :x", "SharedKey acme:é", "Bearer x.y.z",
            "SharedKeyLite acme:AAAA", "Basic YTpi", "SharedKey acme:" + "A" * 5000, "Negotiate",
            "sharedkey acme:AAAA,x", "Bearer", "Bearer a.b.c.d", "bearer  .", "Bearer " + "A" * 5000, *bad_tokens(),
        ),
        "Host": scope.one(
            "acme.blob.localhost", "other.table.localhost:10000", "acme-secondary.queue.x", "x" * 200, "[::1]:80", "é",
            "acme.dfs.localhost", "a b", "localhost:99999", ".", "acme.file.", "",
        ),
    }.get(name)  # fmt: skip
    request.spoiled_headers.append((name, in_header(value if value is not None else odd(scope.chance))))


def _spoiled_token(scope: Scope, request: FuzzRequest) -> None:
    request.credentials = scope.chance.choice(
        (Credentials.ACCOUNT_SAS, Credentials.SERVICE_SAS, Credentials.USER_DELEGATION)
    )
    request.spoils_token = True


# Framing


def _wrong_framing(scope: Scope, request: FuzzRequest) -> None:
    request.framing = scope.chance.choice((Framing.TOO_SHORT, Framing.TOO_LONG, Framing.BROKEN))
    request.spoil_seed = scope.chance.getrandbits(32)


MUTATIONS: Table = (
    (_header_value, 22),
    (_drop_header, 6),
    (_repeat_header, 4),
    (_add_header, 10),
    (_rename_header, 2),
    (_metadata, 2),
    (_parameter_value, 12),
    (_drop_parameter, 3),
    (_repeat_parameter, 3),
    (_add_parameter, 5),
    (_other_operation, 3),
    (_raw_query, 2),
    (_method, 2),
    (_path, 6),
    (_raw_path, 2),
    (_version, 3),
    (_host_style, 2),
    (other_credentials, 4),
    (_spoiled_credentials, 2),
    (_spoiled_token, 4),
    (chunked, 2),
    (_wrong_framing, 2),
)


def mutate(scope: Scope, request: FuzzRequest) -> None:
    for _ in range(scope.chance.choice((1, 1, 1, 2, 2, 3, 5))):
        if scope.likely(0.4) and any(name == "$filter" for name, _ in request.query):
            filter_option(scope, request)
        table = table_of(request) if request.body and scope.likely(0.5) else MUTATIONS
        mutation = scope.chance.choices([each for each, _ in table], [weight for _, weight in table])[0]
        mutation(scope, request)
