# SPDX-License-Identifier: BSD-2-Clause
"""Programs that others wrote with googletest: their tests, the tables of those that do not pass, and many tests in one process.

A table has a line for each test that does not pass, or for several of one reason: the test's name or "device name", which may
be a glob; FAIL, AT TIMES or NOT RUN; whose the reason is (suite, host, libmlx5, card, softhca); the reason.  A test that its
suite skips is a skipped row, whatever it returns."""
import csv
import fnmatch
import pathlib
import re

from harness import Failure, Skip, expect

HERE = pathlib.Path(__file__).parent
RUN = "[ RUN      ] "
LAST = "[----------] Global test environment tear-down"
END = re.compile(r"^\[ +(OK|FAILED) +\] ([^\s,]+)", re.M)
COLOR = re.compile(r"\x1b\[[0-9;]*m")
SKIP = re.compile(r"^\[ +SKIP(?:PED)? +\] ?(.*)", re.M)


def table(name):
    with open(HERE / f"{name}.tsv") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def row_of(table, device, name):
    """The line of a test, or None."""
    for row in table:
        if fnmatch.fnmatchcase(name, row["test"]) or fnmatch.fnmatchcase(f"{device} {name}", row["test"]):
            return row
    return None


def listed(text):
    """What --gtest_list_tests printed: each test's name, "Suite.Test", and the parameter that stands behind a #."""
    suite = ""
    for line in text.splitlines():
        word, _, parameter = line.partition("#")
        if not line.startswith(" "):
            suite = word.strip()
        elif suite.endswith("."):
            yield suite + word.strip(), parameter.partition("GetParam() = ")[2]


def judge(row, outcome, text):
    """What a test's row in its table says of its outcome."""
    wanted = row["outcome"] if row else "PASS"
    if outcome == "SKIP":
        raise Skip(text)
    if wanted == "FAIL":
        expect(outcome == "FAIL", "passes now: take it out of the table")
    elif wanted == "AT TIMES" and outcome == "FAIL":
        raise Skip(f"failed, as it does at times: {row['reason']}")
    else:
        expect(outcome == "PASS", text)


def left_out(row):
    def test(_):
        raise Skip(f"{row['whose']}: {row['reason']}")
    return test


class Batch:
    """Tests that run in one process.  If one of them ends it, or has no end, those behind it run in another process."""

    def __init__(self, start, names, limit):
        """`start` makes a session run a filter: the program's Result."""
        self.start, self.names, self.limit = start, names, limit
        self.found = {}

    def outcome(self, session, name):
        """PASS, FAIL or SKIP, with what the test printed; for SKIP, with the suite's reason."""
        while name not in self.found:
            self.go_on(session)
        return self.found[name]

    def go_on(self, session):
        left = [name for name in self.names if name not in self.found]
        try:
            result = self.start(session, ":".join(left), self.limit)
            text, end = result.out, f"the process ended with status {result.status}\n{result.err[-2000:]}"
        except Failure as failure:  # no end
            text, end = str(failure), f"no end after {self.limit} s"
        sections = COLOR.sub("", text).partition(LAST)[0].split(RUN)[1:]
        for section in sections:
            name = re.match(r"[^\s,]*", section)[0]
            ended = END.search(section)
            skipped = SKIP.search(section)
            if ended and ended[1] == "FAILED":
                self.found[name] = "FAIL", section[-4000:]
            elif skipped:
                self.found[name] = "SKIP", skipped[1]
            elif ended:
                self.found[name] = "PASS", ""
            else:
                self.found[name] = "FAIL", f"{end}\n{section[-4000:]}"
        if not self.found.keys() & left:
            self.found.update({name: ("FAIL", f"{end}\n{text[-4000:]}") for name in left})


def rows(suite, device, start, names, limit, expected):
    """The cases of tests that run in one process, as far as their table lets them."""
    found = {name: row_of(expected, device, name) for name in names}
    unwanted = {name for name, row in found.items() if row and row["outcome"] == "NOT RUN"}
    batch = Batch(start, [name for name in names if name not in unwanted], limit)
    for name, row in found.items():
        def test(session, name=name, row=row):
            judge(row, *batch.outcome(session, name))
        yield f"{suite} {device}: {name}", left_out(row) if name in unwanted else test
