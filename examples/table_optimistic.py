"""Optimistic concurrency in a table, which is its default: update an entity only if it is still the one you read.

Every entity has an ETag that changes with every change. An update with the ETag that the client has read is refused
if another client was faster. To overwrite any version, send the ETag ``*``.

    AZURE_STORAGE_CONNECTION_STRING="UseDevelopmentStorage=true" python examples/table_optimistic.py
"""

import os
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableServiceClient, UpdateMode


def main() -> None:
    service = TableServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
    customers = service.create_table(f"customers{uuid.uuid4().hex}")
    customers.create_entity({"PartitionKey": "Smith", "RowKey": "Jeff", "Phone": "425-555-0100"})

    # Two programs read the same entity.
    mine = customers.get_entity("Smith", "Jeff")
    theirs = customers.get_entity("Smith", "Jeff")
    print(f"both read {mine['Phone']} with ETag {mine.metadata['etag']}")

    theirs["Phone"] = "425-555-0105"
    customers.update_entity(
        theirs,
        UpdateMode.REPLACE,
        etag=theirs.metadata["etag"],
        match_condition=MatchConditions.IfNotModified,
    )
    print("the other one updates by its ETag and succeeds")

    mine["Phone"] = "425-555-0125"
    try:
        customers.update_entity(
            mine,
            UpdateMode.REPLACE,
            etag=mine.metadata["etag"],
            match_condition=MatchConditions.IfNotModified,
        )
    except ResourceModifiedError as error:
        print(f"my update by the same ETag is refused with {error.status_code}: the entity has changed")
    print(f"it is still {customers.get_entity('Smith', 'Jeff')['Phone']}")

    # Without a condition the client sends "*": whatever is there is overwritten.
    customers.update_entity(mine, UpdateMode.REPLACE)
    print(f"forced with *, it is {customers.get_entity('Smith', 'Jeff')['Phone']}")
    customers.delete_table()


if __name__ == "__main__":
    main()
