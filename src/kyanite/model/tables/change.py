"""One change of one entity."""

from kyanite.model import keys
from kyanite.model.tables import stored_entity
from kyanite.rules import entities
from kyanite.rules.entities import ANY, Act, Properties


class Change:
    """One change of one entity, checked as far as that needs no stored state.

    A class with slots, because a group has up to a hundred of them. The texts are made here, outside the transaction.
    """

    __slots__ = (
        "act",
        "if_match",
        "key",
        "keys_text",
        "partition_key",
        "properties",
        "properties_text",
        "row_key",
    )

    def __init__(
        self, act: Act, partition_key: str, row_key: str, properties: Properties, if_match: str = ANY
    ) -> None:
        entities.check_keys(partition_key, row_key)
        self.act = act
        self.if_match = if_match
        """The ETag that the entity must have, or ``*``."""
        self.partition_key = partition_key
        self.row_key = row_key
        self.properties = properties
        self.key = keys.entity(partition_key, row_key)
        self.keys_text = stored_entity.keys_text(partition_key, row_key)
        self.properties_text = stored_entity.properties_text(properties)
        entities.check_properties(properties, len(self.properties_text))
        if entities.may_be_too_large(len(self.keys_text) + len(self.properties_text)):
            entities.check_size(partition_key, row_key, properties)
