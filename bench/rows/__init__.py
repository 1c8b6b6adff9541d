"""The tables of what is measured, a module for each service.

Rows run in this order. Those that leave a lot behind come last, because Azurite keeps all it stores in memory
and slows down with it.
"""

from bench.rows.blob_chains import CHAIN_ROWS
from bench.rows.blobs import BLOB_ROWS, list_rows
from bench.rows.files import file_rows
from bench.rows.queues import queue_rows
from bench.rows.row import FULL, Row, Sizes
from bench.rows.tables import TABLE_ROWS
from bench.rows.uploads import UPLOAD_ROWS


def all_rows(sizes: Sizes) -> tuple[Row, ...]:
    return (
        *BLOB_ROWS,
        *CHAIN_ROWS,
        *UPLOAD_ROWS,
        *queue_rows(sizes.backlog_messages),
        *TABLE_ROWS,
        *file_rows(sizes.listed_files),
        *list_rows(sizes.listed_blobs),
    )


ROWS = all_rows(FULL)
