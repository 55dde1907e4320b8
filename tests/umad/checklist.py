# SPDX-License-Identifier: BSD-2-Clause
"""The statements of checklist.tsv, once by open, ioctl, write and read, once by libibumad."""
import pathlib

from harness import expect

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = {"bare calls": "checklist_raw", "libibumad": "checklist_lib"}


def statements():
    """Rows (number, section, place)."""
    rows = (line.split("\t") for line in (HERE / "checklist.tsv").read_text().splitlines()
            if not line.startswith("#"))
    return [(int(number), section, place) for number, section, place, _ in rows]


def path_of(session, program):
    return str(pathlib.Path(session.build).resolve() / "tests/umad" / program)


def every_statement_has_its_functions(session):
    """All 68, in order, and each in both programs."""
    numbers = [number for number, _, _ in statements()]
    expect(numbers == list(range(1, 69)), f"checklist.tsv has {numbers}")
    for program in PROGRAMS.values():
        result = session.call(path_of(session, program), "--list")
        listed = sorted(int(line) for line in result.out.split())
        expect(listed == numbers, f"{program} has {listed}")


def cases():
    return [("checklist: every statement has its functions", every_statement_has_its_functions)]
