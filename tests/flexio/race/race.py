# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, whose device code is compiled with -fsanitize=thread and without."""
import pathlib

from harness import expect
from hosts import HostProgram

HERE = pathlib.Path(__file__).resolve().parent
REPORT = "DPA race:"

WATCHED = HostProgram(HERE, ("host.c",), "-fsanitize=thread")
PLAIN = HostProgram(HERE, ("host.c",))


def line_of(words):
    """FILE:LINE of the line of the device's part with that comment."""
    (number,) = [n for n, line in enumerate((HERE / "device.c").read_text().splitlines(), 1) if f"/* {words} */" in line]
    return f"device.c:{number}"


def reports(session, name, program=WATCHED):
    result = session.run(str(program.host(session)), name)
    expect(result.status == 0, f"status {result.status}\n{result.text()}")
    return result, [line for line in result.text().splitlines() if REPORT in line]


def right(name):
    def run(session):
        result, found = reports(session, name)
        expect(not found, result.text())
    return run


def races(name, *lines):
    """A report names both lines, and no report another one."""
    def run(session):
        result, found = reports(session, name)
        expect(any(all(f" at {line_of(line)}" in report for line in lines) for report in found),
               f"no report of {[line_of(line) for line in lines]}\n{result.text()}")
        for report in found:
            expect(any(line_of(line) in report for line in lines), result.text())
        result, found = reports(session, name, PLAIN)
        expect(not found, result.text())
    return run


def cases():
    return [
        ("race: a counter that two threads add to", races("plain", "counts here", "counts there")),
        ("race: an atomic counter", right("atomic")),
        ("race: an atomic store and a plain one", races("half", "atomic", "and not")),
        ("race: a counter with a lock", right("locked")),
        ("race: handed over by release and acquire", right("handed")),
        ("race: handed over by a relaxed store", races("relaxed", "hands over", "takes")),
        ("race: handed over by fences and a volatile flag", right("fenced")),
        ("race: handed over by a fence of windows", races("window", "wrong fence", "right fence")),
        ("race: a copy of the library", races("copied", "copies", "into the copy")),
        ("race: bytes of one word", right("neighbours")),
        ("race: a handler that is activated after the store", right("activated")),
        ("race: a handler that is activated before the store", races("early", "too late")),
    ]
