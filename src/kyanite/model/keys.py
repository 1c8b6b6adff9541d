"""The key layout: the only module that builds keys.

Keys are ordered bytes. A key is a prefix of one letter and then parts that keep their order: fixed-width numbers,
big-endian, and texts in UTF-8 that end with a zero byte when another part follows (no legal name contains one).
What is inside a container, queue, table or share is keyed by the id of that resource and not by its name. So deleting
it is one small transaction, and a name that is used again can never show what was there before.

    prefix  rest of the key                         value
    ------  --------------------------------------  -----------------------------------------
    s       account 0 service                       service properties (``model/settings.py``)
    c       account 0 container name                container record
    n       container id, blob name                 blob record (the base blob)
    v       container id, blob name 0 instant       blob record (a snapshot)
    E       container id, blob name 0 instant       blob record (a previous version, by its version id)
    X       container id, 0, blob name              deleted blob: the base blob
    X       container id, 1, blob name 0 instant    deleted blob: a snapshot
    X       container id, 2, blob name 0 instant    deleted blob: a previous version
    8       gone at (8), rest of the key of X       when a deleted blob is gone for good
    7       container id, blob name                 when a block blob was last accessed (8)
    i       container id, blob name                 staging area: the blocks that are not committed yet
    j       staging id (8 bytes), block id          staged block
    y       staging id (8 bytes)                    an abandoned staging area, to be purged
    d       container id                            a deleted container, to be purged
    5       account 0 container name 0 instant      a container that was deleted at that instant and can be restored
    6       expires at (8), key of a row            what can be restored until that instant: the row with this key
    b       number (8 bytes)                        an inline body, which engines may store apart from other rows
    k       number (8 bytes)                        the number of references to an inline body, if several
    x       segment (16 bytes), start (8 bytes)     extent: length, CRC and references
    g       died at (8), segment (16), start (8)    freed extent: it has no references any more
    -       found at (8), segment (16)              a segment that nothing refers to, to be removed some time later
    l       layer id (8 bytes)                      layer: its parent and references
    e       layer id (8), layer id (8)              edge: the second layer lies on top of the first
    r       layer id (8 bytes), offset (8 bytes)    interval row
    u       layer id (8 bytes)                      pending compaction: a layer to be purged or merged
    h       owner (12), number (8)                  pinned read: a process reads a layer for a long time
    1       owner (12), number (8)                  slow read: the extents that a process reads for a long time
    q       account 0 queue name                    queue record
    m       message set id, visible at, put at (8)  message of a queue, in the order of delivery
    a       message set id (8), shard (1)           number of messages, in several parts, which may be negative
    z       message set id (8)                      messages of a cleared or deleted queue, to be purged
    t       account 0 table name in lower case      table record
    w       table id, partition key 0 row key       entity; its keys sort by ``edm.ordinal``
    o       table id, id (8), 0, number (1 each)    the rest of an entity that does not fit into its row
    T       table id                                a deleted table, to be purged
    F       account 0 share name                    share record
    S       share id, instant                       share snapshot: the share record of that time
    N       share id, directory id, folded name     file or directory; the root has the id 0 and no name, and a file
                                                    with several names its own id and no name
    V       share id, directory id, name 0 instant  snapshot copy: the entry as it was until that snapshot
    P       share id, key (16 bytes)                security descriptor
    U       share id, shard (1)                     number of bytes of the files of a share, in several parts
    H       share id, file id                       a file or directory that has open handles
    H       share id, file id, handle id            open handle
    M       share id, directory id, folded name     an entry that is deleted when its last handle is closed
    D       share id                                a deleted share, to be purged
    R       account 0 share name 0 instant          a share that was deleted at that instant and can be restored
    L       share id                                a share whose snapshot copies to check after a snapshot was deleted
    O       share id, directory id, handle, file    an entry with open handles, under every directory above it, in the
                                                    order of the first handle of each
    Q       owner (12), share id, file id, handle   open handle, by the process that serves it
    J       client (16), lease key (16)             the file that a client's lease key is for
    K       owner (12), number (8)                  an oplock or lease break that this process has to send to a client
    C       client (16), create guid (16)           the handle that a client has given a create guid
    Y       session id                              SMB session: the process that serves it, and its account
    Z       owner (12), 0 or 1, session id          SMB session, by the process that serves it; 1 if it is to be ended
    W       share id                                the feed of what changes in a share that clients watch
    W       share id, position (2)                  a change
    p       container id, blob name                 changes of all snapshots and versions of a blob that are yet to be
                                                    applied to their rows
    G       account 0 tag key 0 value 0             a blob that has this tag; by the id of its container, and not by
            container id, blob name                 the name, which may change
    G       0 container id                          account 0 name of a container with tagged blobs
    I       container id, blob name 0 until, taken  a snapshot that has an immutability policy or a legal hold of its
                                                    own, by the end of that and the instant of the snapshot (8 each)
    9       account 0 letter (1) container name     a container that is protected: c as a whole, v with version-level
                                                    immutability
    3       account                                 the secret of the account's user delegation keys
    4       account 0 tenant 0 object id            a caller that was given a user delegation key
    2       -                                       how far the scrub has come, and the damage that it has found
    f       -                                       the format of the store, and how far an upgrade has come
    A       account                                 account: its sealed keys, and settings that every request obeys
    A       -                                       the instant at which an account was last changed
    A       0 account                               a removed account, whose containers, queues … are to be deleted
    !       0 number (8)                            a question to all processes: why was a request refused?
    !       1 number (8), owner (12)                what a process answers
    !       2 number (8)                            a watch: somebody looks at the requests of all processes
    !       3 owner (12), number (8)                requests that a process has completed, for those who watch
    0       account 0                               a migration of this account into the store
    0       account 0 letter (1), old id (8)        the id that took its place; letters as of the rows with that id
    0       account 0 x, segment (16), start (8)    the extent that took the place of one of the former store
    B       0 owner (12)                            a process of a node that is alive
    B       1 owner (12)                            its heartbeat
    B       2 owner (12)                            a dead process of a node, to be cleaned up
    B       3 owner (12)                            the last change of an account that a process obeys
    B       4                                       the process that does the maintenance for all nodes
    B       5                                       the secret that all nodes share
"""

