"""The tables of what is measured, a module for each service.

Rows run in this order. Those that leave a lot behind come last, because Azurite keeps all it stores in memory
and slows down with it.
"""

from bench.rows.blob_chains import CHAIN_ROWS
from bench.rows.blobs import BLOB_ROWS, LIST_ROWS
from bench.rows.files import FILE_ROWS
from bench.rows.queues import QUEUE_ROWS
from bench.rows.row import Row
from bench.rows.tables import TABLE_ROWS
from bench.rows.uploads import UPLOAD_ROWS

ROWS: tuple[Row, ...] = (
    *BLOB_ROWS,
    *CHAIN_ROWS,
    *UPLOAD_ROWS,
    *QUEUE_ROWS,
    *TABLE_ROWS,
    *FILE_ROWS,
    *LIST_ROWS,
)
