"""What goes wrong with a database: lost connections, restarts, a failover, and databases that cannot be used."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from kyanite.engine.api import (
    Damaged,
    EngineBusy,
    EngineError,
    EngineFull,
    OutcomeUnknown,
    Snapshot,
    Transaction,
)
from kyanite.engine.clock import wall_clock
from kyanite.engine.postgres import connections
from kyanite.engine.postgres.address import BadAddress, parse
from kyanite.engine.postgres.engine import PostgresEngine
from kyanite.engine.postgres.errors import ConnectionLost
from tests.engine.postgres.proxy import Proxy
from tests.postgres_server import PostgresServer, private_folder, running_postgres


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresEngine]:
    engine = PostgresEngine(parse(url))
    try:
        yield engine
    finally:
        await engine.close()


def add_one(key: bytes) -> Callable[[Transaction], int]:
    def body(tx: Transaction) -> int:
        count = int.from_bytes(tx.get(key) or b"", "big") + 1
        tx.put(key, count.to_bytes(8, "big"))
        return count

    return body


async def count_of(engine: PostgresEngine, key: bytes) -> int:
    found: bytes | None = await engine.read(lambda snap: snap.get(key))
    return int.from_bytes(found or b"", "big")


def _notify(topic: bytes, tx: Transaction) -> None:
    tx.notify(topic)


def _contains(part: bytes, piece: bytes) -> bool:
    return part in piece


@pytest.mark.parametrize("arrives", [True, False], ids=["the commit arrives", "the commit is lost"])
async def test_a_connection_that_is_cut_during_a_commit(
    postgres_server: PostgresServer, arrives: bool
) -> None:
    """Whether the commit has arrived or not, the transaction happens once."""
    proxy = Proxy(postgres_server.port)
    await proxy.start()
    schema = postgres_server.new_schema_url().partition("schema=")[2]
    async with opened(postgres_server.url(schema=schema, hosts=f"127.0.0.1:{proxy.port}")) as engine:
        assert await engine.run(add_one(b"k")) == 1
        for round_number in range(2, 6):
            # The arguments of the call that commits contain what is written.
            proxy.forwards_last = arrives
            proxy.cut_when = partial(_contains, round_number.to_bytes(8, "big"))
            assert await engine.run(add_one(b"k")) == round_number
            assert proxy.cuts == round_number - 1
        assert await count_of(engine, b"k") == 5
    await proxy.stop()


async def test_an_outcome_that_cannot_be_found_out(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for a failure, and the engine goes on afterwards."""
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.2)
    proxy = Proxy(postgres_server.port)
    await proxy.start()
    schema = postgres_server.new_schema_url().partition("schema=")[2]
    async with opened(postgres_server.url(schema=schema, hosts=f"127.0.0.1:{proxy.port}")) as engine:
        assert await engine.run(add_one(b"k")) == 1

        def cut(piece: bytes) -> bool:
            if (2).to_bytes(8, "big") in piece:
                proxy.is_refusing = True
                return True
            return False

        proxy.cut_when = cut
        with pytest.raises(OutcomeUnknown):
            await engine.run(add_one(b"k"))
        with pytest.raises(EngineBusy):
            await count_of(engine, b"k")
        proxy.is_refusing = False
        assert await count_of(engine, b"k") == 2
        assert await engine.run(add_one(b"k")) == 3
    await proxy.stop()


async def test_a_statement_is_never_cancelled(postgres_server: PostgresServer) -> None:
    """PostgreSQL would acknowledge a commit that no standby has. Its connection is closed instead."""
    proxy = Proxy(postgres_server.port)
    await proxy.start()
    pool = connections.Connections(parse(postgres_server.url(hosts=f"127.0.0.1:{proxy.port}")))
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(1.25)'"
    try:
        connection = await pool.connect()
        opened = proxy.connections
        statement = asyncio.ensure_future(connection.call("SELECT pg_sleep(1.25)"))
        while postgres_server.sql(asleep) != "1":
            await asyncio.sleep(0.01)
        statement.cancel()
        with pytest.raises(asyncio.CancelledError):
            await statement
        assert not connection.is_usable
        while postgres_server.sql(asleep) != "0":  # It goes on in the server.
            await asyncio.sleep(0.05)
        assert proxy.connections == opened  # A request to cancel it would be a connection of its own.
    finally:
        await pool.close()
        await proxy.stop()