from struct import Struct
from typing import Final

from kyanite.edm import ordinal
from kyanite.engine.api import Scope


def number(value: int) -> bytes:
    """Eight bytes that sort like the number."""
    return value.to_bytes(8, "big")


def after(prefix: bytes) -> bytes:
    """The first key beyond all that begin with the prefix."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,))


def id_of(key: bytes) -> int:
    """The number behind the prefix of a key: of a mark, the id of what was deleted."""
    return int.from_bytes(key[1:9], "big")


SERVICE_PROPERTIES: Final = b"s"


def service_properties(account: str, service: str) -> bytes:
    return b"s%b\0%b" % (account.encode(), service.encode())


def delegation_secret(account: str) -> bytes:
    return b"3%b" % account.encode()


DELEGATORS: Final = b"4"


def delegators(account: str) -> bytes:
    """What the keys of an account's delegators begin with."""
    return b"4%b\0" % account.encode()


def delegator(account: str, tenant_id: str, object_id: str) -> bytes:
    return b"4%b\0%b\0%b" % (account.encode(), tenant_id.encode(), object_id.encode())


def containers(account: str) -> bytes:
    """What the keys of an account's containers begin with."""
    return b"c%b\0" % account.encode()


def container(account: str, name: str) -> bytes:
    return b"c%b\0%b" % (account.encode(), name.encode())


def blobs(container_id: int) -> bytes:
    """What the keys of a container's base blobs begin with."""
    return b"n" + container_id.to_bytes(8, "big")


def blob(container_id: int, name: str) -> bytes:
    return b"n" + container_id.to_bytes(8, "big") + name.encode()


def blob_scope(account: str, container_name: str, name: str) -> Scope:
    return Scope(f"{account}/{container_name}/{name}".encode())


# The history of a blob. Keys of one name are made of the key of its base blob, whether that exists or not.


def snapshots_in(container_id: int) -> bytes:
    """What the keys of a container's snapshots begin with."""
    return b"v" + container_id.to_bytes(8, "big")


