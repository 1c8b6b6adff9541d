"""The operations of the Blob service, in the order of the REST reference.

The last column is what the caller needs (``rules/authorization.py``). Among rows that differ only by a header the first
that fits the request counts. The rows of Blob Batch, which uses this table for its parts, are in ``batch.py``.
"""

from functools import partial

from kyanite.rules.authorization import Access
from kyanite.services.blob import (
    account,
    append_blob,
    blob,
    block_blob,
    block_list,
    container,
    copy,
    find_blobs,
    immutability,
    lists,
    page_blob,
    page_ranges,
    tags,
)
from kyanite.services.blob.immutability import IMMUTABILITY
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import ANY_TOKEN, BREAKS, Op, delegation_key, not_yet, query
from kyanite.services.rest.service_properties import properties_operations, stats_operation
from kyanite.services.rest.user_delegation import get_user_delegation_key
from kyanite.wire.service_properties import BLOB_ELEMENTS

SERVICE, CONTAINER, BLOB = Resource.SERVICE, Resource.CONTAINER, Resource.OBJECT

READ = Access(account="o r", service="r", public="blob", role="blobs/read")
WRITE = Access(account="o w", service="w", writes=True, role="blobs/write")
CREATE_OR_WRITE = Access(account="o cw", service="cw", writes=True, role="blobs/write|blobs/add")
SNAPSHOT = Access(account="o cw", service="cw", writes=True, role="blobs/write")
APPEND = Access(account="o aw", service="aw", writes=True, role="blobs/write|blobs/add")
SEAL = Access(account="o aw", service="aw", writes=True, role="blobs/write")
DELETE = Access(account="o d", service="d", writes=True, role="blobs/delete")
DELETE_VERSION = Access(account="o x", service="x", writes=True, role="blobs/deleteBlobVersion")
DELETE_PERMANENTLY = Access(account="o y", service="y", writes=True, role="blobs/permanentDelete")
WRITE_OR_DELETE = Access(account="o wd", service="wd", writes=True, role="blobs/write")
TAGS = Access(account="o t", service="t", role="blobs/tags/read")
SET_TAGS = Access(account="o t", service="t", writes=True, role="blobs/tags/write")
FIND_BY_TAGS = Access(account="o f", role="blobs/filter")
FIND_IN_CONTAINER = Access(account="o f", service="f", whole_container=True, role="blobs/filter")
LIST_BLOBS = Access(account="c l", service="l", public="container", in_directory=True, role="blobs/read")
LIST_CONTAINERS = Access(account="s l", role="containers/read")
READ_CONTAINER = Access(account="c r", public="container", role="containers/read")
WRITE_CONTAINER = Access(account="c w", writes=True, role="containers/write")
CREATE_CONTAINER = Access(account="c cw", writes=True, role="containers/write")
DELETE_CONTAINER = Access(account="c d", writes=True, role="containers/delete")
BREAK_CONTAINER_LEASE = Access(account="c wd", writes=True, role="containers/write")
GET_ACL = Access(role="containers/getAcl", role_since="2025-07-05")
SET_ACL = Access(role="containers/setAcl", role_since="2025-07-05", writes=True)


