"""Upgrade from format 1: service properties become typed records.

Format 1 stored them as XML documents. It also let clients turn on soft delete of blobs and static websites, which the
server has never done; both are off from now on.
"""

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.records import encode
from kyanite.service_properties import INITIAL, DeleteRetention, ServiceProperties, StaticWebsite
from kyanite.wire import service_properties as wire
from kyanite.wire import xml

ROWS_AT_A_TIME = 500

_MARK = xml.BYTE_ORDER_MARK.encode()
"""Every stored document begins with it, and no record does."""


def upgrade_settings(tx: Transaction, cursor: bytes) -> bytes | None:
    """Convert the next rows, from the cursor on (first an empty one). Returns the next cursor, or None at the end."""
    base = keys.SERVICE_PROPERTIES
    rows = list(tx.scan(max(cursor, base), keys.after(base), limit=ROWS_AT_A_TIME))
    for key, stored in rows:
        if stored.startswith(_MARK):
            tx.put(key, encode(_settings_of(stored)))
    return rows[-1][0] + b"\0" if len(rows) == ROWS_AT_A_TIME else None


def _settings_of(document: bytes) -> ServiceProperties:
    stored = INITIAL.updated(wire.decode(document, wire.EVERY_ELEMENT))
    return stored._replace(delete_retention=DeleteRetention(), static_website=StaticWebsite())
