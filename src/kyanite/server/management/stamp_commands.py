"""The commands about stamps. Adding one returns when every worker of this node serves it."""

import msgspec

from kyanite.engine.api import Engine, EngineError
from kyanite.server.failures import BadUsage
from kyanite.server.management.command import Command, CommandRefused, CommandRequest, Management
from kyanite.server.stamps.stamp import MAIN, NAME, Stamp, all_stamps, load_added, save_added
from kyanite.server.store.api import choose_kind
from kyanite.server.store.factory import factory_of


class ListStamps(CommandRequest, frozen=True):
    pass


class AddStamp(CommandRequest, frozen=True):
    name: str
    engine: str | None = None
    extents: str | None = None


class StampDescription(msgspec.Struct, frozen=True):
    """A stamp as it is listed: without its URLs, which may hold credentials."""

    name: str
    is_open: bool
    accounts: int


async def list_stamps(management: Management, _request: ListStamps) -> list[StampDescription]:
    stamps = management.stamps
    names = [MAIN, *(stamp.name for stamp in all_stamps(stamps.location, stamps.stated))]
    listed = []
    for name in names:
        served = stamps.named(name)
        count = 0 if served is None else len(served.directory.accounts)
        listed.append(StampDescription(name, served is not None, count))
    return listed


async def add_stamp(management: Management, request: AddStamp) -> str:
    stamps, name = management.stamps, request.name
    if NAME.fullmatch(name) is None:
        raise CommandRefused("The name of a stamp is up to 32 lower-case letters, digits and hyphens.")
    if name == MAIN or any(stamp.name == name for stamp in all_stamps(stamps.location, stamps.stated)):
        raise CommandRefused(f"There is a stamp {name} already.")
    try:
        stamp = Stamp(name, choose_kind(request.engine, request.extents, in_memory=False))
        factory = factory_of(stamp.kind, stamp.folder(stamps.location))
    except BadUsage as error:
        raise CommandRefused(error.sentence) from None
    kinds = [other.kind for other in all_stamps(stamps.location, stamps.stated)]
    if stamp.kind in kinds and (factory.engine.is_shared or ":" in stamp.kind.extents):
        raise CommandRefused("Another stamp has the same engine and extents.")
    await factory.check_extents()
    if factory.engine.is_shared:
        await _check_answers(factory.open_engine(management.clock))
    save_added(stamps.location, [*load_added(stamps.location), stamp])
    await stamps.read_others()
    served = stamps.named(name)
    if served is None:
        raise CommandRefused(f"The stamp {name} is stored, but cannot be opened yet. The log says why.")
    await management.obeyed(served.store.engine)
    return f"The stamp {name} is served."


async def _check_answers(engine: Engine) -> None:
    try:
        await engine.read(lambda snap: snap.now)
    except EngineError as error:
        raise CommandRefused(f"The engine does not answer: {error}") from None
    finally:
        await engine.close()


COMMANDS = (
    Command("stamp list", ListStamps, list_stamps),
    Command("stamp add", AddStamp, add_stamp),
)
