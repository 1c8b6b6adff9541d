"""Options of the command line: each is an environment variable as well."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kyanite.server import config as configuration

DecoratedCommand = TypeVar("DecoratedCommand", bound=Callable[..., object])


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
        default=configuration.DEFAULT_LOCATION,
        show_default=True,
        help="Folder of the store.",
    )(command)
