# SPDX-License-Identifier: BSD-2-Clause
"""Sources from elsewhere that the compilers must take.  The file sources.tsv has a line for each: the compiler, the
file and the options that its own build gives, separated by tabs, names relative to the directory.  For dpacc,
-Wall -Wextra -Wpedantic -Werror come on top; gcc and g++ must give no warning about a header of ours."""
import pathlib
import shlex
import tempfile

from harness import Skip, expect

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic")
INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"


def device_file(directory, name, options):
    def test(session):
        if not (session.build / "dpacc").exists():
            raise Skip("dpacc is not built (see the configuration's message about the DPA)")
        with tempfile.TemporaryDirectory(prefix="softhca-outside.") as place:
            result = session.call(str(session.build / "dpacc"), name, "--gen-libs", "-hostcc=gcc", "-o", f"{place}/lib",
                                  f"--devicecc-options={','.join((*WARNINGS, '-Werror'))}", *options, cwd=directory)
            expect(result.status == 0 and not result.err, f"status {result.status}\n{result.text()}")
            made = {path.name for path in pathlib.Path(place).iterdir()}
            expect({"lib_device.a", "lib_host.a"} <= made, f"it made {made}")
    return test


def host_file(directory, compiler, name, options):
    def test(session):
        language = ("-x", "c++") if compiler == "g++" else ()
        result = session.call(compiler, "-fsyntax-only", *WARNINGS, f"-I{INCLUDE}", *options, *language, name,
                              cwd=directory)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        ours = [line for line in result.err.splitlines() if line.startswith(str(INCLUDE))]
        expect(not ours, "\n".join(ours))
    return test


def cases(directory):
    table = directory / "sources.tsv"

    def skipped(_):
        raise Skip(f"{table} is not there")

    if not table.is_file():
        yield "sources from elsewhere", skipped
        return
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            compiler, name, *rest = line.split("\t")
            options = [word for column in rest for word in shlex.split(column)]
            yield f"{compiler} {name}", (device_file(directory, name, options) if compiler == "dpacc" else
                                         host_file(directory, compiler, name, options))
