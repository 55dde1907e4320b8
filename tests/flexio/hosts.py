# SPDX-License-Identifier: BSD-2-Clause
"""Host programs of these suites: built with the tree's dpacc and libflexio when they are first wanted."""
import pathlib
import tempfile

from harness import Skip, expect

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_of(session):
    """The build directory, if it has a compiler for the DPA."""
    build = pathlib.Path(session.build).resolve()
    if not (build / "dpacc").exists():
        raise Skip("dpacc is not built (see the configuration's message about the DPA)")
    return build


def good(session, *argv):
    """A command that has to succeed."""
    result = session.call(*map(str, argv))
    expect(result.status == 0, f"status {result.status} of {argv[0]}\n{result.text()}")


def link_flags(build):
    """What a host program is linked with."""
    return (f"-L{build}/src/flexio", f"-Wl,-rpath,{build}/src/flexio", "-lflexio", "-libverbs", "-lmlx5", "-lpthread")


class HostProgram:
    """The program of one folder: device.c becomes the application NAME_app, where NAME is the folder's, and
    the sources are the host's part."""
    dpacc = ()  # more options of dpacc

    def __init__(self, here, sources, *device_options):
        self.here, self.sources, self.device_options = here, sources, device_options
        self.directory = None

    def host(self, session):
        build = build_of(session)
        if not self.directory:
            self.directory = tempfile.TemporaryDirectory(prefix=f"softhca-{self.here.name}.")
            self.compile(session, build, pathlib.Path(self.directory.name))
        return pathlib.Path(self.directory.name) / "host"

    def compile(self, session, build, place):
        options = " ".join(("-O1 -g -Wall -Wextra", f"-I{self.here}", *self.device_options))
        good(session, build / "dpacc", *self.dpacc, self.here / "device.c", "-o", place / "device.a", "-hostcc=gcc",
             f"--devicecc-options={options}", f"--app-name={self.here.name}_app")
        good(session, "gcc", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{ROOT}/include",
             f"-I{ROOT}/tests/support", f"-I{ROOT}/src", *(self.here / source for source in self.sources),
             place / "device.a", *link_flags(build), "-o", place / "host")
