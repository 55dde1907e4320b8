# SPDX-License-Identifier: BSD-2-Clause
"""Bad input of the whole interface: a program with a row for each function, argument and field (bad_rows.py)."""
import bad_rows
import calls
from harness import expect
from hosts import ROOT, build_of, good, link_flags


def bad_input(session):
    host = calls.PROGRAMS.host(session)
    place = host.parent
    build = build_of(session)
    count, rows = bad_rows.write(place / "bad_rows.c")
    good(session, "gcc", "-g", "-w", "-D_GNU_SOURCE", f"-I{calls.HERE}", f"-I{ROOT}/include",
         f"-I{ROOT}/tests/support", calls.HERE / "bad.c", place / "bad_rows.c", place / "device.a",
         *link_flags(build), "-o", place / "bad")
    result = session.run(str(place / "bad"), cwd=place)
    expect(result.status == 0 and f"{rows} rows, 0 wrong" in result.out, f"status {result.status}\n{result.text()}")
    return f"{count} functions, {rows} rows"


def cases():
    return [("calls: bad input of every function, argument and field", bad_input)]
