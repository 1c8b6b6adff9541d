from datetime import UTC, datetime

import pytest
from azure.storage.blob import (
    BlobAnalyticsLogging,
    RetentionPolicy,
)
from azure.storage.blob import (
    CorsRule as SdkCorsRule,
)
from azure.storage.blob import (
    Metrics as SdkMetrics,
)
from azure.storage.blob import (
    StaticWebsite as SdkStaticWebsite,
)

from kyanite.service_properties import (
    INITIAL,
    CorsRule,
    DeleteRetention,
    Logging,
    Metrics,
    Retention,
    ServiceProperties,
    StaticWebsite,
)
from kyanite.values import instant_from_datetime
from kyanite.wire import service_properties, xml
from kyanite.wire.malformed import Malformed
from kyanite.wire.service_properties import BLOB_ELEMENTS, EVERY_ELEMENT, FILE_ELEMENTS, QUEUE_ELEMENTS
from tests.wire.sdk_transport import Canned, client

RULE = CorsRule(("http://a.com", "http://b.com"), ("GET", "PUT"), 60, ("x-ms-*",), ("*",))
FULL = ServiceProperties(
    logging=Logging("1.0", delete=True, read=False, write=True, retention=Retention(5)),
    hour_metrics=Metrics("1.0", enabled=True, include_apis=True, retention=Retention(7)),
    minute_metrics=Metrics("1.0", enabled=False),
    cors=(RULE, CorsRule(("*",), ("OPTIONS",), 0, (), ())),
    default_service_version="2020-10-02",
    delete_retention=DeleteRetention(Retention(14), allow_permanent_delete=True),
    static_website=StaticWebsite(True, "index.html", None, "errors/404.html"),
)


@pytest.mark.parametrize(
    "properties",
    [
        FULL,
        INITIAL,
        ServiceProperties(),
        ServiceProperties(cors=()),
        ServiceProperties(static_website=StaticWebsite(True, None, "a/b.html", None)),
        ServiceProperties(default_service_version="2019-02-02"),
    ],
)
def test_both_ways(properties: ServiceProperties) -> None:
    document = service_properties.encode(properties, EVERY_ELEMENT)
    assert service_properties.decode(document, EVERY_ELEMENT) == properties


def test_the_text() -> None:
    assert service_properties.encode(INITIAL, BLOB_ELEMENTS) == xml.document(
        "<StorageServiceProperties>"
        "<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>"
        "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"
        "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>"
        "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>"
        "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>"
        "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>"
        "<Cors />"
        "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>"
        "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>"
        "</StorageServiceProperties>"
    )


def test_a_service_has_only_its_elements() -> None:
    queue = service_properties.decode(service_properties.encode(FULL, QUEUE_ELEMENTS), QUEUE_ELEMENTS)
    assert queue == ServiceProperties(FULL.logging, FULL.hour_metrics, FULL.minute_metrics, FULL.cors)
    file = service_properties.decode(service_properties.encode(FULL, FILE_ELEMENTS), FILE_ELEMENTS)
    assert file == ServiceProperties(None, FULL.hour_metrics, FULL.minute_metrics, FULL.cors)


def test_what_is_left_out_is_kept() -> None:
    change = ServiceProperties(cors=(), static_website=StaticWebsite(True))
    updated = FULL.updated(change)
    assert updated.cors == ()
    assert updated.static_website == StaticWebsite(True)
    assert updated.logging == FULL.logging
    assert updated.updated(ServiceProperties()) == updated


def test_hourly_metrics_by_their_former_name() -> None:
    document = (
        b"<StorageServiceProperties><Metrics><Version>1.0</Version><Enabled>true</Enabled>"
        b"<IncludeAPIs>false</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>3</Days></RetentionPolicy>"
        b"</Metrics></StorageServiceProperties>"
    )
    expected = Metrics("1.0", enabled=True, include_apis=False, retention=Retention(3))
    assert service_properties.decode(document, BLOB_ELEMENTS) == ServiceProperties(hour_metrics=expected)


def rule(**changes: str | None) -> str:
    texts = {
        "AllowedOrigins": "http://a.com",
        "AllowedMethods": "GET",
        "AllowedHeaders": "",
        "ExposedHeaders": "",
        "MaxAgeInSeconds": "5",
        **changes,
    }
    inside = "".join(f"<{name}>{text}</{name}>" for name, text in texts.items() if text is not None)
    return f"<CorsRule>{inside}</CorsRule>"


def cors(*rules: str) -> str:
    return f"<Cors>{''.join(rules)}</Cors>"


def read(inside: str) -> ServiceProperties:
    document = f"<StorageServiceProperties>{inside}</StorageServiceProperties>"
    return service_properties.decode(document.encode(), BLOB_ELEMENTS)


def many(count: int, item: str = "h{}") -> str:
    return ",".join(item.format(number) for number in range(count))


