# SPDX-License-Identifier: BSD-2-Clause
"""Kinds of failure in checked and unchecked mode, and failures in bad moments."""
import contextlib
import pathlib
import tempfile

from harness import expect
from hosts import ROOT, build_of, good, link_flags

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("host.c", "host_kinds.c", "host_failures.c")
MODES = ("checked", "unchecked")

# For each kind, the line that the report names, and what it says in checked and in unchecked mode; None: that
# mode does not see it.
SEGFAULT = "Segmentation fault at address"
KINDS = {
    "null_load": ("load", "load of 8 bytes at 0x0:", SEGFAULT),
    "null_store": ("store", "store of 8 bytes at 0x0:", SEGFAULT),
    "wild_store": ("store", "store of 8 bytes at 0xdead0000dead0000:", SEGFAULT),
    "unmapped": ("load", "load of 8 bytes at 0x10000:", SEGFAULT),
    "library": ("fill", "store of ", SEGFAULT),
    "nested": ("nested", "load of 8 bytes at 0x0:", SEGFAULT),
    "guard": ("store", SEGFAULT, SEGFAULT),
    "code": ("store", SEGFAULT, SEGFAULT),
    "host_load": ("load", "load of 8 bytes at ", None),
    "host_store": ("store", "store of 8 bytes at ", None),
    "archive": ("archive", "store of 8 bytes at ", None),
    "other_archive": ("archive", None, "store of 8 bytes at "),
    "overflow": ("overflow", "stack overflow at address", "stack overflow at address"),
    "large_frame": ("large", "stack overflow at address", "stack overflow at address"),
    "jump_null": ("jump", SEGFAULT, SEGFAULT),
    "jump_heap": ("jump", SEGFAULT, SEGFAULT),
    "trap": ("trap", "Illegal instruction at address", "Illegal instruction at address"),
    "breakpoint": ("breakpoint", "Trace/breakpoint trap at address", "Trace/breakpoint trap at address"),
    "user_error": ("report", "code 0xc8", "code 0xc8"),
    "illegal_error": ("report", "code 0x42", "code 0x42"),
    "window_end": ("window", "load of 1 bytes at ", None),
    "window_key": ("window", "load of 1 bytes at 0x0:", SEGFAULT),
    "gone": ("gone", "load of 1 bytes at ", None),
}


class Programs:
    """The host program for each mode and each set of options, built when it is first wanted."""
    def __init__(self):
        self.directory = None

    def host(self, session, mode="checked", options="-g"):
        build = build_of(session)
        if not self.directory:
            self.directory = tempfile.TemporaryDirectory(prefix="softhca-faults.")
        name = "-".join((mode, *options.split()))
        host = pathlib.Path(self.directory.name) / name
        if not host.exists():
            self.compile(session, build, host, mode, options)
        return str(host)

    @staticmethod
    def compile(session, build, host, mode, options):
        archive = host.with_suffix(".a")
        other = MODES[1 - MODES.index(mode)]
        libraries = {f"{host}-own": ("archived", mode), f"{host}-other": ("archived_other", other)}
        for library, (function, its_mode) in libraries.items():
            good(session, build / "dpacc", f"--{its_mode}", HERE / "archive.c", "--gen-libs", "-o", library,
                 "-hostcc=gcc", f"--devicecc-options=-O1 -Wall -Wextra -DNAME={function} {options}")
        good(session, build / "dpacc", f"--{mode}", HERE / "device.c", "-o", archive, "-hostcc=gcc",
             f"--device-libs={','.join(f'{library}_device.a' for library in libraries)}", "--app-name=faults_app",
             f"--devicecc-options=-O1 -Wall -Wextra -Wno-infinite-recursion {options}")
        good(session, "gcc", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{ROOT}/include",
             f"-I{ROOT}/tests/support", *(HERE / source for source in SOURCES), archive,
             *link_flags(build), "-o", host)


PROGRAMS = Programs()


def line_of(words):
    """FILE:LINE of the line of the program with that comment."""
    (found,) = [f"{name}:{number}" for name in ("device.c", "archive.c", "host_kinds.c")
                for number, line in enumerate((HERE / name).read_text().splitlines(), 1) if f"/* {words} */" in line]
    return found


@contextlib.contextmanager
def ran(session, cases, mode="checked", env=None, program=(), **rest):
    """The directory that the program ran in, and what it said."""
    host = PROGRAMS.host(session, mode)
    with tempfile.TemporaryDirectory(prefix="softhca-faults.") as directory:
        result = session.run(*program, host, *cases, cwd=directory, env={**session.env, **(env or {})}, **rest)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        yield pathlib.Path(directory), result


def report_of(directory, name):
    (report,) = directory.glob(f"{name}.*.crash")
    return report.read_text()


def measured(result):
    """What the program has measured, for people: nothing depends on it."""
    for line in result.out.splitlines():
        if line.startswith("error descriptor"):
            print(f"        {line}", flush=True)


def kinds(mode):
    def run(session):
        with ran(session, ["kinds"], mode) as (directory, result):
            for name, (line, *says) in KINDS.items():
                words = says[MODES.index(mode)]
                seen = "seen" if words else "not seen"
                expect(f"{name}: {seen}\n" in result.out, f"{name} is not '{seen}'\n{result.text()}")
                if words:
                    text = report_of(directory, name)
                    for wanted in (words, "has failed", line_of(line)):
                        expect(wanted in text, f"the report of {name} does not say '{wanted}'\n{text}")
            measured(result)
    return run


