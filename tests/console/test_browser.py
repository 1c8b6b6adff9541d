"""The console in a real browser: every page, the live pages while things change, a hostile name, sign-in and forms.

With ``--screenshots`` the pictures of ``docs/console.md`` are made anew: ``make screenshots``.
"""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient, ContentSettings
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient
from selenium.webdriver.common.keys import Keys

from kyanite.services.console.routes import ROUTES
from tests.console.browser import Browser, running_browser
from tests.console.data import fill
from tests.server_process import ServerProcess
from tests.smb.messages import OPEN, READ_WRITE, connected
from tests.smb.torture.targets import login_of

ACCOUNT = "devstoreaccount1"
HOSTILE = "<img src=x onerror=alert(1)>\"'`{{7*7}}</script><script>alert(2)</script>"
PICTURES = Path(__file__).parents[2] / "docs" / "console"
SECRET_KEY = base64.b64encode(b"a key of this test" * 2).decode()
BATCH = 9

# Pages that need more than an account.
WHERE = {
    "/blobs": {"container": "pictures"},
    "/blob": {"container": "pictures", "name": "trips/alps.csv"},
    "/queue": {"queue": "orders"},
    "/table": {"table": "Prices"},
    "/entity": {"table": "Prices", "partition": "fruit", "row": "apple"},
    "/share": {"share": "team", "path": "letters"},
    "/file": {"share": "team", "path": "letters/offer.txt"},
    "/explain": {"id": "00000000-0000-0000-0000-000000000000"},
}
NO_PAGES = {
    "/requests/stream",
    "/live/part",
    "/blob/download",
    "/blob/image",
    "/file/download",
    "/file/image",
}


@pytest.fixture(scope="module")
def filled(server: ServerProcess) -> ServerProcess:
    fill(server)
    return server