# fmt: off
OPERATIONS = (
    # The service
    Op("List Containers", "GET", SERVICE, query(comp="list"), lists.list_containers, LIST_CONTAINERS),
    *properties_operations("Blob", BLOB_ELEMENTS),
    stats_operation("Blob"),
    Op("Get User Delegation Key", "POST", SERVICE, query("service", "userdelegationkey"), partial(get_user_delegation_key, service="blob"), delegation_key("blob", "2018-11-09")),
    Op("Get Account Information", "GET HEAD", SERVICE, query("account", "properties"), account.get_information, ANY_TOKEN),
    Op("Get Account Information", "GET HEAD", CONTAINER, query("account", "properties"), account.get_information, ANY_TOKEN),
    Op("Get Account Information", "GET HEAD", BLOB, query("account", "properties"), account.get_information, ANY_TOKEN),
    Op("Find Blobs by Tags", "GET", SERVICE, query(comp="blobs"), find_blobs.find_blobs_in_account, FIND_BY_TAGS),

    # Containers
    Op("Create Container", "PUT", CONTAINER, query("container"), container.create_container, CREATE_CONTAINER),
    Op("Get Container Properties", "GET HEAD", CONTAINER, query("container"), container.get_container_properties, READ_CONTAINER),
    Op("Delete Container", "DELETE", CONTAINER, query("container"), container.delete_container, DELETE_CONTAINER),
    Op("Get Container Metadata", "GET HEAD", CONTAINER, query("container", "metadata"), container.get_container_metadata, READ_CONTAINER),
    Op("Set Container Metadata", "PUT", CONTAINER, query("container", "metadata"), container.set_container_metadata, WRITE_CONTAINER),
    Op("Get Container ACL", "GET HEAD", CONTAINER, query("container", "acl"), container.get_container_acl, GET_ACL),
    Op("Set Container ACL", "PUT", CONTAINER, query("container", "acl"), container.set_container_acl, SET_ACL),
    Op("List Blobs", "GET", CONTAINER, query("container", "list"), lists.list_blobs, LIST_BLOBS),
    Op("Lease Container", "PUT", CONTAINER, query("container", "lease"), container.lease_container, BREAK_CONTAINER_LEASE, when=BREAKS),
    Op("Lease Container", "PUT", CONTAINER, query("container", "lease"), container.lease_container, WRITE_CONTAINER),
    Op("Restore Container", "PUT", CONTAINER, query("container", "undelete"), container.restore_container, WRITE_CONTAINER),
    Op("Rename Container", "PUT", CONTAINER, query("container", "rename"), container.rename_container, WRITE_CONTAINER),
    Op("Find Blobs by Tags", "GET", CONTAINER, query("container", "blobs"), find_blobs.find_blobs_in_container, FIND_IN_CONTAINER),

    # Blobs
    Op("Copy Blob From URL", "PUT", BLOB, query(), copy.copy_blob_from_url, CREATE_OR_WRITE, when="x-ms-requires-sync: true"),
    Op("Put Blob From URL", "PUT", BLOB, query(), copy.put_blob_from_url, CREATE_OR_WRITE, when="x-ms-copy-source & x-ms-blob-type"),
    Op("Copy Blob", "PUT", BLOB, query(), copy.copy_blob, CREATE_OR_WRITE, when="x-ms-copy-source"),
    Op("Put Blob", "PUT", BLOB, query(), page_blob.put_page_blob, CREATE_OR_WRITE, when="x-ms-blob-type: PageBlob"),
    Op("Put Blob", "PUT", BLOB, query(), append_blob.put_append_blob, CREATE_OR_WRITE, when="x-ms-blob-type: AppendBlob"),
    Op("Put Blob", "PUT", BLOB, query(), block_blob.put_blob, CREATE_OR_WRITE),
    Op("Get Blob", "GET", BLOB, query(), blob.get_blob, READ),
    Op("Get Blob Properties", "HEAD", BLOB, query(), blob.get_blob_properties, READ),
    Op("Delete Blob", "DELETE", BLOB, query(), blob.delete_blob, DELETE_PERMANENTLY, when="?deletetype"),
    Op("Delete Blob", "DELETE", BLOB, query(), blob.delete_blob, DELETE_VERSION, when="?versionid"),
    Op("Delete Blob", "DELETE", BLOB, query(), blob.delete_blob, DELETE),
    Op("Get Blob Metadata", "GET HEAD", BLOB, query(comp="metadata"), blob.get_blob_metadata, READ),
    Op("Set Blob Metadata", "PUT", BLOB, query(comp="metadata"), blob.set_blob_metadata, WRITE),
    Op("Set Blob Properties", "PUT", BLOB, query(comp="properties"), page_blob.set_page_blob_properties, WRITE, when="x-ms-blob-content-length"),
    Op("Set Blob Properties", "PUT", BLOB, query(comp="properties"), page_blob.set_page_blob_properties, WRITE, when="x-ms-sequence-number-action"),
    Op("Set Blob Properties", "PUT", BLOB, query(comp="properties"), blob.set_blob_properties, WRITE),
    Op("Lease Blob", "PUT", BLOB, query(comp="lease"), blob.lease_blob, WRITE_OR_DELETE, when=BREAKS),
    Op("Lease Blob", "PUT", BLOB, query(comp="lease"), blob.lease_blob, WRITE),
    Op("Snapshot Blob", "PUT", BLOB, query(comp="snapshot"), blob.snapshot_blob, SNAPSHOT),
    Op("Abort Copy Blob", "PUT", BLOB, query(comp="copy"), copy.abort_copy_blob, WRITE),
    Op("Set Blob Tier", "PUT", BLOB, query(comp="tier"), blob.set_blob_tier, WRITE),
    Op("Undelete Blob", "PUT", BLOB, query(comp="undelete"), blob.undelete_blob, WRITE),
    Op("Set Blob Expiry", "PUT", BLOB, query(comp="expiry"), not_yet, WRITE),
    Op("Set Blob Immutability Policy", "PUT", BLOB, query(comp="immutabilitypolicies"), immutability.set_immutability_policy, IMMUTABILITY),
    Op("Delete Blob Immutability Policy", "DELETE", BLOB, query(comp="immutabilitypolicies"), immutability.delete_immutability_policy, IMMUTABILITY),
    Op("Set Blob Legal Hold", "PUT", BLOB, query(comp="legalhold"), immutability.set_legal_hold, IMMUTABILITY),
    Op("Get Blob Tags", "GET", BLOB, query(comp="tags"), tags.get_blob_tags, TAGS),
    Op("Set Blob Tags", "PUT", BLOB, query(comp="tags"), tags.set_blob_tags, SET_TAGS),
    Op("Query Blob Contents", "POST", BLOB, query(comp="query"), not_yet, READ),

    # Block, append and page blobs
    Op("Put Block From URL", "PUT", BLOB, query(comp="block"), block_list.put_block_from_url, CREATE_OR_WRITE, when="x-ms-copy-source"),
    Op("Put Block", "PUT", BLOB, query(comp="block"), block_list.put_block, CREATE_OR_WRITE),
    Op("Put Block List", "PUT", BLOB, query(comp="blocklist"), block_list.put_block_list, CREATE_OR_WRITE),
    Op("Get Block List", "GET", BLOB, query(comp="blocklist"), block_list.get_block_list, READ),
    Op("Append Block From URL", "PUT", BLOB, query(comp="appendblock"), append_blob.append_block_from_url, APPEND, when="x-ms-copy-source"),
    Op("Append Block", "PUT", BLOB, query(comp="appendblock"), append_blob.append_block, APPEND),
    Op("Append Blob Seal", "PUT", BLOB, query(comp="seal"), append_blob.seal_append_blob, SEAL),
    Op("Put Page From URL", "PUT", BLOB, query(comp="page"), page_blob.put_page_from_url, WRITE, when="x-ms-copy-source"),
    Op("Put Page", "PUT", BLOB, query(comp="page"), page_blob.put_page, WRITE),
    Op("Get Page Ranges", "GET", BLOB, query(comp="pagelist"), page_ranges.get_page_ranges, READ),
    Op("Incremental Copy Blob", "PUT", BLOB, query(comp="incrementalcopy"), not_yet, WRITE),
)
# fmt: on
