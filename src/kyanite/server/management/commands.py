"""The table of management commands. A part that has commands of its own adds its rows here.

The rows of a part are beside its functions, in ``…_commands.py``; its part of the command line is ``…_cli.py``.
"""

from collections.abc import Mapping

from kyanite.server.management import (
    account_commands,
    container_commands,
    explain_commands,
    identity_commands,
    server_commands,
    stamp_commands,
    stats_commands,
)
from kyanite.server.management.command import Command

COMMANDS: Mapping[str, Command] = {
    command.name: command
    for command in (
        *account_commands.COMMANDS,
        *container_commands.COMMANDS,
        *explain_commands.COMMANDS,
        *identity_commands.COMMANDS,
        *server_commands.COMMANDS,
        *stamp_commands.COMMANDS,
        *stats_commands.COMMANDS,
    )
}
