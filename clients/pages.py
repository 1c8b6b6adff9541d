"""The JavaScript blocks of the documentation: each is a program that must come to its end."""

from documentation.pages import BY_CLIENTS, blocks_of, pages, with_endpoints

from clients import installs
from clients.report import Report
from clients.workspace import Workspace, run


def suite(workspace: Workspace, report: Report) -> None:
    environment = {"NODE_PATH": str(installs.node_modules())}
    for page in pages():
        for block in blocks_of(page):
            if block.mark == BY_CLIENTS:
                program = workspace.folder / f"{page.stem}-{block.line}.cjs"
                text = with_endpoints(block.text, workspace.server.endpoints, workspace.connection_string)
                program.write_text(text)
                with report.check(f"{page.name}, line {block.line}"):
                    run([str(installs.node()), str(program)], environment)
