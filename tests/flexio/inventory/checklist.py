# SPDX-License-Identifier: BSD-2-Clause
"""The statements of tests/flexio/checklist.tsv, and the tests that prove them.

A case of a suite of tests/flexio has the statements in its name, by area and number: "Q298 --version",
"calls E77 E84-86".  A unit test has them in a comment: "Flex IO statements: 66, 68-70"."""
import collections
import pathlib
import re
import subprocess
import sys

from harness import expect

FLEXIO = pathlib.Path(__file__).resolve().parents[1]
TESTS = FLEXIO.parent
COUNT = 320


def statements():
    """Number -> (area, part of the work, text)."""
    table = {}
    for line in (FLEXIO / "checklist.tsv").read_text().splitlines():
        if not line.startswith("#"):
            number, area, part, text = line.split("\t")
            table[int(number)] = (area, int(part), text)
    return table


def named(text):
    """(area, number) of each statement that a text names."""
    for area, first, last in re.findall(r"\b([A-R])(\d{1,3})(?:-(\d{1,3}))?\b", text):
        for number in range(int(first), int(last or first) + 1):
            yield area, number


def commented(source):
    """(area, number) of each statement that a comment of a C source lists; areas may be left out."""
    table = statements()
    for line in re.findall(r"Flex IO statements?: ([A-R0-9 ,*\n-]+)", source):
        for area, first, last in re.findall(r"\b([A-R]?)(\d{1,3})(?:-(\d{1,3}))?\b", line):
            for number in range(int(first), int(last or first) + 1):
                yield area or table.get(number, "?")[0], number


def listed(found):
    """A list like "77, 84-86" of numbers."""
    pieces, found = [], sorted(found)
    while found:
        end = 1
        while end < len(found) and found[end] == found[0] + end:
            end += 1
        pieces.append(f"{found[0]}-{found[end - 1]}" if end > 1 else f"{found[0]}")
        found = found[end:]
    return ", ".join(pieces)


def names():
    """Suite and name of every case."""
    for run in sorted(FLEXIO.glob("*/run")):
        out = subprocess.run([sys.executable, "-B", str(run), "--list"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        for name in out.splitlines():
            yield run.parent.name, name


def proofs():
    """(area, number) -> the tests that prove the statement."""
    found = collections.defaultdict(list)
    for suite, name in names():
        for statement in named(name):
            found[statement].append(f"{suite}: {name}")
    for path in sorted(TESTS.rglob("*.c")):
        for statement in commented(path.read_text()):
            found[statement].append(str(path.relative_to(TESTS.parent)))
    return found


def report(options):
    """Writes the table of all statements with their tests; a row for each part's that have none, which
    fails.  1 if there are such, else 0."""
    if options.pattern or options.list:
        return 0
    status = 0
    found, table = proofs(), statements()
    with open(pathlib.Path(options.build) / "flexio-checklist.tsv", "w") as out:
        for number, (area, part, text) in sorted(table.items()):
            proof = "; ".join(found.get((area, number), ["missing"]))
            print(number, area, part, text, proof, sep="\t", file=out)
    for part in (1, 2):
        missing = [n for n, row in table.items() if row[1] == part and (row[0], n) not in found]
        if not missing:
            continue
        name = f"{len(missing)} statements of part {part} have no test"
        status = 1
        print(f"        FAIL {name}: {listed(missing)}", flush=True)
        if options.results:
            with open(options.results, "a") as results:
                print("flexio-inventory", name, "FAIL", listed(missing), sep="\t", file=results)
    return status


def whole(session):
    """Every statement stands in the table once, and tests name statements that are there."""
    table = statements()
    expect(sorted(table) == list(range(1, COUNT + 1)), f"{len(table)} statements")
    expect({row[1] for row in table.values()} == {1, 2}, "parts")
    expect(list(named("a B3 C5-7, D9")) == [("B", 3), ("C", 5), ("C", 6), ("C", 7), ("D", 9)],
           "names of statements")
    expect(list(commented("/* Flex IO statements: 3, B21-22,\n * 43 (and more) */")) ==
           [("A", 3), ("B", 21), ("B", 22), ("C", 43)], "statements in a comment")
    expect(listed([7, 3, 6, 5]) == "3, 5-7", "lists of numbers")
    unknown = [f"{area}{number}" for area, number in proofs()
               if table.get(number, " ")[0] != area]
    expect(not unknown, f"tests name statements that are not there: {' '.join(sorted(unknown))}")


def cases():
    return [("checklist: the table is whole", whole)]
