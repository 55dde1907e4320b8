# SPDX-License-Identifier: BSD-2-Clause
"""gdb and valgrind on programs whose device code calls, is activated, and fails."""
import pathlib
import shutil
import tempfile

from faults import HERE, PROGRAMS, line_of, ran, report_of
from harness import Skip, expect
from hosts import good

GDB = ("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set breakpoint pending on")
FOUND = 9  # the status with which valgrind ends a program that has a fault
# A program that has the debuggers' names itself, as one with LLVM in it.
OWN_NAMES = HERE / "own_names.c"


def needs(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not there")


def commands(*lines):
    return [word for line in lines for word in ("-ex", line)]


def says(text, *wanted):
    for words in wanted:
        expect(words in text, f"'{words}' is not said\n{text}")


def gdb(session, host, case, *lines, env=None):
    """In a directory of its own, for the program's files."""
    needs("gdb")
    with tempfile.TemporaryDirectory(prefix="softhca-gdb.") as directory:
        result = session.run(*GDB, *commands(*lines), "--args", host, case, cwd=directory,
                             limit=300, env={**session.env, **(env or {})})
    expect(result.status is not None and "Error in" not in result.err, result.text())
    return result.text()


def by_name(options):
    """Stops in a function of the device, shows where it was called from and what it has; and goes on."""
    def run(session):
        text = gdb(session, PROGRAMS.host(session, options=options), "all_three", "break inner", "run",
                   "backtrace", "info args", "delete", "continue")
        says(text, "hit Breakpoint 1, inner (addr=0, depth=5) at ", line_of("inner"), "in nested (addr=0) at ",
             line_of("nested"), "exited normally")
    return run


def fault(session):
    """At a fault of device code gdb stops where it is, as at one of the host's."""
    text = gdb(session, PROGRAMS.host(session, "unchecked"), "all_three", "run", "backtrace", "continue")
    says(text, "received signal SIGSEGV", "inner (addr=0, depth=5) at ", line_of("inner"),
         line_of("nested"), "exited normally")


def refused(session):
    """What checked code is refused is no signal; there is a function to stop at."""
    text = gdb(session, PROGRAMS.host(session), "all_three", "break dpa_debugger_stop", "run", "backtrace",
               "continue")
    says(text, "dpa_debugger_stop ()", "in inner (", line_of("inner"), "exited normally")


def breakpoint_of_code(session):
    """gdb stops where device code has a breakpoint, and the code goes on behind it."""
    text = gdb(session, PROGRAMS.host(session), "breakpoint_goes_on", "run", "backtrace", "continue")
    says(text, "received signal SIGTRAP", "breakpoint (arg=16) at ", "exited normally")


def stripped(session):
    """Names are left without debug information."""
    text = gdb(session, PROGRAMS.host(session, options="-g0"), "all_three", "break inner", "run",
               "backtrace", "continue")
    says(text, "in inner ()", "in nested ()", "exited normally")
    expect("device.c" not in text, text)


def own_names(session):
    """A library's functions of the debuggers' names, behind ours, are its own, and gdb hears us all the same."""
    host = PROGRAMS.host(session)
    with tempfile.TemporaryDirectory(prefix="softhca-names.") as directory:
        library = pathlib.Path(directory) / "libown.so"
        good(session, "gcc", "-g", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", OWN_NAMES, "-o", library)
        env = {"LD_PRELOAD": str(library)}
        result = session.run(host, "all_three", cwd=directory, env={**session.env, **env})
        expect(result.status == 0 and "own names: 1 call, 0 files\n" in result.out, result.text())
        text = gdb(session, host, "all_three", "break inner", "run", "backtrace", "delete", "continue", env=env)
        says(text, "hit Breakpoint 1, inner (addr=0, depth=5) at ", "exited normally")


def stopped(session):
    """Device code is stopped by a signal, at which gdb does not stop."""
    text = gdb(session, PROGRAMS.host(session), "in_handler", "run")
    says(text, "exited normally")
    expect("received signal" not in text, text)


def attached(session):
    """A program that runs."""
    needs("gdb")
    process = session.background(PROGRAMS.host(session), "waits")
    try:
        expect(process.stdout.readline() == "spinning\n", "it does not begin")
        result = session.call(*GDB, "-p", str(process.pid), *commands("thread apply all backtrace", "detach"),
                              limit=300)
    finally:
        process.kill()
        session.finish(process)
    if "Operation not permitted" in result.err:
        raise Skip("gdb may not attach")
    says(result.out, "spin (words=", line_of("spin"))


def core(name, file_name, *wanted):
    """A core file shows all threads with the names of their functions."""
    def run(session):
        needs("gdb")
        with ran(session, [name]) as (directory, _):
            (file,) = directory.glob("*.core")
            shown = session.call(*GDB, "-ex", "info threads", "-ex", "thread apply all backtrace",
                                 f"{file_name}.image", str(file), cwd=directory)
            says(shown.out, *wanted)
            expect("0x0000000000000000 in ?? ()" not in shown.out.split("Thread ")[0], shown.out)
            says(report_of(directory, file_name), "has failed")
    return run


def valgrind(mode, kinds):
    """None of the device's faults are the program's; the only memory that is lost is in libibverbs, possibly."""
    def run(session):
        needs("valgrind")
        program = ("valgrind", "-q", f"--error-exitcode={FOUND}", "--leak-check=full",
                   "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite")
        with ran(session, kinds, mode, program=program, limit=600) as (_, result):
            expect("==" not in result.err, result.err)
    return run


def cases():
    yield "debug: gdb stops in device code by name", by_name("-g")
    yield "debug: gdb stops in device code with the debug information of DWARF 4", by_name("-gdwarf-4")
    yield "debug: gdb stops where device code fails", fault
    yield "debug: gdb stops where an access is refused", refused
    yield "debug: gdb stops at a breakpoint of the code's", breakpoint_of_code
    yield "debug: gdb does not stop where device code is stopped", stopped
    yield "debug: gdb knows functions without debug information", stripped
    yield "debug: gdb attached to a program", attached
    yield "debug: a program with the debuggers' names", own_names
    yield "debug: a core file has all threads O276 O279", core(
        "in_handler", "in_handler", "handler_fails (addr=0) at ", line_of("handler"), "in handle (", "spin (words=",
        line_of("spin"), "ask (words=", line_of("ask"))
    yield "debug: a core file of a process whose error handler runs", core(
        "endless_handler", "endless", "inner (", line_of("inner"), "in nested (", line_of("nested"))
    yield "debug: valgrind finds no fault in calls, activations and failures", valgrind(
        "checked", ["all_three"])
