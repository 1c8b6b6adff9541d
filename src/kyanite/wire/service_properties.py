"""``StorageServiceProperties`` and ``StorageServiceStats``: a service's properties and replication state, as XML.

Set … Service Properties keeps what a document leaves out, which is None in the values here. The caller says which
elements the service has; the rest is the same for all services.
"""

import re
from collections.abc import Callable
from typing import TypeVar

from kyanite.service_properties import (
    DeleteRetention,
    Logging,
    Metrics,
    ProtocolSettings,
    Retention,
    ServiceProperties,
    StaticWebsite,
)
from kyanite.values import Instant
from kyanite.wire import cors_rules, http_date, xml

MAX_RETENTION_DAYS = 365

_VERSION = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

T = TypeVar("T")


ANALYTICS = frozenset(("Logging", "HourMetrics", "MinuteMetrics", "Cors"))
BLOB_ELEMENTS = ANALYTICS | {"DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite"}
QUEUE_ELEMENTS = ANALYTICS
TABLE_ELEMENTS = ANALYTICS
FILE_ELEMENTS = (ANALYTICS - {"Logging"}) | {"ProtocolSettings", "ShareDeleteRetentionPolicy"}
"""In Azure the retention of deleted shares is set through the management API of accounts, which this server lacks."""

EVERY_ELEMENT = BLOB_ELEMENTS | FILE_ELEMENTS


def decode(document: bytes, elements: frozenset[str]) -> ServiceProperties:
    """The properties in the document. Raises Malformed."""
    found: dict[str, xml.Element] = {}
    for child in xml.decode(document, "StorageServiceProperties"):
        name = _FORMER_NAMES.get(child.name, child.name)
        if name not in elements:
            raise xml.unsupported_node(child.name)
        if name in found:
            raise xml.invalid_document()
        found[name] = child

    def read(name: str, reader: Callable[[xml.Element], T]) -> T | None:
        return reader(found[name]) if name in found else None

    return ServiceProperties(
        logging=read("Logging", _logging),
        hour_metrics=read("HourMetrics", _metrics),
        minute_metrics=read("MinuteMetrics", _metrics),
        cors=read("Cors", cors_rules.decode),
        default_service_version=read("DefaultServiceVersion", _service_version),
        delete_retention=read("DeleteRetentionPolicy", _delete_retention),
        static_website=read("StaticWebsite", _static_website),
        protocols=read("ProtocolSettings", _protocols),
        share_retention=read("ShareDeleteRetentionPolicy", _retention),
    )


_FORMER_NAMES = {"Metrics": "HourMetrics"}
"""Until 2013-08-15 there were only hourly metrics."""


def encode(properties: ServiceProperties, elements: frozenset[str]) -> bytes:
    """The document, with the elements that the service has and that are set."""

    def written(name: str, value: T | None, write: Callable[[T], str]) -> str:
        return "" if value is None or name not in elements else xml.wrapped(name, write(value))

    inside = (
        written("Logging", properties.logging, _logging_text)
        + written("HourMetrics", properties.hour_metrics, _metrics_text)
        + written("MinuteMetrics", properties.minute_metrics, _metrics_text)
        + written("Cors", properties.cors, cors_rules.encode)
        + written("DefaultServiceVersion", properties.default_service_version, xml.escape)
        + written("DeleteRetentionPolicy", properties.delete_retention, _delete_retention_text)
        + written("StaticWebsite", properties.static_website, _static_website_text)
        + written("ProtocolSettings", properties.protocols, _protocols_text)
        + written("ShareDeleteRetentionPolicy", properties.share_retention, _retention_text)
    )
    return xml.document(xml.wrapped("StorageServiceProperties", inside))


def encode_stats(last_synced_at: Instant) -> bytes:
    """A single store is its own replica, so it is always in sync."""
    status = f"<Status>live</Status><LastSyncTime>{http_date.encode(last_synced_at)}</LastSyncTime>"
    return xml.document(
        f"<StorageServiceStats><GeoReplication>{status}</GeoReplication></StorageServiceStats>"
    )


def _logging(element: xml.Element) -> Logging:
    return Logging(
        version=element.required_text("Version"),
        delete=element.flag("Delete"),
        read=element.flag("Read"),
        write=element.flag("Write"),
        retention=_retention(element.required_child("RetentionPolicy")),
    )


