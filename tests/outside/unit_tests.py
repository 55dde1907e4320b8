# SPDX-License-Identifier: BSD-2-Clause
"""google/rdma-unit-test, if the directory has it built (programs in rdma-unit-test/): each of its tests, in a process of its
own, on the Ethernet device, as its addresses are GIDs.  rdma-unit-test.tsv beside this file has a line for each test that
does not pass: name, FAIL or NOT RUN, whose the reason is (suite, libmlx5, card, softhca) and the reason.  docs/fidelity.md
sums it up."""
import csv
import os
import pathlib
import subprocess

from harness import Skip, expect
from pairs import ROCE

TABLE = pathlib.Path(__file__).with_name("rdma-unit-test.tsv")
LIMIT = 1200  # seconds for one test; two send two million messages one after the other
# These wait for a request that nobody answers, with 5 retries after 1.07 s each (timeout 18).  The suite waits for 2 s, unless
# it is told to wait several times as long.
UNANSWERED = ("QpStateTest.PostRecvInit", "AdvancedLoopbackTest.RcSendToUd", "ResponderQpStateTest/", "RemoteRcQpStateTest/")
LONGER = "--completion_wait_multiplier=6"
SKIPPED = "[  SKIPPED ]"


def expected():
    with open(TABLE) as table:
        return {row["test"]: row for row in csv.DictReader(table, delimiter="\t")}


def names(program):
    """The tests of a program of googletest: "Suite.Test"; what stands behind # is a parameter."""
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        word = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = word
        elif word:
            yield suite + word


def one(program, name, outcome):
    def test(session):
        longer = [LONGER] if name.startswith(UNANSWERED) else []
        result = session.run(str(program), f"--device_name={ROCE}", f"--gtest_filter={name}", *longer, limit=LIMIT)
        if SKIPPED in result.out:
            raise Skip("rdma-unit-test leaves it out for mlx5")
        if outcome == "FAIL":
            expect(result.status != 0, "passes now: take it out of rdma-unit-test.tsv")
        else:
            expect(result.status == 0, f"status {result.status}\n{result.text()[-4000:]}")
    return test


def left_out(row):
    def test(_):
        raise Skip(f"{row['whose']}: {row['reason']}")
    return test


def cases(directory):
    place = directory / "rdma-unit-test"
    programs = sorted(p for p in place.glob("*") if p.is_file() and os.access(p, os.X_OK)) if place.is_dir() else []

    def skipped(_):
        raise Skip("rdma-unit-test/ is not there")

    if not programs:
        yield "rdma-unit-test", skipped
        return
    table = expected()
    for program in programs:
        for name in names(program):
            row = table.get(name, {"outcome": "PASS"})
            test = left_out(row) if row["outcome"] == "NOT RUN" else one(program, name, row["outcome"])
            yield f"rdma-unit-test: {name}", test
