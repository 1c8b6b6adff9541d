"""The operations of the File service, in the order of the REST reference.

The last column is what the caller needs (``rules/authorization.py``); nothing here is ever public. Among rows that
differ only by a header the first that fits the request counts.
"""

from functools import partial

from kyanite.rules.authorization import Access
from kyanite.services.files import (
    copy,
    directory,
    file,
    handles,
    links,
    lists,
    permission,
    ranges,
    rename,
    share,
)
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import BREAKS, Op, delegation_key, query
from kyanite.services.rest.service_properties import properties_operations
from kyanite.services.rest.user_delegation import get_user_delegation_key
from kyanite.wire.service_properties import FILE_ELEMENTS

SERVICE, SHARE, PATH = Resource.SERVICE, Resource.CONTAINER, Resource.OBJECT

# An OAuth caller overrides the permissions of files, which takes an action of its own.
BACKUP_READ = "files/read&fileServices/readFileBackupSemantics"
BACKUP_WRITE = "files/write&fileServices/writeFileBackupSemantics"
BACKUP_DELETE = "files/delete&fileServices/writeFileBackupSemantics"
BACKUP_PERMISSIONS = "files/modifypermissions&fileServices/writeFileBackupSemantics"
SHARES_SINCE = "2024-11-04"

LIST_SHARES = Access(account="s l", role="shares/read", role_since=SHARES_SINCE)
READ_SHARE = Access(account="c r", role="shares/read", role_since=SHARES_SINCE)
WRITE_SHARE = Access(account="c w", writes=True, role="shares/write", role_since=SHARES_SINCE)
CREATE_SHARE = Access(account="c cw", writes=True, role="shares/write", role_since=SHARES_SINCE)
DELETE_SHARE = Access(account="c d", writes=True, role="shares/delete", role_since=SHARES_SINCE)
BREAK_SHARE_LEASE = Access(account="c wd", writes=True, role="shares/write", role_since=SHARES_SINCE)
GET_ACL = Access(role="shares/getAcl", role_since=SHARES_SINCE)
SET_ACL = Access(role="shares/setAcl", role_since=SHARES_SINCE, writes=True)
CREATE_PERMISSION = Access(account="c cw", service="w", writes=True, role=BACKUP_PERMISSIONS)
GET_PERMISSION = Access(account="c r", service="r", role=BACKUP_READ)
LIST = Access(account="c l", service="l", role=BACKUP_READ)
READ = Access(account="o r", service="r", role=BACKUP_READ)
WRITE = Access(account="o w", service="w", writes=True, role=BACKUP_WRITE)
CREATE = Access(account="o cw", service="cw", writes=True, role=BACKUP_WRITE)
DELETE = Access(account="o d", service="d", writes=True, role=BACKUP_DELETE)
BREAK_LEASE = Access(account="o wd", service="wd", writes=True, role=BACKUP_WRITE)


