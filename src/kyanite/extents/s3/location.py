"""Where a bucket is and how it is opened: ``s3://bucket[/prefix]?endpoint=…&region=…``.

What the URL does not say comes from the environment, by the names that the tools of AWS use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

KEEP_SECONDS = 24 * 3600.0
"""How long a segment is kept after nothing refers to it."""
KEEP_SECONDS_MIN = 900.0
"""No read takes so long without a row of its own (``model/maintenance/unneeded_segments.py``)."""

_DEFAULT_REGION = "us-east-1"

_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "keep_seconds": (),
}
"""What the query of the URL may say, and the variables that say the same."""


@dataclass(frozen=True, slots=True)
class S3Location:
    """A bucket, or a part of one. Printing it shows no secret."""

    bucket: str
    prefix: str
    """Of all names of objects: empty, or with a slash at the end."""
    endpoint: str
    region: str
    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False, default="")
    keep_seconds: float = KEEP_SECONDS

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def parse(url: str, environment: Mapping[str, str]) -> S3Location:
    """Raises a ValueError with one sentence, which repeats nothing that may be secret."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or parts.fragment:
        raise ValueError("The URL of a bucket is s3://bucket, s3://bucket/prefix, and options behind a ?.")
    if "@" in parts.netloc or ":" in parts.netloc:
        raise ValueError(
            "The URL of a bucket names it after s3://; the address of the store is its endpoint."
        )
    stated = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := stated.keys() - _VARIABLES.keys():
        known = ", ".join(_VARIABLES)
        raise ValueError(f"The URL of a bucket has no option {min(unknown)!r}: there are {known}.")
    for name, variables in _VARIABLES.items():
        found = next((environment[each] for each in variables if environment.get(each)), "")
        stated.setdefault(name, found)
    if not stated["access_key_id"] or not stated["secret_access_key"]:
        raise ValueError(
            f"The bucket {parts.netloc} needs credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or access_key_id and secret_access_key in its URL."
        )
    region = stated["region"] or _DEFAULT_REGION
    prefix = parts.path.strip("/")
    return S3Location(
        parts.netloc,
        prefix and prefix + "/",
        _endpoint(stated["endpoint"] or f"https://s3.{region}.amazonaws.com"),
        region,
        stated["access_key_id"],
        stated["secret_access_key"],
        stated["session_token"],
        _keep_seconds(stated["keep_seconds"]),
    )


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError("The endpoint of a bucket is the http or https URL of its store, without a path.")
    return f"{parts.scheme}://{parts.netloc}"


def _keep_seconds(text: str) -> float:
    if not text:
        return KEEP_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not KEEP_SECONDS_MIN <= seconds < float("inf"):
        raise ValueError(f"The keep_seconds of a bucket is a number of at least {KEEP_SECONDS_MIN:.0f}.")
    return seconds