async def test_a_statement_that_takes_too_long(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = connections.Connections(parse(postgres_server.new_schema_url()))
    try:
        connection = await pool.connect()
        monkeypatch.setattr(connections, "STATEMENT_SECONDS", 0.1)
        with pytest.raises(ConnectionLost, match="no answer within"):
            await connection.call("SELECT pg_sleep(5)")
        assert not connection.is_usable
    finally:
        await pool.close()


async def test_a_restart_of_the_server() -> None:
    """Clients wait, and nothing is lost or doubled."""
    with running_postgres() as server:
        async with opened(server.url()) as engine:
            acknowledged = 0
            stopped = False

            async def client(number: int) -> int:
                count = 0
                while not stopped:
                    assert await engine.run(add_one(b"%d" % number)) == count + 1
                    assert await count_of(engine, b"%d" % number) == count + 1
                    count += 1
                return count

            clients = [asyncio.create_task(client(number)) for number in range(8)]
            for how in (signal.SIGINT, signal.SIGQUIT):
                await asyncio.sleep(0.3)
                await asyncio.to_thread(server.stop, how)
                await asyncio.to_thread(server.start)
            await asyncio.sleep(0.3)
            stopped = True
            counts = await asyncio.gather(*clients)
            for number, count in enumerate(counts):
                assert await count_of(engine, b"%d" % number) == count
                acknowledged += count
            assert acknowledged


async def test_a_failover_to_a_standby_whose_clock_is_behind() -> None:
    """Every acknowledged write is there, instants ascend, and notifications come again."""
    with running_postgres() as primary, private_folder() as folder:
        async with opened(primary.url()) as engine:
            await engine.run(add_one(b"first"))
        standby = primary.add_standby(folder)
        url = primary.url(hosts=f"{standby.hosts},{primary.hosts}")
        async with opened(url) as engine:
            stopped = False
            instants: list[int] = []

            def body(tx: Transaction) -> int:
                add_one(b"count")(tx)
                tx.put(b"at%020d" % tx.now, b"")
                tx.notify(b"topic")
                return tx.now

            async def client() -> None:
                while not stopped:
                    instants.append(await engine.run(body))

            subscription = engine.subscribe(b"other")
            await anext(subscription)
            clients = [asyncio.create_task(client()) for _ in range(4)]
            await asyncio.sleep(0.3)
            await asyncio.to_thread(primary.kill)
            before = len(instants)
            await asyncio.to_thread(standby.promote)
            clock = standby.sql("SELECT pg_get_functiondef('kyanite.clock_ticks'::regproc)")
            standby.sql(clock.replace("clock_timestamp()", "(clock_timestamp() - interval '1 minute')"))
            await asyncio.wait_for(anext(subscription), 10)
            # All clients go on by themselves: none was told that the engine is busy, which it says after 12 seconds.
            async with asyncio.timeout(30):
                while len(instants) < before + 20:
                    await asyncio.sleep(0.01)
            assert not any(each.done() for each in clients)
            stopped = True
            await asyncio.gather(*clients)
            assert instants == sorted(set(instants))
            assert await count_of(engine, b"count") == len(instants)
            stored = await engine.read(lambda snap: [key for key, _ in snap.scan(b"at", b"au")])
            assert stored == [b"at%020d" % instant for instant in instants]
        # A new process knows no clock but the one that is behind.
        async with opened(url) as engine:
            assert await engine.run(body) > instants[-1]
        standby.stop(signal.SIGQUIT)


async def test_only_what_is_durable_waits_for_the_standby() -> None:
    with running_postgres() as primary, private_folder() as folder:
        standby = primary.add_standby(folder)
        async with opened(primary.url()) as engine:
            await engine.run(add_one(b"first"))
            os.kill(standby.pid, signal.SIGSTOP)
            for pid in children_of(standby.pid):
                os.kill(pid, signal.SIGSTOP)
            try:
                assert await asyncio.wait_for(engine.run(add_one(b"k"), durable=False), 30) == 1
                durable = asyncio.ensure_future(engine.run(add_one(b"k")))
                waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                async with asyncio.timeout(30):
                    while primary.sql(waiting) == "0":
                        assert not durable.done()
                        await asyncio.sleep(0.01)
                assert not durable.done()
            finally:
                for pid in (*children_of(standby.pid), standby.pid):
                    os.kill(pid, signal.SIGCONT)
            assert await durable == 2
        standby.stop(signal.SIGQUIT)


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_a_standby_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.2)
    with running_postgres() as primary, private_folder() as folder:
        standby = primary.add_standby(folder)
        async with opened(primary.url(hosts=f"{standby.hosts},{primary.hosts}")) as engine:
            assert await engine.run(add_one(b"k")) == 1
        async with opened(standby.url()) as engine:
            with pytest.raises(EngineBusy, match="standby"):
                await engine.run(add_one(b"k"))
        standby.stop(signal.SIGQUIT)


