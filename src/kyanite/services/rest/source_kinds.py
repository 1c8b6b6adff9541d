"""The services whose resources may be the source of a copy, whichever service makes it."""

from kyanite.rules.permissions import Access
from kyanite.services.rest import blob_paths, file_paths
from kyanite.services.rest.sources import SourceKind

BLOB_SOURCE = SourceKind(
    "blob", blob_paths.locate, blob_paths.acl_lookup, Access(account="o r", service="r", public="blob")
)
FILE_SOURCE = SourceKind("file", file_paths.locate, file_paths.acl_lookup, Access(account="o r", service="r"))
