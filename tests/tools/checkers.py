# SPDX-License-Identifier: BSD-2-Clause
"""Sanitizers and valgrind: the program finds its device, the checker finds the program's faults,
and none of the device's."""
import contextlib
import itertools
import pathlib
import shutil
import subprocess
import tempfile

from harness import Skip, expect

HELLO = pathlib.Path(__file__).resolve().parents[2] / "examples/hello/hello.c"
SANITIZERS = ("address", "undefined", "leak", "thread")
SAYS = "hello by RDMA"
FOUND = 9  # the status with which valgrind ends a program that has a fault

# For each checker a fault, and what it says of it.
FAULTS = {
    "address": ("char *volatile p = malloc(8); free(p); return *(volatile char *)p;",
                "heap-use-after-free"),
    "undefined": ("volatile int sum = 0x7fffffff; sum = sum + 1; return sum > 0;", "signed integer overflow"),
    "leak": ("char *volatile p = malloc(8); p = 0; return p != 0;", "detected memory leaks"),
    "thread": ("pthread_t t; pthread_create(&t, 0, add, 0); shared++; return pthread_join(t, 0);",
               "data race"),
    "valgrind": ("char *volatile p = malloc(8); free(p); return *(volatile char *)p;",
                 "Invalid read"),
}
BEFORE_MAIN = """#include <pthread.h>
#include <stdlib.h>
static int shared;
static void *add(void *unused)
{
	shared++;
	return unused;
}
static int fault(void)
{
	(void)add;
	%s
}
"""


@contextlib.contextmanager
def built(compiler, *options, fault=None, change=None):
    """The program, with a fault at its end if there is one to be, or otherwise changed.  Skip: the
    compiler or a library of it is not there."""
    if not shutil.which(compiler):
        raise Skip(f"{compiler} is not there")
    text = HELLO.read_text()
    if fault:
        text = BEFORE_MAIN % fault + text.replace("\treturn 0;\n}", "\treturn fault() ? 0 : 0;\n}")
    if change:
        text = change(text)
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        source = pathlib.Path(directory) / "program.c"
        source.write_text(text)
        program = source.with_suffix("")
        made = subprocess.run([compiler, "-g", *options, str(source), "-o", str(program),
                               "-libverbs", "-pthread"], capture_output=True, text=True, check=False)
        if made.returncode and "cannot find" in made.stderr:
            raise Skip(f"{compiler} {' '.join(options)}: {made.stderr.splitlines()[0]}")
        expect(made.returncode == 0, made.stderr)
        yield str(program)


def says_hello(session, program, env=None):
    result = session.run(program, env={**session.env, **(env or {})}, limit=300)
    expect(result.status == 0 and SAYS in result.out, f"status {result.status}\n{result.text()}")


def finds_fault(session, kind, *command):
    """A program with a fault of its own: the checker still says so."""
    result = session.run(*command, limit=300)
    expect(result.status != 0 and FAULTS[kind][1] in result.err,
           f"the fault is not found, status {result.status}\n{result.text()}")


def sanitizer(compiler, kind, *options):
    def test(session):
        with built(compiler, f"-fsanitize={kind}", *options) as program:
            says_hello(session, program)
        with built(compiler, f"-fsanitize={kind}", *options, "-O0", "-fno-sanitize-recover=all",
                   fault=FAULTS[kind][0]) as program:
            finds_fault(session, kind, program)
    return test


def library_preloaded(session):
    """The run-time library before a program that was built without it."""
    with built("gcc") as program:
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        if "/" not in library:
            raise Skip("libasan is not there")
        says_hello(session, program, {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"})


def options_of_user(session):
    """The user's own ASAN_OPTIONS stand beside ours."""
    with built("gcc", "-fsanitize=address") as program:
        says_hello(session, program, {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1"})


def valgrind(device):
    def test(session):
        if not shutil.which("valgrind"):
            raise Skip("valgrind is not there")
        program = str(session.build / "tests/traffic/verify")
        address = ("--gid-index", "0") if device == "mlx5_1" else ()
        result = session.run("valgrind", "-q", f"--error-exitcode={FOUND}", program, "--device",
                             device, *address, "--ops", "60", limit=600)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        # There it says which system calls it does not know, too.
        expect("==" not in result.err and "--" not in result.err, result.err)
    return test


def valgrind_finds_fault(session):
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not there")
    with built("gcc", "-O0", fault=FAULTS["valgrind"][0]) as program:
        finds_fault(session, "valgrind", "valgrind", "-q", f"--error-exitcode={FOUND}", program)


def cases():
    yield from ((f"{compiler} {kind}", sanitizer(compiler, kind))
                for compiler, kind in itertools.product(("gcc", "clang"), SANITIZERS))
    yield "gcc address, static", sanitizer("gcc", "address", "-static-libasan")
    yield "libasan preloaded", library_preloaded
    yield "ASAN_OPTIONS of the user", options_of_user
    yield from ((f"valgrind {device}", valgrind(device)) for device in ("mlx5_0", "mlx5_1"))
    yield "valgrind finds a fault", valgrind_finds_fault
