# SPDX-License-Identifier: BSD-2-Clause
"""MADs between queue pairs and queue pair 1 of ports."""
import re

import nets
from checklist import path_of
from data import lids
from harness import expect
from subnet import Subnet

QUESTIONS = "20000"


def on_infiniband(session):
    """A queue pair and a program ask each other; switches and another host answer it; bad Q_Keys are counted, of queue pair 1 and
    of the other one."""
    with Subnet(session, nets.chain(3)) as subnet:
        found = lids(subnet)
        subnet.ok("H1", path_of(session, "gsi_mads"), "mlx5_0", *(str(lid) for lid in found.values()))
        info = subnet.ok("H1", "smpquery", "portinfo", str(found["H1"]))
        expect(re.search(r"^QkeyViolations:\.*2$", info, re.MULTILINE), info)


def on_ethernet(session):
    """By RoCE v1 and v2, as the table of GIDs has them."""
    with Subnet(session) as subnet:
        subnet.ok("host1", path_of(session, "gsi_mads"), "mlx5_1")


def floods(session):
    """While a queue pair asks without a pause and takes no answer, others are served."""
    with Subnet(session, nets.small()) as subnet:
        subnet.begin("H1", path_of(session, "gsi_mads"), "mlx5_0", "flood", "1000000000")
        for _ in range(5):
            subnet.ok("H2", "saquery", "NR")
        subnet.ok("H2", path_of(session, "gsi_mads"), "mlx5_0", str(lids_of_h1(subnet)))
        subnet.ok("H1", path_of(session, "gsi_mads"), "mlx5_0", "flood", QUESTIONS)


def lids_of_h1(subnet):
    return int(subnet.ok("H1", "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid"), 0)


def cases():
    return [("gsi: on InfiniBand", on_infiniband), ("gsi: on Ethernet", on_ethernet), ("gsi: a flood", floods)]