def _metrics(element: xml.Element) -> Metrics:
    enabled = element.flag("Enabled")
    return Metrics(
        version=element.required_text("Version"),
        enabled=enabled,
        include_apis=element.flag("IncludeAPIs") if enabled else False,
        retention=_retention(element.required_child("RetentionPolicy")),
    )


def _retention(element: xml.Element) -> Retention:
    if not element.flag("Enabled"):
        return Retention()
    return Retention(element.number("Days", minimum=1, maximum=MAX_RETENTION_DAYS))


def _delete_retention(element: xml.Element) -> DeleteRetention:
    permanent = element.child("AllowPermanentDelete") is not None and element.flag("AllowPermanentDelete")
    return DeleteRetention(_retention(element), permanent)


def _static_website(element: xml.Element) -> StaticWebsite:
    if not element.flag("Enabled"):
        return StaticWebsite()
    return StaticWebsite(
        enabled=True,
        index_document=element.optional_text("IndexDocument"),
        default_index_document_path=element.optional_text("DefaultIndexDocumentPath"),
        error_document_404_path=element.optional_text("ErrorDocument404Path"),
    )


def _service_version(element: xml.Element) -> str:
    if _VERSION.fullmatch(element.text) is None:
        raise xml.bad_node("DefaultServiceVersion", element.text)
    return element.text


def _flag_text(name: str, value: bool) -> str:
    return f"<{name}>{'true' if value else 'false'}</{name}>"


def _retention_text(retention: Retention) -> str:
    days = "" if retention.days is None else f"<Days>{retention.days}</Days>"
    return _flag_text("Enabled", retention.days is not None) + days


def _logging_text(logging: Logging) -> str:
    flags = (("Delete", logging.delete), ("Read", logging.read), ("Write", logging.write))
    policy = xml.wrapped("RetentionPolicy", _retention_text(logging.retention))
    return xml.element("Version", logging.version) + "".join(_flag_text(*flag) for flag in flags) + policy


def _metrics_text(metrics: Metrics) -> str:
    apis = _flag_text("IncludeAPIs", metrics.include_apis) if metrics.enabled else ""
    policy = xml.wrapped("RetentionPolicy", _retention_text(metrics.retention))
    return xml.element("Version", metrics.version) + _flag_text("Enabled", metrics.enabled) + apis + policy


def _delete_retention_text(policy: DeleteRetention) -> str:
    permanent = _flag_text("AllowPermanentDelete", True) if policy.allow_permanent_delete else ""
    return _retention_text(policy.retention) + permanent


def _static_website_text(website: StaticWebsite) -> str:
    documents = (
        ("IndexDocument", website.index_document),
        ("DefaultIndexDocumentPath", website.default_index_document_path),
        ("ErrorDocument404Path", website.error_document_404_path),
    )
    paths = "".join(xml.element(name, path) for name, path in documents if path is not None)
    return _flag_text("Enabled", website.enabled) + paths


_PROTOCOL_FLAGS = (
    ("SMB", "Multichannel", "Enabled"),
    ("SMB", "EncryptionInTransit", "Required"),
    ("NFS", "EncryptionInTransit", "Required"),
)
"""The elements of the flags of ``ProtocolSettings``, in the order of its fields."""


def _protocols(element: xml.Element) -> ProtocolSettings:
    return ProtocolSettings(*(_nested_flag(element, path) for path in _PROTOCOL_FLAGS))


def _nested_flag(element: xml.Element, path: tuple[str, str, str]) -> bool | None:
    found: xml.Element | None = element
    for name in path[:2]:
        found = None if found is None else found.child(name)
    return None if found is None or found.child(path[2]) is None else found.flag(path[2])


def _protocols_text(settings: ProtocolSettings) -> str:
    texts = {"SMB": "", "NFS": ""}
    for (protocol, feature, name), value in zip(_PROTOCOL_FLAGS, settings, strict=True):
        if value is not None:
            texts[protocol] += xml.wrapped(feature, _flag_text(name, value))
    return "".join(xml.wrapped(protocol, text) for protocol, text in texts.items() if text)