def snapshots_of(blob_key: bytes) -> bytes:
    return b"v%b\0" % blob_key[1:]


def snapshot_of(blob_key: bytes, instant: int) -> bytes:
    """The snapshot that was taken of a base blob at this instant."""
    return b"v%b\0%b" % (blob_key[1:], instant.to_bytes(8, "big"))


def is_snapshot(key: bytes) -> bool:
    return key.startswith(b"v")


def versions_in(container_id: int) -> bytes:
    """What the keys of a container's previous versions begin with."""
    return b"E" + container_id.to_bytes(8, "big")


def versions_of(blob_key: bytes) -> bytes:
    return b"E%b\0" % blob_key[1:]


def version_of(blob_key: bytes, instant: int) -> bytes:
    return b"E%b\0%b" % (blob_key[1:], instant.to_bytes(8, "big"))


DELETED_BASE, DELETED_SNAPSHOT, DELETED_VERSION = b"\0", b"\1", b"\2"
"""The kinds of deleted blobs."""
DELETED_BLOBS: Final = b"X"


def deleted_in(container_id: int, kind: bytes = b"") -> bytes:
    """What the keys of a container's deleted blobs begin with, of one kind or of all."""
    return b"X%b%b" % (container_id.to_bytes(8, "big"), kind)


def deleted_base_of(blob_key: bytes) -> bytes:
    return b"X%b\0%b" % (blob_key[1:9], blob_key[9:])


def deleted_snapshots_of(blob_key: bytes) -> bytes:
    return b"X%b\1%b\0" % (blob_key[1:9], blob_key[9:])


def deleted_versions_of(blob_key: bytes) -> bytes:
    return b"X%b\2%b\0" % (blob_key[1:9], blob_key[9:])


def deleted_snapshot_of(blob_key: bytes, instant: int) -> bytes:
    return b"X%b\1%b\0%b" % (blob_key[1:9], blob_key[9:], instant.to_bytes(8, "big"))


def deleted_version_of(blob_key: bytes, instant: int) -> bytes:
    return b"X%b\2%b\0%b" % (blob_key[1:9], blob_key[9:], instant.to_bytes(8, "big"))


_LETTERS_OF_DELETED: Final = {DELETED_BASE: b"n", DELETED_SNAPSHOT: b"v", DELETED_VERSION: b"E"}
_KINDS_OF_DELETED: Final = {letter: kind for kind, letter in _LETTERS_OF_DELETED.items()}


def deleted_from(key: bytes) -> bytes:
    """Where a base blob, a snapshot or a previous version is while it is deleted."""
    return b"X%b%b%b" % (key[1:9], _KINDS_OF_DELETED[key[:1]], key[9:])


def restored_from(deleted_key: bytes) -> bytes:
    """Where a deleted blob was, and will be when it is restored."""
    return b"%b%b%b" % (_LETTERS_OF_DELETED[deleted_key[9:10]], deleted_key[1:9], deleted_key[10:])


GONE_BLOBS: Final = b"8"


def gone_blob(gone_at: int, deleted_key: bytes) -> bytes:
    return b"8%b%b" % (gone_at.to_bytes(8, "big"), deleted_key[1:])


def parts_of_gone_blob(key: bytes) -> tuple[int, bytes]:
    """The instant, and the key of the deleted blob."""
    return int.from_bytes(key[1:9], "big"), b"X" + key[9:]


HISTORY_CHANGES: Final = b"p"


def history_changes_in(container_id: int) -> bytes:
    """What the keys of a container's lists of changes begin with."""
    return b"p" + container_id.to_bytes(8, "big")


def history_changes_of(blob_key: bytes) -> bytes:
    return b"p" + blob_key[1:]


LAST_ACCESSES: Final = b"7"


def last_access_of(blob_key: bytes) -> bytes:
    return b"7" + blob_key[1:]


def blob_accessed(last_access_key: bytes) -> bytes:
    """The key of the base blob that such a row is for."""
    return b"n" + last_access_key[1:]


