"""``az storage queue|message|table|entity``."""

from clients.az import Az
from clients.report import Report
from clients.workspace import expect


def queues(az: Az, report: Report) -> None:
    name = az.workspace.new_name()
    with report.check("queue create, exists, list, metadata"):
        expect(az("queue", "create", name=name), {"created": True})
        expect(az("queue", "exists", name=name), {"exists": True})
        az("queue metadata", "update", "--metadata", "a=1", name=name)
        expect(az("queue metadata", "show", name=name), {"a": "1"})
        expect(name in [each["name"] for each in az("queue", "list")], True, "listed")
    with report.check("message put, peek, get, update, delete, clear"):
        az("message", "put", queue_name=name, content="<one & ä>")
        expect([each["content"] for each in az("message", "peek", queue_name=name)], ["<one & ä>"])
        (got,) = az("message", "get", queue_name=name, visibility_timeout="30")
        changed = az(
            "message",
            "update",
            queue_name=name,
            id=got["id"],
            pop_receipt=got["popReceipt"],
            visibility_timeout="30",
            content="two",
        )
        az("message", "delete", queue_name=name, id=got["id"], pop_receipt=changed["popReceipt"])
        expect(az("message", "get", queue_name=name), [])
        az("message", "put", queue_name=name, content="three")
        az("message", "clear", queue_name=name)
        expect(az("message", "peek", queue_name=name), [])
    with report.check("queue policies and delete"):
        az("queue policy", "create", queue_name=name, name="p", permissions="r", expiry="2099-01-01T00:00Z")
        expect(list(az("queue policy", "list", queue_name=name)), ["p"])
        expect(az("queue", "delete", name=name), {"deleted": True})
    with report.check("logging of three services at once"):
        az("logging", "update", services="bqt", log="rwd", retention="3")
        kept = [each["retentionPolicy"]["days"] for each in az("logging", "show", services="bqt").values()]
        expect(kept, [3, 3, 3])
        az("logging", "off", services="bqt")


def tables(az: Az, report: Report) -> None:
    name = az.workspace.new_name()
    with report.check("table create, exists, list"):
        expect(az("table", "create", name=name), {"created": True})
        expect(az("table", "exists", name=name), {"exists": True})
        expect(name in [each["name"] for each in az("table", "list")], True, "listed")
    with report.check("entity insert, show, merge, replace, query, delete"):
        for row in "abc":
            az(
                "entity",
                "insert",
                "--entity",
                "PartitionKey=p",
                f"RowKey={row}",
                "Text=ä b",
                "n=1",
                table_name=name,
            )
        found = az("entity", "show", table_name=name, partition_key="p", row_key="a")
        expect((found["Text"], found["RowKey"]), ("ä b", "a"))
        az.refuses(
            "already exists",
            "entity",
            "insert",
            "--entity",
            "PartitionKey=p",
            "RowKey=a",
            table_name=name,
        )
        az("entity", "merge", "--entity", "PartitionKey=p", "RowKey=a", "More=2", table_name=name)
        found = az("entity", "show", table_name=name, partition_key="p", row_key="a")
        expect((found["Text"], found["More"]), ("ä b", 2))
        az("entity", "replace", "--entity", "PartitionKey=p", "RowKey=a", "Only=3", table_name=name)
        found = az("entity", "show", table_name=name, partition_key="p", row_key="a")
        expect((found.get("Text"), found["Only"]), (None, 3))
        found = az("entity", "query", table_name=name, filter="PartitionKey eq 'p' and RowKey gt 'a'")
        expect([each["RowKey"] for each in found["items"]], ["b", "c"])
        az("entity", "delete", table_name=name, partition_key="p", row_key="b")
        found = az("entity", "query", table_name=name, num_results="1")
        expect(len(found["items"]), 1)
    with report.check("entity insert where there is one already"):
        keys = ("PartitionKey=p", "RowKey=c")
        az("entity", "insert", "--entity", *keys, "More=2", table_name=name, if_exists="merge")
        found = az("entity", "show", table_name=name, partition_key="p", row_key="c")
        expect((found["Text"], found["More"]), ("ä b", 2))
        az("entity", "insert", "--entity", *keys, "Only=3", table_name=name, if_exists="replace")
        found = az("entity", "show", table_name=name, partition_key="p", row_key="c")
        expect((found.get("Text"), found["Only"]), (None, 3))
    with report.check("table policies and delete"):
        az("table policy", "create", table_name=name, name="p", permissions="r", expiry="2099-01-01T00:00Z")
        expect(list(az("table policy", "list", table_name=name)), ["p"])
        expect(az("table", "delete", name=name), {"deleted": True})
