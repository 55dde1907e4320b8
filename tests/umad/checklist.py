# SPDX-License-Identifier: BSD-2-Clause
"""The statements of checklist.tsv, once by open, ioctl, write and read, once by libibumad."""
import pathlib

import nets
from harness import expect
from subnet import Subnet

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = {"bare calls": "checklist_raw", "libibumad": "checklist_lib"}
HOSTS = {"ports": "B", "switch": "S1"}
FAILED = set()  # numbers of sections in which a statement has failed


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


def section(program, name):
    """Where one has failed, those that come after it get little time: a daemon that answers nothing
    would hold all of them up."""
    def test(session):
        hurry = ["--hurry"] if FAILED else []
        with Subnet(session, nets.router()) as subnet:
            for place, host in HOSTS.items():
                numbers = [str(n) for n, s, p in statements() if (s, p) == (name, place)]
                if not numbers:
                    continue
                result = subnet.run(host, path_of(session, PROGRAMS[program]), *hurry, *numbers)
                FAILED.update(numbers if result.status else ())
                expect(result.status == 0, f"{result.out.splitlines()[:1]}\n{result.text()}")
    return test


def cases():
    sections = list(dict.fromkeys(section for _, section, _ in statements()))
    return ([("checklist: every statement has its functions", every_statement_has_its_functions)] +
            [(f"checklist: {name}, by {program}", section(program, name))
             for program in PROGRAMS for name in sections])