def protected_snapshots(container_id: int, name: str) -> bytes:
    """What the keys of the protected snapshots of a blob begin with. The one that is protected longest is the last."""
    return b"I%b%b\0" % (container_id.to_bytes(8, "big"), name.encode())


def protected_snapshots_in(container_id: int) -> bytes:
    return b"I" + container_id.to_bytes(8, "big")


def protected_snapshot(snapshot_key: bytes, until: int) -> bytes:
    """For the key of a snapshot, and the instant until which it is protected."""
    return b"I%b%b%b" % (snapshot_key[1:-8], until.to_bytes(8, "big"), snapshot_key[-8:])


def snapshot_protected_by(key: bytes) -> bytes:
    """The key of the snapshot that such a row is for."""
    return b"v%b%b" % (key[1:-16], key[-8:])


def protected_containers(account: str, letter: bytes = b"") -> bytes:
    """What the keys of the protected containers of an account begin with."""
    return b"9%b\0%b" % (account.encode(), letter)


def protected_container(account: str, letter: bytes, name: str) -> bytes:
    return protected_containers(account, letter) + name.encode()


def container_protected_by(key: bytes) -> bytes:
    """The key of the container that such a row is for."""
    account, _, rest = key[1:].partition(b"\0")
    return b"c%b\0%b" % (account, rest[1:])


STAGINGS: Final = b"i"


def stagings(container_id: int) -> bytes:
    """What the keys of a container's staging areas begin with."""
    return b"i" + container_id.to_bytes(8, "big")


def staging(container_id: int, name: str) -> bytes:
    return b"i" + container_id.to_bytes(8, "big") + name.encode()


def staged_blocks(staging_id: int) -> bytes:
    """What the keys of a staging area's blocks begin with."""
    return b"j" + staging_id.to_bytes(8, "big")


def staged_block(staging_id: int, block_id: bytes) -> bytes:
    return b"j" + staging_id.to_bytes(8, "big") + block_id


ABANDONED_STAGINGS: Final = b"y"


def abandoned_staging(staging_id: int) -> bytes:
    return b"y" + staging_id.to_bytes(8, "big")


def tag_key(account: str, tag_key: str) -> bytes:
    """What the keys of the postings of a tag begin with, whatever its value. Tags have no zero bytes."""
    return b"G%b\0%b\0" % (account.encode(), tag_key.encode())


def tag(account: str, tag_key: str, value: str) -> bytes:
    """What the keys of the postings of a tag with this value begin with."""
    return b"G%b\0%b\0%b\0" % (account.encode(), tag_key.encode(), value.encode())


def posting(account: str, tag_key: str, value: str, container_id: int, name: str) -> bytes:
    return tag(account, tag_key, value) + container_id.to_bytes(8, "big") + name.encode()


def parts_of_posting(key: bytes) -> tuple[str, str, str, int, str]:
    """The arguments of ``posting``."""
    account, tag_key, value, rest = key[1:].split(b"\0", 3)
    return (
        account.decode(),
        tag_key.decode(),
        value.decode(),
        int.from_bytes(rest[:8], "big"),
        rest[8:].decode(),
    )


def blob_of_posting(ending: bytes) -> bytes:
    """The blob of a posting, by what the key of that ends with: the id of the container and the name."""
    return b"n" + ending


def tagged_container(container_id: int) -> bytes:
    return b"G\0" + container_id.to_bytes(8, "big")


DELETED_CONTAINERS: Final = b"d"


def deleted_container(container_id: int) -> bytes:
    return b"d" + container_id.to_bytes(8, "big")


RETIRED_CONTAINERS: Final = b"5"


def retired_containers(account: str) -> bytes:
    """What the keys of an account's deleted containers begin with that can be restored."""
    return b"5%b\0" % account.encode()


def retired_container(account: str, name: str, instant: int) -> bytes:
    return b"5%b\0%b\0%b" % (account.encode(), name.encode(), instant.to_bytes(8, "big"))


EXPIRIES: Final = b"6"


def expiry(expires_at: int, row: bytes) -> bytes:
    return b"6%b%b" % (expires_at.to_bytes(8, "big"), row)


