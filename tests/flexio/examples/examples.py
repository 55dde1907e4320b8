# SPDX-License-Identifier: BSD-2-Clause
"""Each example: what it prints."""
import os
import pathlib
import re
import shutil
import tempfile

from harness import Skip, expect

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The name, its end, and what it prints, a line each, of two streams.
EXAMPLES = (
    ("rpc", 0, ("9592 primes from 0 to 100000", "the DPA has found 9592 primes")),
    ("cmdq", 0, ("100 tasks wait, 0 primes are found", "4 workers have run 100 tasks and found 9592 primes")),
    ("window", 0, ("the sum of its bytes is 7112: right",)),
    ("stream", 0, ("the DPA says: hello", "synchronous: right", "batched: right", "asynchronous: right",
                   "levels: right", "tracer: right", "tracer by window: right")),
    ("events", 0, ("the DPA has taken      2000 messages, 250372 bytes of the sum 32041788",)),
)


def needs_dpa(session):
    if not (session.build / "dpacc").exists():
        raise Skip("dpacc is not built (see the configuration's message about the DPA)")


def says(result, status, lines):
    found = result.text().splitlines()
    expect(result.status == status and all(line in found for line in lines),
           f"wanted {lines} and status {status}; got {result.status}\n{result.text()}")


def built(name, status, lines):
    def run(session):
        needs_dpa(session)
        says(session.tool("run", "--", str(session.build / f"examples/flexio/flexio-{name}")), status, lines)
    return run


def two_programs(session, *sender_options):
    """The handler's program, and the sender on its own."""
    needs_dpa(session)
    place = session.build / "examples/flexio"
    receiver = session.background(str(place / "flexio-events"), "0")
    port = re.search(r"waiting for: send ADDRESS (\d+)", receiver.stdout.readline())
    expect(port, "no port is said")
    sender = session.tool("run", *sender_options, "--", str(place / "flexio-events-send"), "127.0.0.1", port[1])
    says(sender, 0, ("2000 messages have arrived",))
    says(session.finish(receiver), 0, EXAMPLES[-1][2])


def one_host(session):
    two_programs(session)


def two_hosts(session):
    two_programs(session, "--host", "host2")


def crash(session):
    """Device code fails, which is reported with its line; the program goes on."""
    needs_dpa(session)
    source = (ROOT / "examples/flexio/crash/crash_dev.c").read_text().splitlines()
    (line,) = [number for number, text in enumerate(source, 1) if "node->number" in text]
    with tempfile.TemporaryDirectory(prefix="softhca-examples.") as place:
        result = session.run(str(session.build / "examples/flexio/flexio-crash"), cwd=place)
        says(result, 0, ["the program goes on: the sum of a whole list is 60"])
        (report,) = pathlib.Path(place).glob("list.*.crash")
        for words in ("has failed", "in sum_list+", f"crash_dev.c:{line}\n"):
            expect(words in report.read_text() and words in result.out, f"'{words}' is not said\n{result.text()}")
        expect(len(list(pathlib.Path(place).glob("list.*.core"))) == 1, "there is no core file")


def good(session, *argv, **options):
    result = session.call(*map(str, argv), **options)
    expect(result.status == 0, f"status {result.status} of {argv}\n{result.text()}")


def by_make(session):
    """As a stranger would, who has only what is installed."""
    needs_dpa(session)
    with tempfile.TemporaryDirectory(prefix="softhca-examples.") as place:
        root = pathlib.Path(place) / "root"
        good(session, "meson", "install", "-C", session.build, "--destdir", root, "--no-rebuild", "--quiet")
        found = sorted(root.rglob("libflexio.pc"))
        programs = next(root.rglob("dpacc")).parent
        libraries = found[0].parents[1]
        env = {**session.env, "PATH": f"{programs}:{os.environ['PATH']}", "PKG_CONFIG_PATH": str(found[0].parent),
               "PKG_CONFIG_SYSROOT_DIR": str(root), "LD_LIBRARY_PATH": str(libraries)}
        for name in [name for name, _, _ in EXAMPLES] + ["crash"]:
            copy = pathlib.Path(place) / name
            shutil.copytree(ROOT / "examples/flexio" / name, copy)
            good(session, "make", "-C", copy, "check", env=env)


def cases():
    yield from ((f"examples: {name}", built(name, status, lines)) for name, status, lines in EXAMPLES)
    yield "examples: events of another program", one_host
    yield "examples: events of another host", two_hosts
    yield "examples: crash", crash
    yield "examples: by their own Makefiles, from what is installed", by_make