RETENTION = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
ALLOWED = [
    cors(*[rule()] * 5),
    cors(rule(AllowedOrigins=many(64))),
    cors(rule(AllowedHeaders=many(64))),
    cors(rule(AllowedHeaders=many(64) + ",x-ms-meta-a*,x-ms-meta-b*")),
    cors(rule(AllowedOrigins="a" * 256)),
    cors(rule(AllowedMethods="DELETE, GET, HEAD, MERGE, PATCH, POST, OPTIONS, PUT")),
    cors(rule(MaxAgeInSeconds="0")),
    "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>365</Days></DeleteRetentionPolicy>",
]
REFUSED = [
    (cors(*[rule()] * 6), "InvalidXmlDocument"),
    (cors("<Other/>"), "InvalidXmlDocument"),
    (cors(*[rule(AllowedOrigins="a" * 255)] * 4, rule(AllowedOrigins=many(9, "b" * 120 + "{}"))),
     "InvalidXmlDocument"),
    (cors(rule(AllowedOrigins=None)), "MissingRequiredXmlNode"),
    (cors(rule(AllowedMethods=None)), "MissingRequiredXmlNode"),
    (cors(rule(AllowedHeaders=None)), "MissingRequiredXmlNode"),
    (cors(rule(ExposedHeaders=None)), "MissingRequiredXmlNode"),
    (cors(rule(MaxAgeInSeconds=None)), "MissingRequiredXmlNode"),
    (cors(rule(AllowedOrigins="")), "InvalidXmlNodeValue"),
    (cors(rule(AllowedOrigins=many(65))), "InvalidXmlNodeValue"),
    (cors(rule(AllowedOrigins="a" * 257)), "InvalidXmlNodeValue"),
    (cors(rule(AllowedMethods="")), "InvalidXmlNodeValue"),
    (cors(rule(AllowedMethods="FETCH")), "InvalidXmlNodeValue"),
    (cors(rule(AllowedMethods="get")), "InvalidXmlNodeValue"),
    (cors(rule(AllowedHeaders=many(65))), "InvalidXmlNodeValue"),
    (cors(rule(ExposedHeaders="a*,b*,c*")), "InvalidXmlNodeValue"),
    (cors(rule(ExposedHeaders="x-\u0131d")), "InvalidXmlNodeValue"),
    (cors(rule(ExposedHeaders="x-a&#10;x-b")), "InvalidXmlNodeValue"),
    (cors(rule(AllowedHeaders="x a")), "InvalidXmlNodeValue"),
    (cors(rule(MaxAgeInSeconds="-1")), "InvalidXmlNodeValue"),
    (cors(rule(MaxAgeInSeconds="soon")), "InvalidXmlNodeValue"),
    ("<Unknown/>", "UnsupportedXmlNode"),
    ("<Cors/><Cors/>", "InvalidXmlDocument"),
    ("<Logging/>", "MissingRequiredXmlNode"),
    (f"<Logging><Version>1.0</Version><Delete>maybe</Delete><Read>true</Read><Write>true</Write>{RETENTION}"
     "</Logging>", "InvalidXmlNodeValue"),
    ("<HourMetrics><Version>1.0</Version><Enabled>false</Enabled></HourMetrics>", "MissingRequiredXmlNode"),
    (f"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled>{RETENTION}</HourMetrics>",
     "MissingRequiredXmlNode"),
    ("<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>", "MissingRequiredXmlNode"),
    ("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>0</Days></DeleteRetentionPolicy>",
     "InvalidXmlNodeValue"),
    ("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>",
     "InvalidXmlNodeValue"),
    ("<DefaultServiceVersion>new</DefaultServiceVersion>", "InvalidXmlNodeValue"),
    ("<StaticWebsite/>", "MissingRequiredXmlNode"),
]  # fmt: skip


@pytest.mark.parametrize("inside", ALLOWED)
def test_limits_that_are_just_met(inside: str) -> None:
    assert read(inside) != ServiceProperties()


@pytest.mark.parametrize(("inside", "code"), REFUSED)
def test_limits_that_are_passed(inside: str, code: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(inside)
    assert caught.value.code == code


def test_the_client_writes_what_we_read() -> None:
    transport = Canned(202)
    client(transport).set_service_properties(
        analytics_logging=BlobAnalyticsLogging(
            delete=True, write=True, retention_policy=RetentionPolicy(enabled=True, days=5)
        ),
        hour_metrics=SdkMetrics(
            enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=7)
        ),
        minute_metrics=SdkMetrics(enabled=False),
        cors=[
            SdkCorsRule(
                ["http://a.com", "http://b.com"],
                ["GET", "PUT"],
                max_age_in_seconds=60,
                exposed_headers=["x-ms-*"],
                allowed_headers=["*"],
            ),
            SdkCorsRule(["*"], ["OPTIONS"]),
        ],
        target_version="2020-10-02",
        delete_retention_policy=RetentionPolicy(enabled=True, days=14),
        static_website=SdkStaticWebsite(
            enabled=True, index_document="index.html", error_document404_path="errors/404.html"
        ),
    )
    found = service_properties.decode(transport.sent_body(), BLOB_ELEMENTS)
    assert found == FULL.updated(ServiceProperties(delete_retention=DeleteRetention(Retention(14))))


def test_the_client_reads_what_we_write() -> None:
    answer = client(Canned(200, service_properties.encode(FULL, BLOB_ELEMENTS))).get_service_properties()
    assert answer["target_version"] == "2020-10-02"
    assert (answer["analytics_logging"].delete, answer["analytics_logging"].read) == (True, False)
    assert answer["hour_metrics"].retention_policy.days == 7
    assert not answer["minute_metrics"].enabled
    assert [rule.allowed_origins for rule in answer["cors"]] == ["http://a.com,http://b.com", "*"]
    assert answer["cors"][0].max_age_in_seconds == 60
    assert answer["delete_retention_policy"].days == 14
    assert answer["static_website"].error_document404_path == "errors/404.html"


def test_the_client_reads_stats() -> None:
    moment = datetime(2024, 5, 1, 12, 34, 56, tzinfo=UTC)
    body = service_properties.encode_stats(instant_from_datetime(moment))
    answer = client(Canned(200, body)).get_service_stats()
    assert answer["geo_replication"] == {"status": "live", "last_sync_time": moment}