def expiring_row(expiry_key: bytes) -> bytes:
    """The key of the row that expires."""
    return expiry_key[9:]


def body(body_number: int) -> bytes:
    return b"b" + body_number.to_bytes(8, "big")


def sharing(body_number: int) -> bytes:
    return b"k" + body_number.to_bytes(8, "big")


EXTENTS: Final = b"x"


def extents_of(segment: bytes) -> bytes:
    return b"x" + segment


def extent(segment: bytes, start: int) -> bytes:
    return b"x%b%b" % (segment, start.to_bytes(8, "big"))


FREED_EXTENTS: Final = b"g"


def freed_extent(died_at: int, segment: bytes, start: int) -> bytes:
    return b"g%b%b%b" % (died_at.to_bytes(8, "big"), segment, start.to_bytes(8, "big"))


UNNEEDED_SEGMENTS: Final = b"-"


def unneeded_segment(found_at: int, segment: bytes) -> bytes:
    return b"-%b%b" % (found_at.to_bytes(8, "big"), segment)


def layer(layer_id: int) -> bytes:
    return b"l" + layer_id.to_bytes(8, "big")


def interval_rows(layer_id: int) -> bytes:
    """What the keys of a layer's interval rows begin with."""
    return b"r" + layer_id.to_bytes(8, "big")


def interval_row(layer_id: int, offset: int) -> bytes:
    return b"r%b%b" % (layer_id.to_bytes(8, "big"), offset.to_bytes(8, "big"))


def edges(layer_id: int) -> bytes:
    """What the keys of the edges to the layers on this one begin with."""
    return b"e" + layer_id.to_bytes(8, "big")


def edge(layer_id: int, upper_id: int) -> bytes:
    return b"e%b%b" % (layer_id.to_bytes(8, "big"), upper_id.to_bytes(8, "big"))


PENDING_COMPACTIONS: Final = b"u"


def pending_compaction(layer_id: int) -> bytes:
    return b"u" + layer_id.to_bytes(8, "big")


PINNED_READS: Final = b"h"


def pinned_reads_of(owner: bytes) -> bytes:
    return b"h" + owner


def pinned_read(owner: bytes, read_number: int) -> bytes:
    return b"h%b%b" % (owner, read_number.to_bytes(8, "big"))


SLOW_READS: Final = b"1"


def slow_reads_of(owner: bytes) -> bytes:
    return b"1" + owner


def slow_read(owner: bytes, read_number: int) -> bytes:
    return b"1%b%b" % (owner, read_number.to_bytes(8, "big"))


def queues(account: str) -> bytes:
    """What the keys of an account's queues begin with."""
    return b"q%b\0" % account.encode()


def queue(account: str, name: str) -> bytes:
    return b"q%b\0%b" % (account.encode(), name.encode())


def queue_scope(account: str, name: str) -> Scope:
    return Scope(f"q{account}/{name}".encode())


MESSAGES: Final = b"m"


def messages(message_set_id: int) -> bytes:
    """What the keys of a queue's messages begin with."""
    return b"m" + message_set_id.to_bytes(8, "big")


def messages_visible_from(message_set_id: int, instant: int) -> bytes:
    """The first key of a message that becomes visible at this instant or later."""
    return b"m%b%b" % (message_set_id.to_bytes(8, "big"), instant.to_bytes(8, "big"))


def message(message_set_id: int, visible_at: int, put_at: int) -> bytes:
    return _message(b"m", message_set_id, visible_at, put_at)


_message: Final = Struct(">cQQQ").pack


def message_counts(message_set_id: int) -> bytes:
    """What the keys of a queue's counts begin with."""
    return b"a" + message_set_id.to_bytes(8, "big")


def message_count(message_set_id: int, shard: int) -> bytes:
    return b"a%b%c" % (message_set_id.to_bytes(8, "big"), shard)


DISCARDED_MESSAGES: Final = b"z"


def discarded_messages(message_set_id: int) -> bytes:
    return b"z" + message_set_id.to_bytes(8, "big")


def tables(account: str) -> bytes:
    """What the keys of an account's tables begin with."""
    return b"t%b\0" % account.encode()