# fmt: off
OPERATIONS = (
    # The service
    Op("List Shares", "GET", SERVICE, query(comp="list"), lists.list_shares, LIST_SHARES),
    *properties_operations("File", FILE_ELEMENTS),
    Op("Get User Delegation Key", "POST", SERVICE, query("service", "userdelegationkey"), partial(get_user_delegation_key, service="file"), delegation_key("file", "2026-02-06")),

    # Shares
    Op("Create Share", "PUT", SHARE, query("share"), share.create_share, CREATE_SHARE),
    Op("Get Share Properties", "GET HEAD", SHARE, query("share"), share.get_share_properties, READ_SHARE),
    Op("Delete Share", "DELETE", SHARE, query("share"), share.delete_share, DELETE_SHARE),
    Op("Set Share Properties", "PUT", SHARE, query("share", "properties"), share.set_share_properties, WRITE_SHARE),
    Op("Get Share Metadata", "GET HEAD", SHARE, query("share", "metadata"), share.get_share_metadata, READ_SHARE),
    Op("Set Share Metadata", "PUT", SHARE, query("share", "metadata"), share.set_share_metadata, WRITE_SHARE),
    Op("Get Share ACL", "GET HEAD", SHARE, query("share", "acl"), share.get_share_acl, GET_ACL),
    Op("Set Share ACL", "PUT", SHARE, query("share", "acl"), share.set_share_acl, SET_ACL),
    Op("Get Share Stats", "GET", SHARE, query("share", "stats"), share.get_share_stats, READ_SHARE),
    Op("Lease Share", "PUT", SHARE, query("share", "lease"), share.lease_share, BREAK_SHARE_LEASE, when=BREAKS),
    Op("Lease Share", "PUT", SHARE, query("share", "lease"), share.lease_share, WRITE_SHARE),
    Op("Snapshot Share", "PUT", SHARE, query("share", "snapshot"), share.snapshot_share, CREATE_SHARE),
    Op("Restore Share", "PUT", SHARE, query("share", "undelete"), share.restore_share, WRITE_SHARE),
    Op("Create Permission", "PUT", SHARE, query("share", "filepermission"), permission.create_permission, CREATE_PERMISSION),
    Op("Get Permission", "GET", SHARE, query("share", "filepermission"), permission.get_permission, GET_PERMISSION),

    # Directories
    Op("Create Directory", "PUT", PATH, query("directory"), directory.create_directory, CREATE),
    Op("Get Directory Properties", "GET HEAD", PATH, query("directory"), directory.get_directory_properties, READ),
    Op("Delete Directory", "DELETE", PATH, query("directory"), directory.delete_directory, DELETE),
    Op("Set Directory Properties", "PUT", PATH, query("directory", "properties"), directory.set_directory_properties, WRITE),
    Op("Get Directory Metadata", "GET HEAD", PATH, query("directory", "metadata"), directory.get_directory_metadata, READ),
    Op("Set Directory Metadata", "PUT", PATH, query("directory", "metadata"), directory.set_directory_metadata, WRITE),
    Op("List Directories and Files", "GET", PATH, query("directory", "list"), lists.list_directories_and_files, LIST),
    Op("Rename Directory", "PUT", PATH, query("directory", "rename"), rename.rename_directory, WRITE),

    # Files
    Op("Copy File", "PUT", PATH, query(), copy.copy_file, CREATE, when="x-ms-copy-source"),
    Op("Create File", "PUT", PATH, query(), file.create_file, CREATE),
    Op("Get File", "GET", PATH, query(), ranges.get_file, READ),
    Op("Get File Properties", "HEAD", PATH, query(), file.get_file_properties, READ),
    Op("Delete File", "DELETE", PATH, query(), file.delete_file, DELETE),
    Op("Set File Properties", "PUT", PATH, query(comp="properties"), file.set_file_properties, WRITE),
    Op("Get File Metadata", "GET HEAD", PATH, query(comp="metadata"), file.get_file_metadata, READ),
    Op("Set File Metadata", "PUT", PATH, query(comp="metadata"), file.set_file_metadata, WRITE),
    Op("Lease File", "PUT", PATH, query(comp="lease"), file.lease_file, BREAK_LEASE, when=BREAKS),
    Op("Lease File", "PUT", PATH, query(comp="lease"), file.lease_file, WRITE),
    Op("Put Range From URL", "PUT", PATH, query(comp="range"), copy.put_range_from_url, WRITE, when="x-ms-copy-source"),
    Op("Put Range", "PUT", PATH, query(comp="range"), ranges.put_range, WRITE),
    Op("List Ranges", "GET", PATH, query(comp="rangelist"), ranges.list_ranges, READ),
    Op("Abort Copy File", "PUT", PATH, query(comp="copy"), copy.abort_copy_file, WRITE),
    Op("Rename File", "PUT", PATH, query(comp="rename"), rename.rename_file, WRITE),
    Op("Create Symbolic Link", "PUT", PATH, query("symboliclink"), links.create_symbolic_link, CREATE),
    Op("Read Symbolic Link", "GET", PATH, query("symboliclink"), links.read_symbolic_link, READ),
    Op("Create Hard Link", "PUT", PATH, query("hardlink"), links.create_hard_link, CREATE),

    # Handles of either
    Op("List Handles", "GET", PATH, query(comp="listhandles"), handles.list_handles, READ),
    Op("Force Close Handles", "PUT", PATH, query(comp="forceclosehandles"), handles.force_close_handles, WRITE),
)
# fmt: on
