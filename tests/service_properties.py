"""Service properties for tests of the wire format, the model and upgrades."""

from kyanite.service_properties import (
    CorsRule,
    DeleteRetention,
    Logging,
    Metrics,
    ProtocolSettings,
    Retention,
    ServiceProperties,
    StaticWebsite,
)

RULE = CorsRule(("http://a.com", "http://b.com"), ("GET", "PUT"), 60, ("x-ms-*",), ())
EVERYTHING = ServiceProperties(
    logging=Logging("1.0", delete=True, read=False, write=True, retention=Retention(5)),
    hour_metrics=Metrics("1.0", enabled=True, include_apis=True, retention=Retention(7)),
    minute_metrics=Metrics("1.0", enabled=False),
    cors=(RULE, RULE),
    default_service_version="2020-10-02",
    delete_retention=DeleteRetention(Retention(14), allow_permanent_delete=True),
    static_website=StaticWebsite(True, "index.html", None, "errors/404.html"),
    protocols=ProtocolSettings(True, None, False),
    share_retention=Retention(3),
)
"""Every property has a value that it does not begin with."""
