"""wrk as the load client: it takes less of the processors than a client in Python, and so leaves more to the server.

It serves for small requests. For large bodies our own client is the cheaper one: it sends them without copying and lets
the kernel drop what it receives, while wrk copies all of it in pieces of 8 KiB.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from array import array
from functools import cache
from math import ceil
from pathlib import Path
from time import sleep

from bench.load.client import Tally, processes_for
from bench.load.plan import Plan
from bench.load.site import Site

NAME = "wrk"
_SCRIPT = Path(__file__).with_name("plan.lua")
_TIMEOUT_SECONDS = 60
_LONGER = 20
"""wrk takes whole seconds only, so it is stopped by a signal; should that be lost, it ends by itself after so long."""
_ERRORS = ("connections failed", "reads failed", "writes failed", "answers had an error status", "timeouts")


@cache
def is_installed() -> bool:
    return shutil.which(NAME) is not None


def load(site: Site, plan: Plan, *, lanes: int, seconds: float, requests_per_operation: int = 1) -> Tally:
    """Send the plan by so many connections for so long. What is unanswered at the end is not counted."""
    threads = processes_for(lanes)
    assert lanes % threads == 0, "every thread has as many lanes"
    with tempfile.TemporaryDirectory(prefix="wrk-") as folder:
        path = Path(folder) / "plan"
        path.write_text(plan.as_lua(), encoding="ascii")
        counts = ["--threads", str(threads), "--connections", str(lanes)]
        limits = ["--duration", f"{ceil(seconds) + _LONGER}s", "--timeout", f"{_TIMEOUT_SECONDS}s"]
        address = f"http://{site.host}:{site.port}/"
        command = [NAME, *counts, *limits, "--script", str(_SCRIPT), address, "--"]
        text, cpu_seconds = _run([*command, str(path), str(lanes // threads)], threads, seconds)
    return parsed(text, cpu_seconds, requests_per_operation)


def _run(command: list[str], threads: int, seconds: float) -> tuple[str, float]:
    """What wrk prints, and the processor time that it used. The clock runs when every thread has read the plan."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        text = "".join(process.stdout.readline() for _ in range(threads))
        sleep(seconds)
        process.send_signal(signal.SIGINT)
        text += process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        process.stdout.close()
        if process.returncode is None:
            process.kill()
            process.wait()
    if process.returncode:
        raise RuntimeError(f"wrk ended with {process.returncode}: {text[-500:]}")
    return text, usage.ru_utime + usage.ru_stime


def parsed(text: str, cpu_seconds: float, requests_per_operation: int) -> Tally:
    """What the script printed."""
    lines = dict(line.partition(" ")[::2] for line in text.splitlines())
    if "figures" not in lines:
        raise RuntimeError(f"wrk did not finish: {text[-500:]}")
    requests, microseconds, *errors = (int(figure) for figure in lines["figures"].split())
    problems = [f"{count} {words}" for count, words in zip(errors, _ERRORS, strict=True) if count]
    if lines["failure"]:
        problems.append(lines["failure"])
    return Tally(
        operations=requests / requests_per_operation,
        seconds=microseconds / 1e6,
        client_cpu_seconds=cpu_seconds,
        latencies=array("d", (float(figure) / 1e6 for figure in lines["latencies"].split())),
        errors=problems,
        client=NAME,
    )
