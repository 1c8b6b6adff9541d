"""Filters of queries, in OData's language."""

from tests.services.fuzzing import scope as scopes
from tests.services.fuzzing.scope import Scope


def literal(scope: Scope) -> str:
    return scope.one(
        "'p'", "'r'", "''", "'it''s'", "1", "-5", "2147483648L", "1.5", "1e3", "true", "datetime'2026-11-16T12:00:00Z'",
        "guid'11111111-1111-1111-1111-111111111111'", "X'0aff'", "binary'0aff'", "12345678901L",
    )  # fmt: skip


def comparison(scope: Scope) -> str:
    name = scope.one(
        "PartitionKey", "RowKey", "Timestamp", "Text", "Number", "Big", "Flag", "When", "Id", "Data", "Real"
    )
    operator = scope.one("eq", "ne", "gt", "ge", "lt", "le")
    if scope.likely(0.05):
        return name
    return f"{name} {operator} {literal(scope)}"


def odata_filter(scope: Scope) -> str:
    text = comparison(scope)
    for _ in range(scope.chance.choice((0, 0, 1, 1, 2, 5))):
        word = scope.one("and", "or")
        text = (
            f"({text}) {word} {comparison(scope)}"
            if scope.likely(0.5)
            else f"{text} {word} {comparison(scope)}"
        )
    return f"not ({text})" if scope.likely(0.1) else text


def table_filter(scope: Scope) -> str:
    return f"TableName {scope.one('eq', 'ge', 'lt', 'ne')} '{scopes.table(scope)}'"