def table(account: str, name: str) -> bytes:
    """Table names compare without case."""
    return b"t%b\0%b" % (account.encode(), name.lower().encode())


def entities(table_id: int) -> bytes:
    """What the keys of a table's entities begin with."""
    return b"w" + table_id.to_bytes(8, "big")


def entity(partition_key: str, row_key: str) -> bytes:
    """The key of an entity after its table's id. Neither part contains a byte below 32."""
    both = f"{partition_key}\0{row_key}"
    return both.encode() if both.isascii() else b"%b\0%b" % (ordinal(partition_key), ordinal(row_key))


def table_scope(account: str, name: str, partition_key: str) -> Scope:
    return Scope(f"t{account}/{name.lower()}/{partition_key}".encode())


def entity_parts(table_id: int) -> bytes:
    """What the keys of the further parts of a table's large entities begin with."""
    return b"o" + table_id.to_bytes(8, "big")


def entity_part(table_id: int, divided_id: int, entity_number: int, part_number: int) -> bytes:
    return b"o%b%b%c%c" % (
        table_id.to_bytes(8, "big"),
        divided_id.to_bytes(8, "big"),
        entity_number,
        part_number,
    )


DELETED_TABLES: Final = b"T"


def deleted_table(table_id: int) -> bytes:
    return b"T" + table_id.to_bytes(8, "big")


def shares(account: str) -> bytes:
    """What the keys of an account's shares begin with."""
    return b"F%b\0" % account.encode()


def share(account: str, name: str) -> bytes:
    return b"F%b\0%b" % (account.encode(), name.encode())


def share_snapshots(share_id: int) -> bytes:
    return b"S" + share_id.to_bytes(8, "big")


def share_snapshot(share_id: int, instant: int) -> bytes:
    return b"S%b%b" % (share_id.to_bytes(8, "big"), instant.to_bytes(8, "big"))


def entries_of_share(share_id: int) -> bytes:
    return b"N" + share_id.to_bytes(8, "big")


def entries(share_id: int, directory_id: int) -> bytes:
    """What the keys of a directory's entries begin with."""
    return b"N%b%b" % (share_id.to_bytes(8, "big"), directory_id.to_bytes(8, "big"))


def entry(share_id: int, directory_id: int, folded_name: str) -> bytes:
    return b"N%b%b%b" % (
        share_id.to_bytes(8, "big"),
        directory_id.to_bytes(8, "big"),
        folded_name.encode(),
    )


def path_scope(account: str, share_name: str, names: tuple[str, ...]) -> Scope:
    return Scope("/".join((account, share_name, *names)).upper().encode())


def preserved_entries_of_share(share_id: int) -> bytes:
    return b"V" + share_id.to_bytes(8, "big")


def preserved_entries(share_id: int, directory_id: int) -> bytes:
    """What the keys of the snapshot copies of a directory's entries begin with."""
    return b"V%b%b" % (share_id.to_bytes(8, "big"), directory_id.to_bytes(8, "big"))


def preserved_entries_of(share_id: int, directory_id: int, folded_name: str) -> bytes:
    return b"V%b%b%b\0" % (
        share_id.to_bytes(8, "big"),
        directory_id.to_bytes(8, "big"),
        folded_name.encode(),
    )


def preserved_entry(share_id: int, directory_id: int, folded_name: str, instant: int) -> bytes:
    return preserved_entries_of(share_id, directory_id, folded_name) + instant.to_bytes(8, "big")


def permissions(share_id: int) -> bytes:
    return b"P" + share_id.to_bytes(8, "big")


def permission(share_id: int, permission_key: bytes) -> bytes:
    return b"P%b%b" % (share_id.to_bytes(8, "big"), permission_key)


def usages(share_id: int) -> bytes:
    return b"U" + share_id.to_bytes(8, "big")


def usage(share_id: int, shard: int) -> bytes:
    return b"U%b%c" % (share_id.to_bytes(8, "big"), shard)


HANDLES: Final = b"H"


def handles_of_share(share_id: int) -> bytes:
    return b"H" + share_id.to_bytes(8, "big")


