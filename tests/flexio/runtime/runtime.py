# SPDX-License-Identifier: BSD-2-Clause
"""Host programs that are built with dpacc's archives, one in C and one in C++, and run under softhca."""
import pathlib
import tempfile

from harness import Skip, expect

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")

SEVERAL = (
    ("devices", "processes on two devices C47 C51"),
    ("at_once", "processes are made by several threads C60 R320"),
    ("no_leak", "a thousand processes leave nothing behind C52"),
    ("congestion", "congestion control has a clear answer C59 M237"),
    ("windows", "a thread has two windows L228"),
)
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
        build = pathlib.Path(session.build).resolve()
        if not (build / "dpacc").exists():
            raise Skip("dpacc is not built (see the configuration's message about the DPA)")
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
        good(session, build / "dpacc", HERE / f"{name}_device.c", "-o", place / f"{name}.a",
             "-hostcc=gcc", f"--devicecc-options=-O2 -g {' '.join(STRICT)}",
             f"--app-name={name}_app")
        good(session, *compiler, "-g", *STRICT, f"-I{ROOT}/include", f"-I{ROOT}/tests/support",
             f"-DDEV_APP_NAME={name}_app", source, place / f"{name}.a", f"-L{build}/src/flexio",
             f"-Wl,-rpath,{build}/src/flexio", "-lflexio", "-libverbs", "-lmlx5", "-lpthread",
             "-o", place / name)


PROGRAMS = Programs()


def good(session, *argv):
    result = session.call(*map(str, argv))
    expect(result.status == 0, f"status {result.status} of {argv[0]}\n{result.text()}")


def case(program, name):
    def run(session):
        session.run_ok(PROGRAMS.program(session, program, ("gcc", "-std=gnu17")), name)
    return run


def later(session):
    """Its own name, the device's answer through the stream, and a name that nobody has."""
    program = PROGRAMS.program(session, "later", ("g++", "-std=c++20"))
    result = session.run_ok(program)
    expect(result.out.splitlines() == ["found later_app", "device: 40 + 2", "sum 42", "window 1",
                                       "no other application"], result.text())


def cases():
    for program, table in (("threads", CASES), ("several", SEVERAL)):
        yield from (("runtime: " + title, case(program, name)) for name, title in table)
    yield "runtime: a program of generation 25 R316", later
