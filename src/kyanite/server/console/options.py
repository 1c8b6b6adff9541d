"""The options of ``kyanite serve`` that are about the console."""

from typing import Any

import click
from click.core import ParameterSource

from kyanite.server.config import ConsoleConfig, choose_console
from kyanite.server.options import NO_PORT, DecoratedCommand, PortOrNone, option

DEFAULT_PORT = 10010


def console_options(command: DecoratedCommand) -> DecoratedCommand:
    for each in (
        option(
            "--console-names",
            metavar="NAME,…",
            help="Host names besides its address by which browsers may reach the console, as behind a proxy.",
        ),
        option(
            "--console-host",
            default="127.0.0.1",
            show_default=True,
            help="Address of the console. Elsewhere than on loopback it asks for an account and its key.",
        ),
        option(
            "--console-port",
            type=PortOrNone(),
            default=DEFAULT_PORT,
            show_default=True,
            help="Port of the web console; none for no console.",
        ),
    ):
        command = each(command)
    return command


def console_of(context: click.Context, options: dict[str, Any]) -> ConsoleConfig | None:
    port = options["console_port"]
    return choose_console(
        options["console_host"],
        None if port == NO_PORT else port,
        options["console_names"],
        is_stated=context.get_parameter_source("console_port") is not ParameterSource.DEFAULT,
    )
