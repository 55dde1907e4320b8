# SPDX-License-Identifier: BSD-2-Clause
"""Calls with mistakes, and their errno, on the files of a port."""
import nets
from checklist import path_of
from harness import expect
from subnet import Subnet


def errnos(table, topology=nets.router, host="B"):
    def test(session):
        with Subnet(session, topology and topology()) as subnet:
            result = subnet.run(host, path_of(session, "errnos"), table)
            expect(result.status == 0, f"{result.out.splitlines()[:1]}\n{result.text()}")
    return test


def longest(session):
    """What write takes arrives, also the longest message (UMAD_MOST_MESSAGE, with its header of 40 bytes)."""
    with Subnet(session, nets.small()) as subnet:
        lid = int(subnet.ok("H2", "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid"), 0)
        subnet.begin("H2", path_of(session, "bulk_mads"), "serve")
        subnet.ok("H1", path_of(session, "bulk_mads"), "ask", str(lid), str((64 << 20) - 512 - 40), "1", "5000", "10",
                  limit=120)


def cases():
    return ([(f"errno: {table}", errnos(table))
             for table in ("register", "write", "read", "files", "issm")] +
            [("calls: the longest message", longest), ("errno: an Ethernet port", errnos("ethernet", None, "host1"))])