async def test_a_database_that_is_gone_is_not_tried_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All who wait share the attempts, which become rarer."""
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 2.0)
    attempts = 0

    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with opened(f"postgresql://any@127.0.0.1:{port}/any?sslmode=disable") as engine:
        reads = [engine.read(lambda snap: snap.get(b"k")) for _ in range(4)]
        writes = [engine.run(add_one(b"k")) for _ in range(4)]
        alone = engine.subscribe(b"topic")
        outcomes = await asyncio.gather(*reads, *writes, return_exceptions=True)
        assert alone is not None
    server.close()
    assert all(isinstance(each, EngineBusy) for each in outcomes), outcomes
    assert all("cannot be reached" in str(each) for each in outcomes)
    # The first attempt of each who needs a connection, and then one for all, every quarter of a second at last.
    assert attempts <= 20


async def test_databases_that_cannot_be_used(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.2)
    if not postgres_server.sql("SELECT 1 FROM pg_roles WHERE rolname = 'with_password'"):
        postgres_server.sql("CREATE USER with_password PASSWORD 'right'")
    port = postgres_server.port
    newer = postgres_server.new_schema_url()
    async with opened(newer) as engine:
        await engine.run(add_one(b"k"))
    schema = newer.partition("schema=")[2]
    postgres_server.sql(f"UPDATE {schema}.schema_version SET version = 99")
    for url, sentence in (
        (f"postgresql://with_password:wrong@127.0.0.1:{port}/kyanite", "refuses the user or the password"),
        (
            f"postgresql://with_password:right@127.0.0.1:{port}/kyanite?schema=theirs",
            "may not make the schema",
        ),
        (f"postgresql://postgres@127.0.0.1:{port}/missing", "no such database"),
        ("postgresql://postgres:secret@127.0.0.1:1/kyanite", "cannot be reached"),
        (newer, "version 99"),
    ):
        async with opened(url) as engine:
            with pytest.raises(EngineError, match=sentence) as raised:
                await engine.run(add_one(b"k"))
            assert "secret" not in str(raised.value)
            with pytest.raises(EngineError, match=sentence):
                await count_of(engine, b"k")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host",
        "postgresql://host/",
        "postgresql://host/a/b",
        "mysql://host/a",
        "postgresql://host/a?schema=A-B",
        "postgresql://host/a?schema=",
        "postgresql://host/a?target_session_attrs=any",
    ],
)
def test_urls_that_cannot_be_used(url: str) -> None:
    with pytest.raises(BadAddress):
        parse(url)


def test_a_url_with_several_servers() -> None:
    address = parse("postgresql://me:pass%40word@one:1,two:2/store?schema=mine&sslmode=require")
    assert address.servers == (
        "postgresql://me:pass%40word@one:1/store?sslmode=require",
        "postgresql://me:pass%40word@two:2/store?sslmode=require",
    )
    assert address.schema == "mine"
    assert address.names == "store at one:1, two:2"


async def test_several_processes_make_the_tables_at_once(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_schema_url()
    engines = [PostgresEngine(parse(url)) for _ in range(6)]
    assert sorted(await asyncio.gather(*(engine.run(add_one(b"k")) for engine in engines))) == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]
    for engine in engines:
        await engine.close()


async def test_notifications_reach_other_engines_also_after_their_connection_was_lost(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.new_schema_url()
    async with opened(url) as one, opened(url) as other:
        subscription = one.subscribe(b"topic")
        await anext(subscription)
        long_topic = b"t" * 8000
        for topic in (b"topic", long_topic):
            await other.run(partial(_notify, topic))
            await asyncio.wait_for(anext(subscription), 10)
        postgres_server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        )
        await asyncio.wait_for(anext(subscription), 10)
        await asyncio.sleep(1.5)
        while subscription.is_notified:
            await anext(subscription)
        await other.run(lambda tx: tx.notify(b"topic"))
        await asyncio.wait_for(anext(subscription), 10)


async def test_a_body_with_many_dependent_reads(postgres_server: PostgresServer) -> None:
    """A chain of rows, each of which names the next: read in a thread, and committed once."""

    def link(tx: Transaction) -> None:
        for number in range(100):
            tx.put(b"link%d" % number, b"link%d" % (number + 1))

    def follow(snap: Snapshot) -> int:
        key, count = b"link0", 0
        while (found := snap.get(key)) is not None:
            key, count = found, count + 1
        return count

    def follow_and_count(tx: Transaction) -> int:
        add_one(b"followed")(tx)
        return follow(tx)

    url = postgres_server.new_schema_url()
    async with opened(url) as engine:
        await engine.run(link)
    async with opened(url) as engine:
        assert await asyncio.gather(*(engine.run(follow_and_count) for _ in range(3))) == [100] * 3
        assert await count_of(engine, b"followed") == 3
    async with opened(url) as engine:
        assert await engine.read(follow) == 100


async def test_a_full_database(postgres_server: PostgresServer) -> None:
    """Nothing is written, reads work, and so do writes when there is space again."""
    url = postgres_server.new_schema_url()
    schema = url.partition("schema=")[2]
    async with opened(url) as engine:
        assert await engine.run(add_one(b"k")) == 1
        postgres_server.sql(
            f"CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$;"
            f"CREATE TRIGGER full_disk BEFORE INSERT ON {schema}.kv FOR EACH ROW EXECUTE FUNCTION {schema}.full()"
        )
        for outcome in await asyncio.gather(
            *(engine.run(add_one(b"k")) for _ in range(3)), return_exceptions=True
        ):
            assert isinstance(outcome, EngineFull)
        assert await count_of(engine, b"k") == 1
        postgres_server.sql(f"DROP TRIGGER full_disk ON {schema}.kv")
        assert await engine.run(add_one(b"k")) == 2


async def test_a_damaged_row(postgres_server: PostgresServer) -> None:
    """It is never returned, and hurts those alone that read it."""
    url = postgres_server.new_schema_url()
    schema = url.partition("schema=")[2]
    async with opened(url) as engine:
        await asyncio.gather(*(engine.run(add_one(key)) for key in (b"good", b"bad", b"other")))
    postgres_server.sql(
        f"UPDATE {schema}.kv SET value = set_byte(value, 12, 255) WHERE key = '{chr(92)}x{b'bad'.hex()}'"
    )
    keys = (b"good", b"bad", b"other")
    async with opened(url) as engine:
        for outcomes in (
            await asyncio.gather(*(engine.read(partial(_get, key)) for key in keys), return_exceptions=True),
            await asyncio.gather(*(engine.run(add_one(key)) for key in keys), return_exceptions=True),
        ):
            assert [isinstance(outcome, Damaged) for outcome in outcomes] == [False, True, False]
            assert isinstance(outcomes[1], Damaged)
            assert outcomes[1].key == b"bad"
        assert await count_of(engine, b"good") == 2


def _get(key: bytes, snap: Snapshot) -> bytes | None:
    return snap.get(key)


async def test_a_wall_clock_that_jumps_on_one_node(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is the database's: an hour forward or back on a node changes nothing, and instants ascend."""
    url = postgres_server.new_schema_url()
    wall = time.time_ns
    instants: list[int] = []

    def body(tx: Transaction) -> int:
        add_one(b"count")(tx)
        return tx.now

    async with opened(url) as jumping, opened(url) as other:
        for hours in (0, 1, -1, 24, 0):
            instants.append(await other.run(body))
            monkeypatch.setattr(time, "time_ns", lambda by=hours * 3600: wall() + by * 10**9)
            instants.append(await jumping.run(body))
            monkeypatch.undo()
            now = await jumping.read(lambda snap: snap.now)
            assert abs(now - wall_clock()) < 10 * 10**7
        assert await count_of(other, b"count") == len(instants)
    assert instants == sorted(set(instants))
    assert instants[-1] - instants[0] < 60 * 10**7
