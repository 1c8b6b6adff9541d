"""The properties of a service of an account: analytics, CORS rules, retention, the default version, SMB.

The wire format reads and writes these values, the rules and the model obey them. They are stored as they are here
(``model/settings.py``), so a new field goes to the end of its tuple and has a default.
"""

from typing import Any, NamedTuple


class Retention(NamedTuple):
    """For how many days something is kept; None when it is not kept by this setting."""

    days: int | None = None


class Logging(NamedTuple):
    version: str = "1.0"
    delete: bool = False
    read: bool = False
    write: bool = False
    retention: Retention = Retention()


class Metrics(NamedTuple):
    version: str = "1.0"
    enabled: bool = False
    include_apis: bool = False
    retention: Retention = Retention()


class CorsRule(NamedTuple):
    """One cross-origin rule. Origins and headers may be ``("*",)``."""

    allowed_origins: tuple[str, ...]
    allowed_methods: tuple[str, ...]
    max_age_seconds: int
    exposed_headers: tuple[str, ...]
    allowed_headers: tuple[str, ...]


class DeleteRetention(NamedTuple):
    """Soft delete of blobs."""

    retention: Retention = Retention()
    allow_permanent_delete: bool = False


class StaticWebsite(NamedTuple):
    enabled: bool = False
    index_document: str | None = None
    default_index_document_path: str | None = None
    error_document_404_path: str | None = None


class ProtocolSettings(NamedTuple):
    """What the protocols of file shares demand. None is not set."""

    smb_multichannel: bool | None = None
    smb_encryption: bool | None = None
    nfs_encryption: bool | None = None


class ServiceProperties(NamedTuple):
    """All properties that any service has. None is not set; in a change it leaves the property as it is."""

    logging: Logging | None = None
    hour_metrics: Metrics | None = None
    minute_metrics: Metrics | None = None
    cors: tuple[CorsRule, ...] | None = None
    default_service_version: str | None = None
    delete_retention: DeleteRetention | None = None
    static_website: StaticWebsite | None = None
    protocols: ProtocolSettings | None = None
    share_retention: Retention | None = None
    versioning: bool | None = None
    """Of the Blob service: whether overwriting and deleting a blob keeps its previous version."""
    container_retention: Retention | None = None
    """Soft delete of containers."""

    def updated(self, change: "ServiceProperties") -> "ServiceProperties":
        """These properties with those that the change sets."""
        merged = self._replace(**_fields_set(change))
        if self.protocols is not None and change.protocols is not None:
            return merged._replace(protocols=self.protocols._replace(**_fields_set(change.protocols)))
        return merged


def _fields_set(change: ServiceProperties | ProtocolSettings) -> dict[str, Any]:
    return {name: value for name, value in change._asdict().items() if value is not None}


INITIAL = ServiceProperties(
    logging=Logging(),
    hour_metrics=Metrics(),
    minute_metrics=Metrics(),
    cors=(),
    delete_retention=DeleteRetention(),
    static_website=StaticWebsite(),
    protocols=ProtocolSettings(smb_multichannel=False),
)
"""What an account starts with: everything off. The Azure CLI fails without the SMB settings."""
