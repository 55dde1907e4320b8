# SPDX-License-Identifier: BSD-2-Clause
"""mellanox-hpc/ibverbs-tests, if the directory has it built (ibverbs-tests/ibv_test): all tests, on both devices.
ibverbs-tests.tsv has those that do not pass; docs/fidelity.md sums it up."""
import itertools
import subprocess

import googletests
from harness import Skip
from pairs import IB, ROCE

LIMIT = 600  # seconds for the tests of one suite
DEVICES = {IB: "0", ROCE: "1"}  # name, and index in the list of devices


def started(program, device):
    def start(session, names, limit):
        chosen = {"IBV_DEV": device, "IBV_TEST_DEV": device, "DEVN": DEVICES[device]}
        return session.run(program, f"--gtest_filter={names}", env={**session.env, **chosen}, limit=limit)
    return start


def cases(directory):
    program = directory / "ibverbs-tests/ibv_test"

    def skipped(_):
        raise Skip("ibverbs-tests/ibv_test is not there")

    if not program.exists():
        yield "ibverbs-tests", skipped
        return
    expected = googletests.table("ibverbs-tests")
    text = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    for _, group in itertools.groupby(googletests.listed(text), lambda test: test[0].rsplit(".", 1)[0]):
        names = [name for name, _ in group]
        for device in DEVICES:
            yield from googletests.rows("ibverbs-tests", device, started(str(program), device), names, LIMIT, expected)
