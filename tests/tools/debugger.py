# SPDX-License-Identifier: BSD-2-Clause
"""gdb does not stop at faults that belong to the device, and at all others it does."""
import pathlib
import re
import shutil
import subprocess

from checkers import SAYS, built
import refused
from harness import Skip, expect, within

GDB = ("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off")
TRIES = 30  # to find the device asleep, which takes it milliseconds
LIMIT = 30
OWN_FAULTS = {
    "SIGSEGV": "return *(volatile int *)64;",
    "SIGBUS": """volatile int *p = mmap(0, 4096, 3, MAP_SHARED, fileno(tmpfile()), 0);
	return *p;""",
}
SEND = "\tMUST(!(errno = ibv_post_send("  # how the line of hello.c begins


def needs_gdb():
    if not shutil.which("gdb"):
        raise Skip("gdb is not there")
    python = subprocess.run([*GDB, "-ex", "python print(1)"], text=True, capture_output=True,
                            check=False)
    if python.stdout.strip() != "1":
        raise Skip("this gdb has no Python")


def line_of_send(program):
    lines = pathlib.Path(program).with_suffix(".c").read_text().splitlines()
    (line,) = [number for number, words in enumerate(lines, 1) if words.startswith(SEND)]
    return line


def before_send(words):
    """A change of the program: these come before the message is sent."""
    def change(text):
        head, tail = text.split(SEND)
        return f"#include <unistd.h>\nvolatile int go;\n{head}\t{words}\n{SEND}{tail}"
    return change


# The device has time to go to sleep.
NAPS = before_send("usleep(300000);")
WAITS = before_send("while (!go) usleep(10000);")


def commands(*lines):
    return [word for line in lines for word in ("-ex", line)]


def gdb(session, program, *lines, options=(), **rest):
    result = session.tool("run", *options, "--", *GDB, *commands(*lines), "--args", *program,
                          limit=300, **rest)
    expect(result.status is not None and "Error in" not in result.err, result.text())
    return result.text()


def stepping(session, program, **rest):
    """Goes over the call; whether the device had a fault there."""
    line = line_of_send(program)
    text = gdb(session, [program], f"break {line}", "run", "next", "info breakpoints", "continue",
               options=("--trace", "doorbell.noticed"), **rest)
    expect("received signal" not in text and SAYS in text and "exited normally" in text, text)
    expect(f"\n{line + 1}\t" in text.split("Num ")[0], f"not on line {line + 1}\n{text}")
    return "fault-" in text


def over_post_send(session):
    needs_gdb()
    with built("gcc", "-O0", change=NAPS) as program:
        expect(any(stepping(session, program) for _ in range(TRIES)), "no fault at a doorbell")


def without_userfaultfd(session):
    """There the device looks at its doorbells, and there are no such faults."""
    needs_gdb()
    with built("gcc", "-O0", change=NAPS) as program:
        expect(not stepping(session, program,
                            preexec_fn=lambda: refused.forbid("userfaultfd")), "a fault")


def into_post_send(session):
    """The library's own functions are no steps of the program's."""
    needs_gdb()
    with built("gcc", "-O0", change=NAPS) as program:
        text = gdb(session, [program], f"break {line_of_send(program)}", "run",
                   "step", "step", "info source", "continue")
        expect("ibv_post_send (qp=" in text and "src/driver" not in text and
               "received signal" not in text and SAYS in text, text)


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def attached(session):
    needs_gdb()
    with built("gcc", "-O0", change=WAITS) as program:
        process = session.background(program)
        expect(within(LIMIT, lambda: name_of(process.pid) == "program"), "it does not start")
        result = session.run(*GDB, "-p", str(process.pid), *commands(
            "set var go = 1", f"break program.c:{line_of_send(program)}", "continue", "next",
            "detach"))
        if "Operation not permitted" in result.err:
            process.kill()
            session.finish(process)
            raise Skip("gdb may not attach")
        expect("hit Breakpoint" in result.out and "received signal" not in result.out and
               "detached" in result.out, result.text())
        end = session.finish(process)
        expect(end.status == 0 and SAYS in end.out, end.text())


def own_fault(name):
    """Where it is; and if the user does not want to know, nothing is said."""
    def test(session):
        needs_gdb()
        with built("gcc", "-O0", "-w", "-include", "stdio.h", "-include",
                   "sys/mman.h", fault=OWN_FAULTS[name]) as program:
            text = gdb(session, [program], "run", "backtrace")
            _, found, where = text.partition(f"received signal {name}")
            expect(found and re.search(r"^#0 .*\bfault \(\)", where, re.MULTILINE), text)
            text = gdb(session, [program], f"handle {name} nostop noprint", "run")
            expect("received" not in text and f"terminated with signal {name}" in text, text)
    return test


def memory_taken_away(program, *before, **variables):
    """The device touches registered memory that the program has taken away."""
    def test(session):
        needs_gdb()
        command = [str(session.build / program[0]), *program[1:]]
        env = {**session.env, **variables}
        text = gdb(session, command, *before, "run", env=env)
        expect("received signal" not in text and "exited normally" in text, text)
        text = gdb(session, command, *before, "set auto-load off", "handle SIGBUS nostop noprint",
                   "handle SIGSEGV nostop print", "run", env=env)
        expect("received signal SIGSEGV" in text, f"there was no fault\n{text}")
    return test


def option(session):
    """`softhca run --gdb`, by hand as it were."""
    needs_gdb()
    script = session.runtime.with_suffix(".input")
    script.write_text("set debuginfod enabled off\nrun\ninfo breakpoints\n")
    try:
        with open(script, encoding="utf-8") as words:
            result = session.tool("run", "--gdb", "--", "/bin/echo", "one", "two three", stdin=words)
    finally:
        script.unlink()
    expect(result.status == 0 and "one two three" in result.out and "SIGSEGV" in result.out,
           result.text())


def option_refuses(session):
    result = session.tool("run", "--gdb", "--", "/nowhere/program")
    expect(result.status == 127 and "no such program" in result.err, result.text())
    result = session.tool("run", "--gdb", "true", env={**session.env, "PATH": "/nowhere"})
    expect(result.status == 127, result.text())


def deleted(session):
    """`delete` takes the user's breakpoints."""
    needs_gdb()
    with built("gcc", "-O0", change=NAPS) as program:
        text = gdb(session, [program], "break main", "run", "delete",
                   f"tbreak {line_of_send(program)}", "continue", "next", "info breakpoints")
        expect("received signal" not in text and "SIGBUS" in text, text)


def cases():
    yield "gdb next over ibv_post_send", over_post_send
    yield "gdb step into ibv_post_send", into_post_send
    yield "gdb without userfaultfd", without_userfaultfd
    yield "gdb attached", attached
    yield from ((f"gdb stops at the program's {name}", own_fault(name)) for name in OWN_FAULTS)
    yield "gdb memory taken away", memory_taken_away(
        ("tests/memory/host", "mlx5_0", "mprotect"), SOFTHCA_MEMORY="packets")
    yield "gdb memory taken away from a checksum", memory_taken_away(
        ("tests/signature/conform", "-d", "mlx5_0", "T000-list-with-memory-that-has-gone"),
        # as if the fault were in a function of ISA-L's without unwind information, which it is on some processors
        "set follow-fork-mode child", "set backtrace limit 1")
    yield "gdb as an option", option
    yield "gdb option refuses", option_refuses
    yield "gdb delete", deleted