def handles(share_id: int, file_id: int) -> bytes:
    """What the keys of a file's or directory's open handles begin with, and the key of the row that they share."""
    return b"H%b%b" % (share_id.to_bytes(8, "big"), file_id.to_bytes(8, "big"))


def handle(share_id: int, file_id: int, handle_id: int) -> bytes:
    return b"H%b%b%b" % (
        share_id.to_bytes(8, "big"),
        file_id.to_bytes(8, "big"),
        handle_id.to_bytes(8, "big"),
    )


def is_handle(key: bytes) -> bool:
    """Whether a key of this letter is that of a handle, and not of the file."""
    return len(key) > 17


def open_entries_of_share(share_id: int) -> bytes:
    return b"O" + share_id.to_bytes(8, "big")


def open_entries(share_id: int, directory_id: int) -> bytes:
    """What the keys of everything open below a directory begin with."""
    return b"O%b%b" % (share_id.to_bytes(8, "big"), directory_id.to_bytes(8, "big"))


def open_entry(share_id: int, directory_id: int, first_handle_id: int, file_id: int) -> bytes:
    return b"O%b%b%b%b" % (
        share_id.to_bytes(8, "big"),
        directory_id.to_bytes(8, "big"),
        first_handle_id.to_bytes(8, "big"),
        file_id.to_bytes(8, "big"),
    )


def parts_of_open_entry(key: bytes) -> tuple[int, int]:
    """The first handle, and the file."""
    return int.from_bytes(key[-16:-8], "big"), int.from_bytes(key[-8:], "big")


def handles_of_owner(owner: bytes) -> bytes:
    return b"Q" + owner


def handle_of_owner(owner: bytes, share_id: int, file_id: int, handle_id: int) -> bytes:
    return b"Q%b%b%b%b" % (
        owner,
        share_id.to_bytes(8, "big"),
        file_id.to_bytes(8, "big"),
        handle_id.to_bytes(8, "big"),
    )


def parts_of_handle_of_owner(key: bytes) -> tuple[int, int, int]:
    """The share, the file and the handle."""
    share_id, file_id, handle_id = key[-24:-16], key[-16:-8], key[-8:]
    return int.from_bytes(share_id, "big"), int.from_bytes(file_id, "big"), int.from_bytes(handle_id, "big")


def lease_key(client_and_key: bytes) -> bytes:
    return b"J" + client_and_key


def create_guid(client_guid: bytes, guid: bytes) -> bytes:
    return b"C" + client_guid + guid


def break_messages(owner: bytes) -> bytes:
    """What the keys of the breaks begin with that one process has to send."""
    return b"K" + owner


def break_message(owner: bytes, message_number: int) -> bytes:
    return b"K%b%b" % (owner, message_number.to_bytes(8, "big"))


def smb_session(session_id: int) -> bytes:
    return b"Y" + session_id.to_bytes(8, "big")


def smb_sessions_of_owner(owner: bytes) -> bytes:
    return b"Z" + owner


def smb_session_of_owner(owner: bytes, session_id: int) -> bytes:
    return b"Z%b\0%b" % (owner, session_id.to_bytes(8, "big"))


def smb_sessions_to_be_ended(owner: bytes) -> bytes:
    return b"Z%b\1" % owner


def smb_session_to_be_ended(owner: bytes, session_id: int) -> bytes:
    return b"Z%b\1%b" % (owner, session_id.to_bytes(8, "big"))


def id_of_smb_session(key: bytes) -> int:
    return int.from_bytes(key[-8:], "big")


def pending_deletes_of_share(share_id: int) -> bytes:
    return b"M" + share_id.to_bytes(8, "big")


def pending_deletes(share_id: int, directory_id: int) -> bytes:
    """What the keys of the files of a directory begin with that are about to be deleted."""
    return b"M%b%b" % (share_id.to_bytes(8, "big"), directory_id.to_bytes(8, "big"))


def pending_delete(share_id: int, directory_id: int, folded_name: str) -> bytes:
    return pending_deletes(share_id, directory_id) + folded_name.encode()


def change_feed(share_id: int) -> bytes:
    """The key of the feed of a watched share, and what the keys of its changes begin with."""
    return b"W" + share_id.to_bytes(8, "big")


