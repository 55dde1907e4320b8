# SPDX-License-Identifier: BSD-2-Clause
"""google/rdma-unit-test, if the directory has it built (programs in rdma-unit-test/): each of its tests, in a process of its
own, on the Ethernet device, as its addresses are GIDs.  rdma-unit-test.tsv beside this file has a line for each test that
does not pass: name, FAIL or NOT RUN, whose the reason is (suite, libmlx5, card, softhca) and the reason.  docs/fidelity.md
sums it up."""
import os
import subprocess

import googletests
from harness import Skip
from pairs import ROCE

LIMIT = 1200  # seconds for one test; two send two million messages one after the other
# These wait for a request that nobody answers, with 5 retries after 1.07 s each (timeout 18).  The suite waits for 2 s, unless
# it is told to wait several times as long.
UNANSWERED = ("QpStateTest.PostRecvInit", "AdvancedLoopbackTest.RcSendToUd", "ResponderQpStateTest/", "RemoteRcQpStateTest/")
LONGER = "--completion_wait_multiplier=6"
SKIPPED = "[  SKIPPED ]"


def tests(program):
    text = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    return [name for name, _ in googletests.listed(text)]


def one(program, name, row):
    def test(session):
        longer = [LONGER] if name.startswith(UNANSWERED) else []
        result = session.run(str(program), f"--device_name={ROCE}", f"--gtest_filter={name}", *longer, limit=LIMIT)
        if SKIPPED in result.out:
            raise Skip("rdma-unit-test leaves it out for mlx5")
        googletests.judge(row, "FAIL" if result.status else "PASS", f"status {result.status}\n{result.text()[-4000:]}")
    return test


def cases(directory):
    place = directory / "rdma-unit-test"
    programs = sorted(p for p in place.glob("*") if p.is_file() and os.access(p, os.X_OK)) if place.is_dir() else []

    def skipped(_):
        raise Skip("rdma-unit-test/ is not there")

    if not programs:
        yield "rdma-unit-test", skipped
        return
    table = googletests.table("rdma-unit-test")
    for program in programs:
        for name in tests(program):
            row = googletests.row_of(table, ROCE, name)
            left_out = row and row["outcome"] == "NOT RUN"
            yield f"rdma-unit-test: {name}", googletests.left_out(row) if left_out else one(program, name, row)
