"""What an operator does to a store that a server has open: settings that no request can change."""

from kyanite.engine.clock import wall_clock
from kyanite.model import settings
from kyanite.server.store.factory import factory_of
from kyanite.service_properties import ServiceProperties
from tests import chosen_store
from tests.server_process import ServerProcess


async def set_blob_settings(server: ServerProcess, change: ServiceProperties) -> None:
    """Change settings of the Blob service. Every transaction that begins later obeys them."""
    engine = factory_of(chosen_store.kind_of(server.location), server.location).open_engine(wall_clock)
    try:
        await settings.update(engine, server.account, "blob", change)
    finally:
        await engine.close()