@pytest.fixture(scope="module")
def running(filled: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(filled.endpoints["console"], tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture
def browser(running: Browser) -> Iterator[Browser]:
    """Whatever a test does, the browser has nothing to complain about."""
    yield running
    assert running.problems() == []


@pytest.fixture
def container(filled: ServerProcess) -> ContainerClient:
    client = BlobServiceClient(filled.endpoints["blob"], credential=filled.account_key)
    return client.get_container_client("pictures")


def test_every_page_at_every_size_and_colour(browser: Browser) -> None:
    """No page is wider than a telephone: what is wide scrolls by itself."""
    pages = [route.path for route in ROUTES.values() if route.method == "GET" and route.path not in NO_PAGES]
    for width, scheme in ((1200, "light"), (390, "dark")):
        browser.resize(width, 800)
        browser.prefer(scheme)
        for page in pages:
            browser.open(page, account=ACCOUNT, **WHERE.get(page, {}))
            browser.find("h1")
            assert "404" not in browser.driver.title, page
            wide = browser.driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, (page, width)
            colour = browser.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert colour == ("rgb(251, 252, 253)" if scheme == "light" else "rgb(18, 23, 29)")
    browser.resize(1200, 800)
    browser.prefer("light")


def test_a_hostile_name_is_only_a_name(browser: Browser, container: ContainerClient) -> None:
    container.upload_blob(HOSTILE, HOSTILE.encode(), overwrite=True)
    where = {"account": ACCOUNT, "container": "pictures"}
    browser.open("/blobs", flat="1", **where)
    browser.until_text(HOSTILE)
    browser.open("/blob", name=HOSTILE, **where)
    assert browser.find("h1").text == HOSTILE
    assert browser.driver.execute_script("return document.images.length") == 0
    container.get_blob_client(HOSTILE).acquire_lease(60)
    browser.open("/live", account=ACCOUNT)
    browser.until_text(HOSTILE)
    browser.click("form[action='/live/break'] button", confirm=True)
    browser.until_text("The lease was broken.")
    container.delete_blob(HOSTILE)


def test_files_are_uploaded_with_progress(
    browser: Browser, container: ContainerClient, tmp_path: Path
) -> None:
    names = ("one.txt", "two.bin")
    for name in names:
        (tmp_path / name).write_bytes(name.encode() * 200_000)
    browser.open("/blobs", account=ACCOUNT, container="pictures", prefix="new/")
    browser.find("input[type=file]").send_keys("\n".join(str(tmp_path / name) for name in names))
    browser.click("form.upload button")
    browser.until_text("It was uploaded.")
    browser.until_text("two.bin")
    for name in names:
        assert container.download_blob(f"new/{name}").readall() == name.encode() * 200_000
    browser.find("input[type=file]").send_keys(str(tmp_path / "one.txt"))
    browser.click("form.upload button")
    browser.until_text("BlobAlreadyExists")
    # The browser itself notes every answer that refuses something.
    assert all("409" in problem for problem in browser.problems())


def test_leases_change_while_the_page_is_open(browser: Browser, container: ContainerClient) -> None:
    container.upload_blob("leased", b"1", overwrite=True)
    browser.open("/live", account=ACCOUNT)
    browser.until_text("Nothing is leased.")
    lease = container.get_blob_client("leased").acquire_lease(60)
    browser.until_text(lease.id)
    first = browser.find("[data-ends]").text
    browser.until(lambda: browser.find("[data-ends]").text not in (first, ""), "a countdown")
    lease.release()
    browser.until_text("Nothing is leased.")


def test_handles_change_while_the_page_is_open(browser: Browser, filled: ServerProcess) -> None:
    browser.open("/live", account=ACCOUNT)
    browser.until_text("No file is open.")
    with connected(login_of(filled), "team") as client:
        client.create(r"letters\offer.txt", access=READ_WRITE, disposition=OPEN, oplock=BATCH)
        browser.until_text("team/letters/offer.txt")
        browser.until_text("oplock batch")
        browser.click("form[action='/live/close'] button", confirm=True)
        browser.until_text("The handle was closed.")
        browser.until_text("No file is open.")


def test_requests_appear_while_the_page_is_open(browser: Browser, container: ContainerClient) -> None:
    browser.open("/requests", account=ACCOUNT, operation="Get Blob Properties", status="error")
    browser.find("[data-tail-mark]:not(.off)")

    def is_there() -> bool:
        container.get_blob_client("<b>not there").exists()
        container.get_blob_client("leased").exists()
        return "404" in browser.text

    browser.until(is_there, "a refused request")
    assert "%3Cb%3Enot%20there" in browser.text
    assert "leased" not in browser.find("tbody").text
    browser.click("tbody a.status-bad")
    browser.until_text("What was asked")
    assert "404 BlobNotFound" in browser.text


def test_the_keyboard_reaches_everything(browser: Browser) -> None:
    browser.open("/containers", account=ACCOUNT)
    body = browser.find("body")
    body.send_keys("/")
    assert browser.driver.switch_to.active_element.get_attribute("name") == "prefix"
    browser.open("/containers", account=ACCOUNT)
    browser.find("body").send_keys(Keys.TAB)
    first = browser.driver.switch_to.active_element
    assert first.text == "Skip to the content"
    first.send_keys(Keys.ENTER)
    assert browser.driver.switch_to.active_element.get_attribute("id") == "main"


def test_forms_work_and_forged_ones_do_not(browser: Browser, filled: ServerProcess) -> None:
    queue = QueueServiceClient(filled.endpoints["queue"], credential=filled.account_key).get_queue_client(
        "orders"
    )
    queue.clear_messages()
    browser.open("/queue", account=ACCOUNT, queue="orders")
    browser.type_into("textarea[name=text]", "from the browser")
    browser.click("form[action='/queue/add'] button")
    browser.until_text("The message was added.")
    assert [each.content for each in queue.peek_messages()] == ["from the browser"]
    browser.driver.execute_script(
        "document.querySelector('form[action=\"/queue/clear\"] [name=csrf]').value = 'x'"
    )
    browser.click("form[action='/queue/clear'] button", confirm=True)
    browser.until_text("does not belong to this session")
    assert len(queue.peek_messages()) == 1
    assert all("400" in problem for problem in browser.problems())


def test_another_site_can_neither_frame_nor_read_the_console(browser: Browser, filled: ServerProcess) -> None:
    """A page of another origin: the blob service of the same server, with a public blob that tries."""
    client = BlobServiceClient(filled.endpoints["blob"], credential=filled.account_key)
    container = client.create_container("site", public_access="blob")
    console = filled.endpoints["console"]
    page = (
        f"<iframe src='{console}containers?account={ACCOUNT}'></iframe>"
        f"<form method=post action='{console}containers/create'><input name=account value={ACCOUNT}>"
        "<input name=container value=forged><input name=csrf value=x><button>x</button></form>"
    )
    settings = ContentSettings(content_type="text/html")
    container.upload_blob("page.html", page.encode(), content_settings=settings)
    browser.driver.get(f"{filled.endpoints['blob']}/site/page.html")
    browser.click("button")
    browser.until_text("does not belong to this session")
    assert "forged" not in [each.name for each in client.list_containers()]
    assert browser.problems() != []


def test_signing_in_and_out(browser: Browser) -> None:
    options = ("--console-port", "0", "--console-host", "0.0.0.0", "--in-memory")
    with ServerProcess(*options, "--account", f"alpha:{SECRET_KEY}") as server:
        there = Browser(browser.driver, server.endpoints["console"])
        there.open("/containers", account="alpha")
        there.until_text("Sign in")
        there.type_into("[name=name]", "alpha")
        there.type_into("[name=key]", "wrong")
        there.click("main form button")
        there.until_text("not right")
        there.type_into("[name=name]", "alpha")
        there.type_into("[name=key]", SECRET_KEY)
        there.click("main form button")
        there.until_text("Endpoints")
        assert there.driver.execute_script("return document.cookie") == ""
        there.open("/containers", account="alpha")
        there.until_text("New container")
        there.click("form[action='/sign-out'] button")
        there.until_text("Sign in")
        there.open("/containers", account="alpha")
        there.until_text("Sign in")
    assert all("403" in problem for problem in browser.problems())


def test_screenshots(
    browser: Browser, filled: ServerProcess, container: ContainerClient, pytestconfig: pytest.Config
) -> None:
    """The pictures of the guide show what the guide says they show."""
    is_wanted = pytestconfig.getoption("--screenshots")
    files = ShareServiceClient(filled.endpoints["file"], credential=filled.account_key)
    container.upload_blob("trips/plan.json", b'{"days": 3}', overwrite=True)
    container.get_blob_client("trips/plan.json").acquire_lease(60)
    container.get_blob_client("trips/film.mp4").stage_block("AAAA", b"1")
    files.get_share_client("team").get_file_client("letters/offer.txt").acquire_lease()
    with connected(login_of(filled), "team") as client:
        client.create(r"letters\notes.txt", access=READ_WRITE, disposition=OPEN, oplock=BATCH)
        for name, page, width, scheme, text in (
            ("blobs", "/blobs", 1000, "light", "trips/"),
            ("blob", "/blob", 1000, "light", "Preview"),
            ("concurrency", "/live", 1000, "dark", "oplock batch"),
            ("phone", "/live", 390, "light", "oplock batch"),
        ):
            browser.resize(width, 640)
            browser.prefer(scheme)
            browser.open(page, account=ACCOUNT, **WHERE.get(page, {}))
            browser.until_text(text)
            if is_wanted:
                PICTURES.mkdir(exist_ok=True)
                browser.screenshot(PICTURES / f"{name}.png")
            assert is_wanted or (PICTURES / f"{name}.png").stat().st_size < 200_000
    browser.resize(1200, 800)
    browser.prefer("light")