def moment(name, lines, env=None, log=""):
    """What the report NAME says, if there is to be one."""
    def run(session):
        with ran(session, [name], env=env) as (directory, result):
            expect(log in result.err, result.text())
            for report, line in lines:
                text = report_of(directory, report)
                expect(line_of(line) in text, f"no {line_of(line)}\n{text}")
            measured(result)
    return run


# What is said of a block of the heap: the kind of access, and where in the block of 64 bytes it is.
BLOCKS = {
    "block_end": ("store", "store of 8 bytes at ", "bytes 64 to 71 of a block of 64 bytes at 0x"),
    "block_front": ("load", "load of 8 bytes at ", "8 bytes in front of a block of 64 bytes at 0x"),
    "block_filled": ("fill", "store of 64 bytes at ", "bytes 1 to 64 of a block of 64 bytes at 0x"),
    "block_freed": ("load", "load of 8 bytes at ", "bytes 16 to 23 of a block of 64 bytes at 0x"),
    "block_copied": ("window copy", "load of 65 bytes at ", "bytes 0 to 64 of a block of 64 bytes at 0x"),
}


def blocks(session):
    """Report and log name the block, who allocated it, and whether it was freed."""
    with ran(session, ["blocks"], env={"SOFTHCA_DPA_REDZONES": "1"}) as (directory, result):
        for name, (line, *words) in BLOCKS.items():
            expect(f"{name}: seen\n" in result.out, f"{name} is not seen\n{result.text()}")
            text = report_of(directory, name)
            for wanted in (*words, ", allocated in block_make at ", line_of("allocates"), line_of(line)):
                expect(wanted in text, f"the report of {name} does not say '{wanted}'\n{text}")
            freed = " and freed in block_free at " in text and line_of("frees") in text
            expect(freed == (name == "block_freed"), text)
            expect(words[1] in result.err, f"the log does not say '{words[1]}'\n{result.text()}")


def late_calls(session):
    """Calls that hang: log and report name the line."""
    with ran(session, ["late_calls"], env={"SOFTHCA_DPA_CALL_SECONDS": "1"}) as (directory, result):
        places = [("stuck_inner", "stuck inner"), ("stuck", "stuck"), ("locked", "locked"), ("ask", "ask")]
        said = [line for line in result.err.splitlines() if "took too long and was stopped in " in line]
        expect(len(said) == 3, result.text())
        for function, words in places:
            expect(any(f" {function} at " in line and line_of(words) in line for line in said), result.text())
        expect(", called by stuck at " in said[0], said[0])
        text = report_of(directory, "late")
        expect("runs, code 0x0" in text and text.count(", which took too long") == 1, text)
        expect(line_of("stuck inner") in text and line_of("stuck") in text, text)
        text = report_of(directory, "late_and_failed")
        expect(text.count(", which took too long") == 3 and text.count(", which failed") == 1, text)
        expect(all(line_of(words) in text for words in ("stuck inner", "locked", "ask", "load")), text)
        expect(" in load at " in result.err, result.text())


def many_late_calls(session):
    """The last eight calls are in the report."""
    with ran(session, ["many_late_calls"], env={"SOFTHCA_DPA_CALL_SECONDS": "1"}) as (directory, _):
        text = report_of(directory, "many_late")
        calls = [line.split(",")[0] for line in text.splitlines() if line.startswith("call ")]
        expect(calls == [f"call {number}" for number in range(3, 11)], text)


def several(session):
    """Each thread is in the report, wherever it was."""
    with ran(session, ["several"]) as (directory, _):
        text = report_of(directory, "several")
        expect(text.count("thread ") == 8 and text.count(", which failed") == 1, text)
        expect(text.count(" in meet+") == 8 and line_of("meet") in text, text)


def cases():
    yield from ((f"faults: each kind, {mode} O270 O272 O273 O282", kinds(mode)) for mode in MODES)
    yield "faults: an error handler that does not end", moment(
        "endless_handler", [("endless", "inner"), ("endless", "nested")])
    yield "faults: an error handler that does not end, and nobody who destroys its process", moment(
        "endless_alone", [("alone", "load")], {"SOFTHCA_DPA_CALL_SECONDS": "1"})
    yield "faults: an error handler that fails", moment(
        "handler_fails", [("failing", "inner"), ("failing", "nested")], log="the error handler faults")
    yield "faults: an error handler that needs its stack", moment(
        "handler_writes", [("writing", "inner"), ("writing", "nested")])
    yield "faults: calls that hang E88", late_calls
    yield "faults: many calls that hang", many_late_calls
    yield "faults: blocks of a heap with redzones O283", blocks
    yield "faults: several threads at once", several
    yield "faults: in a handler, while calls run", moment(
        "in_handler", [("in_handler", "handler"), ("in_handler", "spin"), ("in_handler", "ask")])
    yield "faults: the descriptor is asked for late O273", moment("late", [])
    yield "faults: a breakpoint of the host's is the host's", moment("own_breakpoint", [])
    yield "faults: beside many busy threads", moment("in_crowd", [])
