# SPDX-License-Identifier: BSD-2-Clause
"""qperf's RDMA tests between two processes: what it measures and, in its ver_ tests, verifies."""
import os
import re
import signal

from harness import expect, free_port, wait_listening
from pairs import IB, ROCE

# The xrc_ tests are not in Debian's build.
TESTS = [
    "rc_lat", "rc_bw", "rc_bi_bw",
    "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat",
    "rc_rdma_read_lat", "rc_rdma_read_bw",
    "rc_compare_swap_mr", "rc_fetch_add_mr",
    "uc_lat", "uc_bw", "uc_bi_bw",
    "uc_rdma_write_lat", "uc_rdma_write_bw", "uc_rdma_write_poll_lat",
    "ud_lat", "ud_bw", "ud_bi_bw",
    "ver_rc_compare_swap", "ver_rc_fetch_add",
]


def measure(session, device, test, seconds=1):
    port = free_port()
    argv = ["qperf", "-lp", str(port)]
    server = session.background(*argv)
    try:
        wait_listening(port, server)
        return session.run(*argv, "127.0.0.1", "-i", f"{device}:1", "-t", str(seconds), test)
    finally:
        # It serves until it is told to quit, each test in a child.
        os.killpg(server.pid, signal.SIGTERM)
        session.finish(server)


def works(test):
    def run(session):
        # On a machine that is busy otherwise, a second may be too short for the first message.
        for seconds in (1, 5):
            result = measure(session, IB, test, seconds)
            figures = [float(f) for f in re.findall(r"=\s+([\d.]+)", result.out)]
            if figures and all(figures):
                break
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        expect(figures and all(figures), f"no figures:\n{result.text()}")
        expect("failed" not in result.text(), result.text())
    return run


def refused(test):
    def run(session):
        result = measure(session, ROCE, test)
        expect(result.status != 0 and "Invalid argument" in result.text(),
               f"status {result.status}\n{result.text()}")
    return run


def cases():
    for test in TESTS:
        yield f"qperf {test}", works(test)
    # qperf 0.4.11 never sets a GRH in an address vector and has no option for a GID, and without
    # one RoCE has no route: connecting is refused with EINVAL, there as here.
    yield "qperf rc_lat roce refuses no GID", refused("rc_lat")
    yield "qperf ud_lat roce refuses no GID", refused("ud_lat")
