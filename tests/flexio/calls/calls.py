# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, each a run of it under softhca."""
import pathlib
import shutil
import tempfile

from harness import expect
from hosts import HostProgram

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("host.c", "host_app.c", "host_memory.c", "host_call.c", "host_error.c",
           "host_cmdq.c", "host_window.c", "host_ends.c")

CASES = (
    ("app_names", "applications have names, files and a list B21 B22 B23 B24 B25 B26 B27 B28"),
    ("app_own app_bad", "an application of the program's own file, and of none B30 B31 B32 B33"),
    ("app_symbols", "what variables of an application begin with"),
    ("registration", "functions are registered, and known B33 B34 B35 B36 B37 B38 B39 B40"),
    ("processes", "processes come and go C43 C44 C45 C46 C48 C49 C50 C55 P294"),
    ("allocation", "the heap gives and takes C56 C57 D61 D62 D63 D64 D65 D66"),
    ("redzones", "the heap is one place for device code, as on hardware O283"),
    ("copies", "the host writes to the heap D67 D68 D69 D70 D71"),
    ("arguments", "arguments arrive, results come back E77 E78 E79 E80 E81 E82 B41 F123"),
    ("many", "many calls in a row E84 E86"),
    ("parallel", "calls of several threads run at the same time E83 D71"),
    ("streamed", "a call prints E85"),
    ("null_load wild_store no_place no_stack frame_too_large host_call host_memory",
     "a fault ends the process and nothing else O269 O270 O273 O280 O282 E87 E91"),
    ("user_error", "errors that a program reports O271"),
    ("finished bad_arguments", "processes without an error O268 O274 F106"),
    ("handler", "an error handler says its last word O275"),
    ("cmdq_states cmdq_order", "a command queue runs its tasks G124 G125 G127 G128 G129 G130 F123"),
    ("cmdq_workers", "workers run as many tasks at a time as there are G126 G130 G131"),
    ("cmdq_numbers", "each worker has a number, which a NULL context gets too"),
    ("cmdq_crowd", "a command queue of more workers than units"),
    ("cmdq_once", "each of 100,000 tasks runs once G132"),
    ("cmdq_many", "many tasks of many threads G131 G133"),
    ("cmdq_busy", "command queues go in any state G135 F114"),
    ("cmdq_bad", "command queues that cannot be, and tasks that fail G134"),
    ("windows", "windows reach memory of the host L217 L218 L219 L220 L221 L222 L223"),
    ("window_faults", "what a key does not allow is a fault L224 L225 L230"),
    ("window_gone", "a window goes while it is used L229"),
    ("window_two", "two threads have windows of their own L227"),
    ("window_live", "host and device see each other's stores while both run L226"),
    ("ends", "a process goes in the middle of everything C54"),
    ("app_ends", "an application goes in the middle of a call"),
    ("commands", "commands that no library sends: any length, any context, addresses that are no code"),
)


PROGRAMS = HostProgram(HERE, SOURCES, "-Wno-infinite-recursion")


def case(name, env=None, options=()):
    def run(session):
        host = PROGRAMS.host(session)
        result = session.tool("run", *options, "--", str(host), *name.split(), env={**session.env, **(env or {})})
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
    return run


def without_dpa(session):
    host = PROGRAMS.host(session)
    result = session.tool("run", "--model=connectx-7", "--", str(host), "no_dpa")
    expect(result.status == 0 and "has no DPA" in result.err, f"status {result.status}\n{result.text()}")


def killed(session):
    host = PROGRAMS.host(session)
    for _ in range(5):
        program = session.background(str(host), "killed")
        expect(program.stdout.readline() == "spinning\n", "it does not begin")
        program.kill()
        expect(program.wait(30) is not None, "it does not end")


def line_of(words):
    """The number of the line of the device code with that comment."""
    lines = (HERE / "device.c").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f"/* {words} */" in line)


def reported(session):
    """The report names the lines, in the file and on the console."""
    host = PROGRAMS.host(session)
    with tempfile.TemporaryDirectory(prefix="softhca-crash.") as directory:
        result = session.tool("run", "--", str(host), "reported", cwd=directory)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        reports = list(pathlib.Path(directory).glob("nested.*.crash"))
        expect(len(reports) == 1, f"no report in {directory}\n{result.text()}")
        text = reports[0].read_text()
        for words in ("has failed", "load of 8 bytes at 0x0", f"device.c:{line_of('the fault')}",
                      f"device.c:{line_of('the call')}", " in inner+", " in nested+"):
            expect(words in text and words in result.out, f"'{words}' is not said\n{text}\n{result.out}")
        cores = sorted(path.name for path in pathlib.Path(directory).glob("*.core"))
        expect(len(cores) == 2 and cores[0].startswith("flexio_dev."), f"core files: {cores}")
        if not shutil.which("gdb"):
            return
        shown = session.call("gdb", "-nx", "-batch", "-ex", "bt", "image", cores[1], cwd=directory)
        for words in ("in inner ", f"device.c:{line_of('the fault')}", "in nested ",
                      f"device.c:{line_of('the call')}"):
            expect(words in shown.out, f"gdb does not say '{words}'\n{shown.text()}")


