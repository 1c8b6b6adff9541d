"""URLs of buckets: what they say, what the environment adds, and what is refused in one sentence without secrets."""

import pytest

from kyanite.extents.s3.location import KEEP_SECONDS, S3Location, parse

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
AWS = "https://s3.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("s3://box", KEYS, S3Location("box", "", AWS, "us-east-1", "id", "secret")),
        ("s3://box/", KEYS, S3Location("box", "", AWS, "us-east-1", "id", "secret")),
        ("s3://box/a/b/", KEYS, S3Location("box", "a/b/", AWS, "us-east-1", "id", "secret")),
        (
            "s3://box?region=eu-west-1",
            KEYS,
            S3Location("box", "", "https://s3.eu-west-1.amazonaws.com", "eu-west-1", "id", "secret"),
        ),
        (
            "s3://box?endpoint=http://127.0.0.1:9000/&keep_seconds=7200",
            {**KEYS, "AWS_REGION": "here", "AWS_SESSION_TOKEN": "token", "AWS_ENDPOINT_URL": "http://no"},
            S3Location("box", "", "http://127.0.0.1:9000", "here", "id", "secret", "token", 7200.0),
        ),
        (
            "s3://box?access_key_id=me&secret_access_key=a%2Fb%2Bc",
            {**KEYS, "AWS_ENDPOINT_URL_S3": "https://store.example"},
            S3Location("box", "", "https://store.example", "us-east-1", "me", "a/b+c"),
        ),
    ],
)
def test_what_a_url_means(url: str, environment: dict[str, str], expected: S3Location) -> None:
    found = parse(url, environment)
    assert found == expected
    assert "secret" not in f"{found}{found!r}".replace("secret_access_key", "")


def test_the_default_keeps_segments_for_a_day() -> None:
    assert parse("s3://box", KEYS).keep_seconds == KEEP_SECONDS == 24 * 3600


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("s3://", "is s3://bucket"),
        ("s3:box", "is s3://bucket"),
        ("s3://box#part", "is s3://bucket"),
        ("s3://id:hidden@box", "names it after s3://"),
        ("s3://store:9000/box", "its endpoint"),
        ("s3://box?endpoint=store:9000", "http or https URL"),
        ("s3://box?endpoint=http://store/box", "without a path"),
        ("s3://box?secret=hidden", "no option 'secret'"),
        ("s3://box?keep_seconds=899", "at least 900"),
        ("s3://box?keep_seconds=nan", "at least 900"),
        ("s3://box?keep_seconds=day", "at least 900"),
    ],
)
def test_what_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as refused:
        parse(url, KEYS)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("missing", list(KEYS))
def test_credentials_are_needed(missing: str) -> None:
    environment = {name: value for name, value in KEYS.items() if name != missing}
    with pytest.raises(ValueError, match="needs credentials: AWS_ACCESS_KEY_ID"):
        parse("s3://box", environment)
