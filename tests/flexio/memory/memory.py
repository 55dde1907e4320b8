# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, with window memory as on a card and without."""
import pathlib
import re

from harness import expect
from hosts import HostProgram

HERE = pathlib.Path(__file__).resolve().parent
REPORT = "DPA memory:"


class Unchecked(HostProgram):
    """The same with device code that is not checked."""
    dpacc = ("--unchecked",)


PROGRAM = HostProgram(HERE, ("host.c",))
UNCHECKED = Unchecked(HERE, ("host.c",))


def line_of(words):
    """FILE:LINE of the line of the device's part with that comment."""
    (number,) = [n for n, line in enumerate((HERE / "device.c").read_text().splitlines(), 1) if f"/* {words} */" in line]
    return f"device.c:{number}"


def ran(session, name, memory="weak", program=PROGRAM):
    """What the case says, and the reports in it."""
    result = session.run(str(program.host(session)), name, env={**session.env, "SOFTHCA_DPA_MEMORY": memory})
    expect(result.status == 0, f"status {result.status}\n{result.text()}")
    return result, [line for line in result.text().splitlines() if REPORT in line]


def right(name):
    def run(session):
        result, reports = ran(session, name)
        expect(not reports, result.text())
    return run


def reported(name, wanted):
    """Each report once, in this order: the words after the comment of its line."""
    def run(session):
        result, reports = ran(session, name)
        expect(len(reports) == len(wanted), result.text())
        for report, (line, words) in zip(reports, wanted):
            expect(re.search(rf"in {line} at {re.escape(line_of(line))}\b.*{words}", report) or
                   re.search(rf"in memset at .*, called by {line} at {re.escape(line_of(line))}\b.*{words}", report),
                   f"no report of {line} ({line_of(line)}): {words}\n{result.text()}")
        result, reports = ran(session, name, "coherent")
        expect(not reports, result.text())
    return run


def says(name, weak, coherent):
    """What the host finds in either mode."""
    def run(session):
        for memory, words in (("weak", weak), ("coherent", coherent)):
            result, _ = ran(session, name, memory)
            expect(words in result.out, f"not '{words}'\n{result.text()}")
    return run


def settings(session):
    """What cannot be is said."""
    result, _ = ran(session, "right", "strong")
    expect("SOFTHCA_DPA_MEMORY is coherent or weak, not: strong" in result.text(), result.text())
    result, reports = ran(session, "forgotten", program=UNCHECKED)
    expect("SOFTHCA_DPA_MEMORY: the image is not checked" in result.text() and not reports, result.text())


WRITEBACK = r"__dpa_thread_window_writeback\(\) is missing"
READ_INV = r"__dpa_thread_window_read_inv\(\) is missing"


def cases():
    end = f"is not written back when the activation ends: {WRITEBACK}"
    return [
        ("memory: code with its fences has no report", right("right")),
        ("memory: the same with memory at low addresses", right("right_low")),
        ("memory: the windows of a thread on memory that is far apart", right("apart")),
        ("memory: stores without a write-back", reported("forgotten", (
            ("forgets", end), ("adds", end), ("fills", end), ("confuses", end),
            ("interrupts", rf"when flexio_dev_msix_send\(\) tells the host: {WRITEBACK}")))),
        ("memory: the host does not see a store before it is written back",
         says("hidden", "in front of the fence: 0", "in front of the fence: 11")),
        ("memory: a loop that reads the same line for ever", reported("polled", (
            ("polls", f"a second ago, when the line was read in polls at .*: {READ_INV}"),))),
        ("memory: a handler that reads a line of its activation before", reported("handled", (
            ("handles", f"before this activation, when the line was read in handles at .*: {READ_INV}"),))),
        ("memory: the host's address in the place of the window's", says("trusted", "a fault", "no fault")),
        ("memory: settings", settings),
    ]
