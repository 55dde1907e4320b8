# SPDX-License-Identifier: BSD-2-Clause
"""A directory in which a test compiles, and what it finds there."""
import contextlib
import os
import pathlib
import tempfile

from harness import Skip, expect

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]


class Bench:
    def __init__(self, session, directory):
        self.session = session
        self.directory = pathlib.Path(directory)
        self.build = pathlib.Path(session.build).resolve()
        self.env = {**os.environ, "TMPDIR": str(self.directory / "tmp")}
        (self.directory / "tmp").mkdir()

    def call(self, *argv, **options):
        """Runs a command in the directory."""
        return self.session.call(*map(str, argv), cwd=self.directory,
                                 env={**self.env, **options.pop("env", {})}, **options)

    def good(self, *argv, **options):
        result = self.call(*argv, **options)
        expect(result.status == 0,
               f"status {result.status} of {' '.join(map(str, argv))}\n{result.text()}")
        return result

    def bad(self, *argv, said=(), **options):
        """A command that must fail, with an error that says all of that."""
        result = self.call(*argv, **options)
        expect(result.status not in (0, None) and result.status > 0,
               f"{' '.join(map(str, argv))} should fail; status {result.status}\n{result.text()}")
        for words in said:
            expect(words in result.err, f"'{words}' is not said\n{result.text()}")
        return result

    def dpacc(self, *argv, **options):
        return self.good(self.build / "dpacc", *argv, **options)

    def refused(self, *argv, said=(), **options):
        return self.bad(self.build / "dpacc", *argv, said=said, **options)

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def expect_tidy(self):
        left = os.listdir(self.directory / "tmp")
        expect(not left, f"dpacc leaves {left} behind")


def needs_dpacc(session):
    if not (pathlib.Path(session.build) / "dpacc").exists():
        raise Skip("dpacc is not built (see the configuration's message about the DPA)")


@contextlib.contextmanager
def bench(session, kind=Bench):
    needs_dpacc(session)
    with tempfile.TemporaryDirectory(prefix="softhca-dpacc.") as directory:
        place = kind(session, directory)
        yield place
        place.expect_tidy()


def on_bench(test):
    """A test of a session from one of a bench."""
    def run(session):
        with bench(session) as place:
            test(place)
    return run


class LibraryBench(Bench):
    """One with programs: a stand-in for libflexio takes what archives register."""
    @property
    def host_flags(self):
        return ("-g", "-I", HERE, "-I", ROOT / "include")

    def host(self, *files, compiler="gcc", output="host", flags=()):
        """A host program of these files and the stand-in."""
        self.good(compiler, *self.host_flags, *flags, *files, self.registry, "-o", output)

    @property
    def registry(self):
        return self.build / "tests/flexio/dpacc/libregistry.a"


def on_library_bench(test):
    def run(session):
        if not list((pathlib.Path(session.build) / "src/dpa/device").glob("checked/*.a")):
            raise Skip("the device library is not built")
        with bench(session, LibraryBench) as place:
            test(place)
    return run
