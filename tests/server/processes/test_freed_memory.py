"""What a process frees is used again, and goes back to the system when no request comes; so does what a start needed.

Each case is a process of its own, because the C library keeps its settings.
"""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only the C library of Linux can be told"
)

ROUNDS = 50
PAGES = 500
LONGEST_MESSAGE = 8 * 1024 * 1024 + 200
BEGIN = f"""
import resource
from kyanite.server.processes.freed_memory import FreedMemory, give_back_what_the_start_needed

def faults_of_responses():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range({ROUNDS}):
        part = bytes(4096 * {PAGES} // 8)
        body = b"".join([part] * 8)
        response = b"".join([b"head", body])
        del part, body, response
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def faults_of_encrypted_writes():
    # Two at a time, each as it came and decrypted.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range({ROUNDS}):
        messages = [b"x" * {LONGEST_MESSAGE} for _ in range(4)]
        del messages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident_pages():
    return int(open("/proc/self/statm").read().split()[1])
"""


def run(code: str) -> int:
    done = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_responses_of_the_same_length_use_the_same_pages() -> None:
    assert run("print(faults_of_responses())") > ROUNDS * PAGES / 2, "This machine needs no setting."
    assert run("FreedMemory(); print(faults_of_responses())") < 4 * PAGES


def test_the_longest_messages_of_smb_use_the_same_pages() -> None:
    pages = 4 * LONGEST_MESSAGE // 4096
    assert run("print(faults_of_encrypted_writes())") > ROUNDS * pages / 2, "This machine needs no setting."
    assert run("FreedMemory(); print(faults_of_encrypted_writes())") < 3 * pages


def test_free_pages_go_back_when_no_request_came() -> None:
    freed = run("""
memory = FreedMemory()
memory.beat(1)
faults_of_responses()
pages = resident_pages()
memory.beat(2)
assert pages - resident_pages() < 50, "A request has come since."
memory.beat(2)
print(pages - resident_pages())
""")
    assert freed >= PAGES


def test_they_go_back_once() -> None:
    freed = run("""
memory = FreedMemory()
trims = []
memory._trim = trims.append
for requests in (0, 0, 0, 5, 7, 7, 7):
    memory.beat(requests)
print(len(trims))
""")
    assert freed == 2


def test_what_the_start_needed_goes_back_and_is_still_there() -> None:
    """Pages of programs are read again from their files, so everything works as before."""
    freed = run("""
import asyncio, decimal, email, hashlib, json, sqlite3, ssl
before = hashlib.sha256(json.dumps(list(range(1000))).encode()).hexdigest(), str(decimal.Decimal(1) / 7)
pages = resident_pages()
give_back_what_the_start_needed()
freed = pages - resident_pages()
assert before == (hashlib.sha256(json.dumps(list(range(1000))).encode()).hexdigest(), str(decimal.Decimal(1) / 7))
assert sqlite3.connect(":memory:").execute("select 6 * 7").fetchone() == (42,)
asyncio.run(asyncio.sleep(0))
print(freed)
""")
    assert freed >= 400
