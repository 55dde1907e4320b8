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


def cases():
    return ([(f"errno: {table}", errnos(table))
             for table in ("register", "write", "read", "files", "issm")] +
            [("errno: an Ethernet port", errnos("ethernet", None, "host1"))])
