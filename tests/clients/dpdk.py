# SPDX-License-Identifier: BSD-2-Clause
"""DPDK's testpmd, as the distribution has it, on the Ethernet ports of two hosts."""
import shutil

import ties
from harness import Skip


def testpmd(session):
    """One host sends, another one receives, and each frame is accounted for."""
    if not shutil.which("dpdk-testpmd"):
        raise Skip("no dpdk-testpmd: scripts/setup dpdk")
    ties.inside(session, "dpdk_inside.py")


def cases():
    return [("dpdk testpmd", testpmd)]
