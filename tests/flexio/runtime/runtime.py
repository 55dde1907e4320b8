# SPDX-License-Identifier: BSD-2-Clause
"""Host programs that are built with dpacc's archives, one in C and one in C++, and run under softhca."""
import pathlib
import re
import tempfile

from harness import expect
from hosts import ROOT, build_of, good, link_flags

HERE = pathlib.Path(__file__).resolve().parent
CROWD_LIMIT = 240  # seconds; it waits for less, several times
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")

SEVERAL = (
    ("devices", "processes on two devices C47 C51"),
    ("at_once", "processes are made by several threads C60 R320"),
    ("no_leak", "a thousand processes leave nothing behind C52"),
    ("objects_left", "a process goes with all that it has C54"),
    ("two_apps", "two applications in one program B27 B29 B31"),
    ("windows", "a thread has two windows L228"),
)
# Programs with other device code than their own.
APPS = {"several": ("several", "threads")}
CASES = (
    ("locks", "a lock keeps sixteen threads apart P284"),
    ("atomics", "atomics between threads P292"),
    ("messages", "fences order what one thread passes to another P285"),
)


class Programs:
    """The host programs, each built when it is first wanted."""
    def __init__(self):
        self.directory, self.built = None, set()

    def program(self, session, name, compiler):
        build = build_of(session)
        if not self.directory:
            self.directory = tempfile.TemporaryDirectory(prefix="softhca-runtime.")
        place = pathlib.Path(self.directory.name)
        if name not in self.built:
            self.compile(session, build, place, name, compiler)
            self.built.add(name)
        return str(place / name)

    @staticmethod
    def compile(session, build, place, name, compiler):
        source = next(HERE.glob(f"{name}_host.*"))
        apps = APPS.get(name, (name,))
        for app in apps:
            good(session, build / "dpacc", HERE / f"{app}_device.c", "-o", place / f"{app}.a",
                 "-hostcc=gcc", f"--devicecc-options=-O2 -g {' '.join(STRICT)}",
                 f"--app-name={app}_app")
        good(session, *compiler, "-g", *STRICT, f"-I{ROOT}/include", f"-I{ROOT}/tests/support",
             f"-DDEV_APP_NAME={name}_app", source, *(place / f"{app}.a" for app in apps),
             *link_flags(build), "-o", place / name)


PROGRAMS = Programs()


def case(program, name):
    def run(session):
        session.run_ok(PROGRAMS.program(session, program, ("gcc", "-std=gnu17")), name)
    return run


def congestion(session):
    """Where it cannot be it is refused, in words that name the field."""
    program = PROGRAMS.program(session, "several", ("gcc", "-std=gnu17"))
    result = session.run_ok(program, "congestion")
    for words in ("flexio_process_create: process_attr->en_pcc", "flexio_outbox_create: fattr->en_pcc"):
        expect(words in result.err, f"'{words}' is not said\n{result.text()}")


def sample(session):
    program = PROGRAMS.program(session, "sample", ("gcc", "-std=gnu17"))
    for device in ("mlx5_0", "mlx5_1"):
        result = session.run_ok(program, device, "2", "3")
        expect(sorted(result.out.splitlines()) == ["Calculate: 2 + 3 = 5", "Result: 5"], result.text())


def sample_fails(session):
    """On its way out it destroys what it has not got, as NVIDIA's does."""
    program = PROGRAMS.program(session, "sample", ("gcc", "-std=gnu17"))
    result = session.tool("run", "--", program, "mlx5_77", "2", "3")
    expect(result.status == 1 and "no device mlx5_77" in result.err and not result.out,
           f"status {result.status}\n{result.text()}")
    result = session.tool("run", "--model=connectx-7", "--", program, "mlx5_0", "2", "3")
    expect(result.status == 1 and "has no DPA" in result.err and "flexio_msg_stream_destroy" in result.err
           and not result.out, f"status {result.status}\n{result.text()}")


def later(session):
    """Its own name, the device's answer through the stream, and a name that nobody has."""
    program = PROGRAMS.program(session, "later", ("g++", "-std=c++20"))
    result = session.run_ok(program)
    # a thread writes what the device says, beside what the program prints
    said = [line for line in result.out.splitlines() if line.startswith(("device: ", "MEASURED: "))]
    expect(len(said) == 2 and said[0] == "device: 40 + 2" and
           re.fullmatch(r"MEASURED: instructions/cycles: \d+/\d+", said[1]), result.text())
    expect([line for line in result.out.splitlines() if line not in said] == [
        "found later_app", "others", "sum 42", "window 1", "no other application"], result.text())


def crowd(session):
    """190 of 256 threads never end, on two processors; prints how fast all the rest is."""
    program = PROGRAMS.program(session, "crowd", ("gcc", "-std=gnu17"))
    result = session.run_ok(program, limit=CROWD_LIMIT)
    lines = result.out.splitlines()
    expect(len(lines) == 7, result.text())
    print(f"        190 of 256 threads spin: {', '.join(lines)}", flush=True)


def cases():
    for program, table in (("threads", CASES), ("several", SEVERAL)):
        yield from (("runtime: " + title, case(program, name)) for name, title in table)
    yield "runtime: congestion control of an InfiniBand port is refused C59 M237", congestion
    yield "runtime: a program in the shape of the RPC sample R312", sample
    yield "runtime: the same without a device, and without a DPA R313", sample_fails
    yield "runtime: those who spin leave room for all others", crowd
    yield "runtime: a program of generation 25 R316", later
