# SPDX-License-Identifier: BSD-2-Clause
"""UCX's own tests (test/gtest of a UCX that was built with --enable-gtest --with-mlx5), if the directory has them: those of UCT
and of UCP by rc_mlx5, dc_mlx5 and ud_mlx5.  UCT's name their device, and run on both.  UCP's run on the InfiniBand device, and
those of SAMPLE on the Ethernet one too.  ucx.tsv has those that do not pass; docs/fidelity.md sums it up."""
import itertools

import googletests
import suite
from harness import Session, Skip
from pairs import IB, ROCE

UCT = ("rc_mlx5/", "dc_mlx5/", "ud_mlx5/")
UCP = ("rcx/", "dcx/", "udx/")
SAMPLE = ("test_ucp_tag_xfer.", "test_ucp_am.", "test_ucp_rma.", "test_ucp_atomic64.", "test_ucp_wireup_1sided.")
LIMIT = 1800  # seconds for the tests of one suite
HANG = 300  # seconds for a test that has no limit of its own


def program(directory):
    return str(directory / "ucx/test/gtest/gtest")


def environment(session, device):
    return {**session.env, "UCX_NET_DEVICES": f"{device}:1"}


def tests(directory):
    """Name, parameter: UCX lists the tests of the devices that it finds."""
    session = Session(suite.parse("").build)
    try:
        return list(googletests.listed(session.run_ok(program(directory), "--gtest_list_tests").out))
    finally:
        session.close()


def batches(directory):
    """Device, and the names that run together."""
    def suite_of(test):
        return test[0].rsplit(".", 1)[0]
    for name, group in itertools.groupby(tests(directory), suite_of):
        group = list(group)
        if name.startswith(UCT):
            for device in (IB, ROCE):
                yield device, [test for test, parameter in group if device in parameter]
        elif name.startswith(UCP):
            yield IB, [test for test, _ in group]
            if f"{name.split('/')[1]}." in SAMPLE:
                yield ROCE, [test for test, _ in group]


def started(directory, device):
    def start(session, names, limit):
        return session.run(program(directory), f"--gtest_filter={names}", "-t", str(HANG),
                           env=environment(session, device), limit=limit)
    return start


def cases(directory):
    def skipped(_):
        raise Skip("ucx/test/gtest/gtest is not there")

    if not (directory / "ucx/test/gtest/gtest").exists():
        yield "UCX", skipped
        return
    expected = googletests.table("ucx")
    for device, names in batches(directory):
        yield from googletests.rows("UCX", device, started(directory, device), names, LIMIT, expected)