def change(share_id: int, position: int) -> bytes:
    return b"W%b%b" % (share_id.to_bytes(8, "big"), position.to_bytes(2, "big"))


DELETED_SHARES: Final = b"D"


def deleted_share(share_id: int) -> bytes:
    return b"D" + share_id.to_bytes(8, "big")


RETIRED_SHARES: Final = b"R"


def retired_shares(account: str) -> bytes:
    """What the keys of an account's deleted shares begin with that can be restored."""
    return b"R%b\0" % account.encode()


def retired_share(account: str, name: str, instant: int) -> bytes:
    return b"R%b\0%b\0%b" % (account.encode(), name.encode(), instant.to_bytes(8, "big"))


SCRUB: Final = b"2"

ACCOUNTS: Final = b"A"
"""What the keys of accounts begin with, and the key of the instant of the last change."""
REMOVED_ACCOUNTS: Final = b"A\0"


def account(name: str) -> bytes:
    return b"A" + name.encode()


def removed_account(name: str) -> bytes:
    return b"A\0" + name.encode()


def account_of_removal(mark: bytes) -> str:
    return mark[2:].decode()


UNNEEDED_PRESERVED_ENTRIES: Final = b"L"


def unneeded_preserved_entries(share_id: int) -> bytes:
    return b"L" + share_id.to_bytes(8, "big")


MIGRATIONS: Final = b"0"


def migration(account: str) -> bytes:
    """The key of the migration of an account, with which all its other rows begin."""
    return b"0%b\0" % account.encode()


def moved_ids(account: str, letter: bytes) -> bytes:
    """What the keys of moved ids of one kind begin with."""
    return b"0%b\0%b" % (account.encode(), letter)


def moved_id(account: str, letter: bytes, old_id: int) -> bytes:
    return b"0%b\0%b%b" % (account.encode(), letter, old_id.to_bytes(8, "big"))


def moved_extent(account: str, segment: bytes, start: int) -> bytes:
    return b"0%b\0x%b%b" % (account.encode(), segment, start.to_bytes(8, "big"))


def parts_of_moved(key: bytes) -> tuple[str, bytes, bytes]:
    """The account, the letter, and what was moved; without a letter it is the row of the migration."""
    account, _, rest = key[1:].partition(b"\0")
    return account.decode(), rest[:1], rest[1:]


LIVING_MEMBERS: Final = b"B\0"
HEARTBEATS: Final = b"B\1"
DEAD_MEMBERS: Final = b"B\2"
CONFIRMATIONS: Final = b"B\3"
MAINTAINER: Final = b"B\4"
SHARED_SECRET: Final = b"B\5"


def living_member(owner: bytes) -> bytes:
    return b"B\0" + owner


def heartbeat(owner: bytes) -> bytes:
    return b"B\1" + owner


def dead_member(owner: bytes) -> bytes:
    return b"B\2" + owner


def confirmation(owner: bytes) -> bytes:
    return b"B\3" + owner


def owner_of_member(key: bytes) -> bytes:
    """The process that a row of a member is about."""
    return key[2:]


QUESTIONS: Final = b"!\0"
ANSWERS: Final = b"!\1"
WATCHES: Final = b"!\2"
COMPLETED_REQUESTS: Final = b"!\3"


def question(question_id: int) -> bytes:
    return QUESTIONS + number(question_id)


def answers(question_id: int) -> bytes:
    """What the keys of the answers to a question begin with."""
    return ANSWERS + number(question_id)


def answer(question_id: int, owner: bytes) -> bytes:
    return answers(question_id) + owner


def watch(watch_id: int) -> bytes:
    return WATCHES + number(watch_id)


def number_at_end(key: bytes) -> int:
    """The number of a question, a watch or a batch of completed requests."""
    return int.from_bytes(key[-8:], "big")


def completed_requests(owner: bytes, batch: int = 0) -> bytes:
    """The key of a batch. Without its number it is what comes before the first one of that process."""
    return COMPLETED_REQUESTS + owner + number(batch)


def owner_of_completed(key: bytes) -> bytes:
    return key[2:-8]
