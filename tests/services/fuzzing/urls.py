"""Addresses of blobs and files of the same server, as sources of copies and renames."""

from tests.services.fuzzing import scope as scopes
from tests.services.fuzzing.scope import Scope


def blob_url(scope: Scope) -> str:
    container = "box" if scope.likely(0.9) else scopes.container(scope)
    path = f"{container}/{scopes.blob(scope)}"
    query = ""
    if scope.likely(0.1):
        query = f"?snapshot={scope.pool.snapshot_of('blob', '/' + path, scope.chance)}"
    return _url(scope, "blob", path.replace(" ", "%20").replace("ü", "%C3%BC") + query)


def page_blob_url(scope: Scope) -> str:
    return _url(scope, "blob", f"box/{scopes.page_blob(scope)}")


def file_url(scope: Scope) -> str:
    if scope.likely(0.2):
        return blob_url(scope)
    return _url(scope, "file", f"share/{scopes.file(scope)}".replace("Ü", "%C3%9C").replace("ä", "%C3%A4"))


def own_file_url(scope: Scope) -> str:
    """A file of the same share."""
    share = scope.path.split("/")[1] if scope.path else "share"
    return _url(scope, "file", f"{share}/{scopes.file(scope)}".replace("Ü", "%C3%9C").replace("ä", "%C3%A4"))


def own_directory_url(scope: Scope) -> str:
    share = scope.path.split("/")[1] if scope.path else "share"
    return _url(scope, "file", f"{share}/{scopes.directory(scope)}".replace("Ü", "%C3%9C"))


def _url(scope: Scope, service: str, path: str) -> str:
    """Most sources have to be opened by a token of their own."""
    if scope.likely(0.8):
        path += f"{'&' if '?' in path else '?'}{scope.token}"
    if scope.likely(0.05):
        return f"http://{scope.account}.{service}.localhost/{path}"
    return f"http://{scope.hosts[service]}/{scope.account}/{path}"
