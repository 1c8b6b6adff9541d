"""Whether a configuration file would be accepted."""

from pathlib import Path

from kyanite.server import serve_cli


def check_configuration(text: str, folder: Path) -> None:
    """What ``kyanite serve --config`` does before it opens anything."""
    path = folder / "kyanite.toml"
    path.write_text(text)
    with serve_cli.serve.make_context("serve", ["--config", str(path)]) as context:
        serve_cli._config(context, context.params)
