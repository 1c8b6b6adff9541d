"""An account of a server for tests, and clients for it."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient
    from azure.storage.blob import BlobServiceClient
    from azure.storage.fileshare import ShareServiceClient
    from azure.storage.queue import QueueServiceClient


class MissingClient(Exception):
    """A client was wanted whose package is not installed."""


class _Client(NamedTuple):
    package: str
    module: str
    name: str


_CLIENTS = {
    "blob": _Client("azure-storage-blob", "azure.storage.blob", "BlobServiceClient"),
    "queue": _Client("azure-storage-queue", "azure.storage.queue", "QueueServiceClient"),
    "table": _Client("azure-data-tables", "azure.data.tables", "TableServiceClient"),
    "file": _Client("azure-storage-file-share", "azure.storage.fileshare", "ShareServiceClient"),
}


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    key: str
    connection_string: str
    endpoints: dict[str, str]
    """Service to URL, the account included."""
    requests_before: int = 0
    """The number of the last request that the server had recorded when the account was made."""

    def blob_service(self, **options: Any) -> "BlobServiceClient":
        """A ready client; the options are those of its class."""
        return self.client("blob", **options)  # type: ignore[no-any-return, unused-ignore]

    def queue_service(self, **options: Any) -> "QueueServiceClient":
        return self.client("queue", **options)  # type: ignore[no-any-return, unused-ignore]

    def table_service(self, **options: Any) -> "TableServiceClient":
        return self.client("table", **options)  # type: ignore[no-any-return, unused-ignore]

    def share_service(self, **options: Any) -> "ShareServiceClient":
        return self.client("file", **options)  # type: ignore[no-any-return, unused-ignore]

    def client(self, service: str, *, aio: bool = False, **options: Any) -> Any:
        """A client of Azure's package for a service, with ``aio`` the asynchronous one.

        It retries as often as the package does by default, but without pauses, unless the options say otherwise.
        """
        if service not in _CLIENTS:
            raise ValueError(f"There is no client for {service!r}. There is {', '.join(_CLIENTS)}.")
        wanted = _CLIENTS[service]
        try:
            module = import_module(f"{wanted.module}.aio" if aio else wanted.module)
        except ImportError as error:
            more = " and aiohttp" if aio else ""
            raise MissingClient(
                f"A client for the {service} service needs the package {wanted.package}{more}: "
                f"pip install {wanted.package}"
            ) from error
        factory = getattr(module, wanted.name)
        return factory.from_connection_string(
            self.connection_string, **_without_pauses(service, module, options)
        )


def _without_pauses(service: str, module: Any, options: dict[str, Any]) -> dict[str, Any]:
    if any(name.startswith("retry_") for name in options):
        return options
    if service == "table":
        return {"retry_backoff_factor": 0, **options}
    return {"retry_policy": module.LinearRetry(backoff=0, random_jitter_range=0), **options}
