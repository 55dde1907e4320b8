# SPDX-License-Identifier: BSD-2-Clause
"""Another libibumad than the system's, if the directory has one that is built (libibumad.so.3 there, in lib or in build/lib, as
rdma-core's own build leaves it): the tests of tests/umad that go through it, and the programs beside it (bin), if there
are any, in place of the system's."""
import os
import pathlib
import re
import sys

from harness import Skip, expect

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "umad"))

import checklist  # noqa: E402
import diags  # noqa: E402
import names  # noqa: E402
import nets  # noqa: E402
import opensm  # noqa: E402
import reference  # noqa: E402
from subnet import Subnet  # noqa: E402

LIBRARY = "libibumad.so.3"
PLACES = ("", "lib", "build/lib")
WANTED = re.compile(r"checklist: .*, by libibumad|reference: (small|torus), |diags: (?!every tool)|"
                    r"opensm: (minhop|the built-in SM|two)|names: ")


def library(directory):
    return next((directory / place for place in PLACES if (directory / place / LIBRARY).exists()), None)


def environment(session, place):
    env = {**session.env, "LD_LIBRARY_PATH": str(place)}
    programs = place.parent / "bin"
    if not (programs / "ibnetdiscover").exists():
        return env
    # Scripts among them look for the others by IBPATH.
    return {**env, "PATH": os.pathsep.join([str(programs), env["PATH"]]), "IBPATH": str(programs)}


def with_it(place, test):
    def run(session):
        before = session.env
        session.env = environment(session, place)
        try:
            test(session)
        finally:
            session.env = before
    return run


def is_taken(place):
    """A program under softhca run has this library, and no other of the name, in its memory."""
    code = "import ctypes; u = ctypes.CDLL('libibumad.so.3'); assert u.umad_init() == 0; " \
           "assert u.umad_open_port(None, 0) >= 0; print(open('/proc/self/maps').read())"

    def test(session):
        with Subnet(session, nets.small()) as subnet:
            maps = subnet.ok("H1", sys.executable, "-c", code)
        found = set(re.findall(r"/\S*libibumad\S*", maps))
        expect(found == {str((place / LIBRARY).resolve())}, f"{found}")
    return test


def cases(directory):
    place = library(directory)

    def skipped(_):
        raise Skip(f"{LIBRARY} is not there")

    if not place:
        yield "another libibumad", skipped
        return
    yield "libibumad: is taken", with_it(place, is_taken(place))
    for module in (reference, checklist, diags, opensm, names):
        for name, test in module.cases():
            if WANTED.match(name):
                yield f"libibumad: {name}", with_it(place, test)
