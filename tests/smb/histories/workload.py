"""Clients that do random things to few files, each in a thread of its own."""

import itertools
import random
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

FIRST_VALUE = 0


class HistoryClient(Protocol):
    """One client. What the server refuses is no failure: the client notes it and goes on."""

    name: str

    def act(self, chance: random.Random, file: str, values: Callable[[], int]) -> None:
        """Do something with the file. Each of the values is written once only."""

    def close(self) -> None: ...


def run(clients: Sequence[HistoryClient], files: Sequence[str], *, seed: int, acts: int) -> None:
    """Let each client act so often. What a client raises ends the run."""
    numbers = itertools.count(FIRST_VALUE + 1)
    lock = threading.Lock()

    def new_value() -> int:
        with lock:
            return next(numbers)

    failures: list[BaseException] = []

    def live(client: HistoryClient) -> None:
        chance = random.Random(f"{seed} {client.name}")
        try:
            for _ in range(acts):
                if failures:
                    return
                client.act(chance, chance.choice(files), new_value)
        except BaseException as error:
            failures.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=live, args=(client,), name=client.name) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
