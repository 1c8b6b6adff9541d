"""Options of the command line: each is an environment variable as well."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

DEFAULT_LOCATION = Path("kyanite-data")

DecoratedCommand = TypeVar("DecoratedCommand", bound=Callable[..., object])


class PortOrNone(click.IntRange):
    """A port, or ``none``: no port at all."""

    name = "port or none"

    def __init__(self) -> None:
        super().__init__(0, 65535)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return NO_PORT if value == NO_PORT else super().convert(value, param, ctx)


NO_PORT = "none"


def option(
    name: str, *, variable: str = "", **settings: Any
) -> Callable[[DecoratedCommand], DecoratedCommand]:
    """An option and its environment variable, ``--blob-port`` and ``KYANITE_BLOB_PORT``."""
    variable = variable or name.lstrip("-")
    environment = "KYANITE_" + variable.replace("-", "_").upper()
    return click.option(name, variable.replace("-", "_"), envvar=environment, show_envvar=True, **settings)


def location_option(command: DecoratedCommand) -> DecoratedCommand:
    return option(
        "--location",
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_LOCATION,
        show_default=True,
        help="Folder of the store.",
    )(command)