def in_directory(name):
    def run(session):
        host = PROGRAMS.host(session)
        with tempfile.TemporaryDirectory(prefix="softhca-calls.") as directory:
            result = session.tool("run", "--", str(host), name, cwd=directory)
            expect(result.status == 0, f"status {result.status}\n{result.text()}")
            left = [path.name for path in pathlib.Path(directory).iterdir()]
            expect(not left, f"left: {left}")
    return run


def says(name, *words, env=None):
    """The log of a case says these words so often; None: it does say them."""
    def run(session):
        result = session.tool("run", "--", str(PROGRAMS.host(session)), name, env={**session.env, **(env or {})})
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        for text, times in words:
            count = result.err.count(text)
            expect(count == times or (times is None and count), f"'{text}' is said {count} times\n{result.text()}")
    return run


def levels(session):
    """What is said of a process at each level of the log."""
    result = session.tool("run", "--", str(PROGRAMS.host(session)), "log_levels")
    expect(result.status == 0, f"status {result.status}\n{result.text()}")
    said = [part.count("flexio: ") for part in result.err.split("-- ")[1:]]
    expect(said[0] == 0 and said[1] > said[2], f"lines at error, debug, info: {said}\n{result.text()}")
    expect("flexio: debug: " in result.err and "flexio: error: flexio_log_lvl_set: lvl" in result.err,
           result.text())


def left(session):
    result = session.tool("run", "--", str(PROGRAMS.host(session)), "left")
    expect(result.status == 0 and "ended as an event handler does" in result.err, f"status {result.status}\n{result.text()}")


def cases():
    yield from (("calls: " + title, case(name)) for name, title in CASES)
    yield "calls: one that takes too long is stopped E88", case("too_long", {"SOFTHCA_DPA_CALL_SECONDS": "1"})
    yield "calls: late ones of a program that stood still E88", case("late", {"SOFTHCA_DPA_CALL_SECONDS": "1"})
    yield "calls: with redzones what leaves a buffer of the heap is a fault O283", case(
        "redzones host_call", {"SOFTHCA_DPA_REDZONES": "1"})
    yield "calls: large blocks of the heap, which cost no memory until they are used C56 D61", says(
        "large_blocks", ("DPA: the heap has no room for 536870912 bytes: 768 of its 1024 MiB are taken "
                         "(SOFTHCA_DPA_HEAP_MIB)", 1))
    yield "calls: a heap of a chosen size D61", says(
        "heap_chosen", ("DPA: the heap has no room for 1 bytes: 3000 of its 3000 MiB are taken", 1),
        env={"SOFTHCA_DPA_HEAP_MIB": "3000"})
    yield "calls: no addresses for a heap", says(
        "heap_too_large", ("DPA: there are no addresses for a process with 1024 MiB of heap (SOFTHCA_DPA_HEAP_MIB)", 1))
    yield "calls: a heap of a size that cannot be", says(
        "large_blocks", ("SOFTHCA_DPA_HEAP_MIB is a number of MiB from 1 to 65536, not: 65537", 1),
        env={"SOFTHCA_DPA_HEAP_MIB": "65537"})
    yield "calls: with redzones blocks of any size are looked at", case(
        "large_blocks", {"SOFTHCA_DPA_REDZONES": "1"})
    yield "calls: a core file of a large heap has holes", in_directory("core_of_large_heap")
    yield "calls: an error that is not the program's to report has a code of its own O272", in_directory(
        "illegal_error")
    yield "calls: where core files and reports go O276 O277 O279", in_directory("dump_names")
    yield "calls: calls that never return, and the process goes C53 C54", says(
        "destroyed", ("flexio_process_call: process: another thread of the program destroys it", None),
        ("by itself", 0))
    yield "calls: copies that leave a buffer are done, and told once D69 D70", says(
        "copies_over", ("flexio_host2dev_memcpy: dest_daddr: 8192 bytes at 0x", 1), ("leave the buffer of 2048 bytes at 0x", 1),
        ("flexio_buf_dev_memset: dest_daddr: 2 bytes at 0x", 1), ("leave the buffer of 65536 bytes at 0x", 1),
        ("flexio_host2dev_memcpy: dest_daddr: 8 bytes at 0x", 1), ("begin in no buffer of flexio_buf_dev_alloc", 1),
        ("flexio: error", 3))
    yield "calls: keys of memory of the DPA, also past the end of a buffer D72 D73 D74", says(
        "mkeys", ("the memory of key 0x", 2), (", 1001 bytes at 0x", 1), ("is longer than its buffer", 2))
    yield "calls: a child has no processes of the parent", says(
        "forked", ("flexio_process_call: process: it is of the process ", 2), ("has no function", 0))
    yield "calls: a process has as many threads as it can have", says(
        "crowded", ("process: it can have no more threads than 1024", 3), ("the device refuses", 0))
    yield "calls: one that ends as a handler does", left
    yield "calls: levels of the log C58", levels
    yield "calls: a crash report names the line, and gdb reads the core file O276 O277 O278 O279", reported
    yield "calls: a device without a DPA", without_dpa
    yield "calls: a program is killed in the middle", killed
