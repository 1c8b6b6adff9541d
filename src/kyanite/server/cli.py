"""The command line: a table of its commands, and how a failure ends.

Every option is an environment variable as well. A failure is one sentence on standard error and an exit code: 2 for
bad options, 1 for the rest. Nothing but click is imported here: a command's module is, when it runs.
"""

import sys

import click

from kyanite.server.failures import Failure
from kyanite.server.terminal.help_sections import examples
from kyanite.server.terminal.lazy_group import CommandRow, LazyGroup

_SERVER = "kyanite.server"
_TERMINAL = f"{_SERVER}.terminal"

_SECTIONS = {
    "Serve": (CommandRow("serve", f"{_SERVER}.serve_cli:serve", "Serve until SIGTERM or SIGINT."),),
    "Connect": (
        CommandRow(
            "connection-string",
            f"{_TERMINAL}.connection_string_cli:connection_string",
            "What clients take to reach an account.",
        ),
        CommandRow("sas", f"{_TERMINAL}.sas_cli:sas", "Shared access signatures of every kind."),
        CommandRow("token", f"{_SERVER}.issuer.token_cli:token", "A bearer token of the development issuer."),
    ),
    "What is stored": (
        CommandRow("ls", f"{_TERMINAL}.items_cli:ls", "List containers, shares, blobs and files."),
        CommandRow("cp", f"{_TERMINAL}.items_cli:cp", "Copy from, to or within the server."),
        CommandRow("cat", f"{_TERMINAL}.items_cli:cat", "Write blobs and files to standard output."),
        CommandRow("rm", f"{_TERMINAL}.items_cli:rm", "Delete blobs, files, containers and shares."),
    ),
    "A running server": (
        CommandRow("stats", f"{_TERMINAL}.stats_cli:stats", "Sizes, counts, leases and open handles."),
        CommandRow(
            "account", f"{_SERVER}.management.account_cli:account", "Accounts, their keys and settings."
        ),
        CommandRow(
            "container",
            f"{_SERVER}.management.container_cli:container",
            "Containers, and what protects them.",
        ),
        CommandRow("explain", f"{_SERVER}.management.explain_cli:explain", "Say why a request was refused."),
        CommandRow("identity", f"{_SERVER}.management.identity_cli:identity", "User delegation keys."),
        CommandRow("stamp", f"{_SERVER}.management.stamp_cli:stamp", "Stores besides the main one."),
    ),
    "A store": (
        CommandRow("backup", f"{_SERVER}.backup.backup_cli:backup", "Back a store up, while it serves."),
        CommandRow("restore", f"{_SERVER}.backup.backup_cli:restore", "Restore a store from a backup."),
        CommandRow(
            "verify", f"{_SERVER}.store.verify_cli:verify", "Read everything in a store and check it."
        ),
        CommandRow("migrate", f"{_SERVER}.migration.migrate_cli:migrate", "Move accounts to another store."),
    ),
    "The shell": (
        CommandRow(
            "completion", f"{_TERMINAL}.completion_cli:completion", "Completion for bash, zsh or fish."
        ),
    ),
}


def _print_version(context: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        from importlib.metadata import version

        from kyanite.server.form import form

        click.echo(f"kyanite, version {version('kyanite')} ({form()})")
        context.exit()


@click.group(
    cls=LazyGroup,
    sections=_SECTIONS,
    help="A self-hosted storage server that speaks Azure Storage's own protocols.",
    epilog=examples(
        "kyanite serve                          serve on this machine, with the development account",
        "kyanite connection-string              what clients take to reach it",
        "kyanite cp -r photos blob://devstoreaccount1/photos --create",
        "kyanite account add mystore            add an account to the server that runs",
        "kyanite COMMAND --help                 what a command takes, with examples",
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
def kyanite() -> None:
    pass


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        code = kyanite.main(prog_name="kyanite", standalone_mode=False)
    except click.ClickException as misuse:
        # Without a command the message is the help text, which is more than a sentence.
        text = misuse.format_message()
        click.echo(text if "\n" in text else f"kyanite: {text}", err=True)
        code = misuse.exit_code
    except click.Abort:
        code = 1
    except OSError as error:
        click.echo(
            f"kyanite: {error.strerror or error}{f': {error.filename}' if error.filename else ''}.", err=True
        )
        code = 1
    except Failure as failure:
        click.echo(f"kyanite: {failure.sentence}", err=True)
        code = failure.exit_code
    sys.exit(code)


if __name__ == "__main__":
    main()
