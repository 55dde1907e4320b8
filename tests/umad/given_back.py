# SPDX-License-Identifier: BSD-2-Clause
"""Output of ibnetdiscover as a topology: the tool prints the same nodes, ports, GUIDs, names, LIDs and
rates again.  The file here has the shapes that dumps of real clusters have.  SOFTHCA_TOPOLOGIES names a
directory with more of them (*.txt)."""
import os
import pathlib
import re

from harness import Skip, expect
from subnet import Subnet

# Lines that describe nodes and ports; all others are headings, comments and warnings of programs.
SAID = re.compile(r"\[|Switch\s|Ca\s|Rt\s|vendid=|devid=|sysimgguid=|switchguid=|caguid=|rtguid=")

# An NDR leaf with a node GUID apart from its port's, adapters whose port has the GUID of the node (all since
# ConnectX-4) and an old one with two ports, a LID for the aggregation node, cables from a switch to itself, a link
# whose ends differ, FDR10, quotes in a description and an empty one, no sysimgguid where it is 0.
MIXED = '''\
ibwarn: [1] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1,1,31)
#
# Topology file: generated on Mon Jan  5 10:00:00 2026
#
# Initiated from node b8599f0300010020 port b8599f0300010020

vendid=0x2c9
devid=0xd2f2
sysimgguid=0x2c5eab0300010000
switchguid=0x2c5eab0300010000(2c5eab0300010000)
Switch\t65 "S-2c5eab0300010000"\t\t# "MF0;leaf "A" 1:MQM9700/U1" enhanced port 0 lid 8 lmc 0
[1]\t"H-b8599f0300010020"[1](b8599f0300010020) \t\t# "node1 mlx5_0" lid 12 4xNDR
[2]\t"H-b8599f0300010021"[1](b8599f0300010021) \t\t# "node1 "spare" mlx5_1" lid 13 4xHDR
[3]\t"H-b8599f0300010040"[1](b8599f0300010040) \t\t# "" lid 14 2xHDR
[9]\t"S-0002c90300020000"[1]\t\t# "MF0;spine:SX6036/U1" lid 20 4xFDR
[65]\t"H-2c5eab0300010010"[1](2c5eab0300010010) \t\t# "Mellanox Technologies Aggregation Node" lid 9 4xNDR

vendid=0x2c9
devid=0xc738
switchguid=0x2c90300020000(2c90300020000)
Switch\t36 "S-0002c90300020000"\t\t# "MF0;spine:SX6036/U1" base port 0 lid 20 lmc 0
[1]\t"S-2c5eab0300010000"[9]\t\t# "MF0;leaf "A" 1:MQM9700/U1" lid 8 4xFDR
[5]\t"S-0002c90300020000"[6]\t\t# "MF0;spine:SX6036/U1" lid 20 4xFDR10
[6]\t"S-0002c90300020000"[5]\t\t# "MF0;spine:SX6036/U1" lid 20 4xFDR10
[7]\t"H-0008f10403960000"[1](8f10403960001) \t\t# "old HCA-1" lid 16 4xSDR
[8]\t"H-0008f10403960000"[2](8f10403960002) \t\t# "old HCA-1" lid 18 1xSDR

vendid=0x2c9
devid=0xcf09
sysimgguid=0x2c5eab0300010000
caguid=0x2c5eab0300010010
Ca\t1 "H-2c5eab0300010010"\t\t# "Mellanox Technologies Aggregation Node"
[1](2c5eab0300010010) \t"S-2c5eab0300010000"[65]\t\t# lid 9 lmc 0 "MF0;leaf "A" 1:MQM9700/U1" lid 8 4xNDR

vendid=0x8f1
devid=0x5a44
caguid=0x8f10403960000
Ca\t2 "H-0008f10403960000"\t\t# "old HCA-1"
[1](8f10403960001) \t"S-0002c90300020000"[7]\t\t# lid 16 lmc 1 "MF0;spine:SX6036/U1" lid 20 1xSDR
[2](8f10403960002) \t"S-0002c90300020000"[8]\t\t# lid 18 lmc 1 "MF0;spine:SX6036/U1" lid 20 1xSDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xb8599f0300010020
caguid=0xb8599f0300010021
Ca\t1 "H-b8599f0300010021"\t\t# "node1 "spare" mlx5_1"
[1](b8599f0300010021) \t"S-2c5eab0300010000"[2]\t\t# lid 13 lmc 0 "MF0;leaf "A" 1:MQM9700/U1" lid 8 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xb8599f0300010040
caguid=0xb8599f0300010040
Ca\t1 "H-b8599f0300010040"\t\t# ""
[1](b8599f0300010040) \t"S-2c5eab0300010000"[3]\t\t# lid 14 lmc 0 "MF0;leaf "A" 1:MQM9700/U1" lid 8 2xHDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xb8599f0300010020
caguid=0xb8599f0300010020
Ca\t1 "H-b8599f0300010020"\t\t# "node1 mlx5_0"
[1](b8599f0300010020) \t"S-2c5eab0300010000"[1]\t\t# lid 12 lmc 0 "MF0;leaf "A" 1:MQM9700/U1" lid 8 4xNDR
'''

XDR = '''\
Switch\t8 "S-0000000000000100"\t\t# "sw" enhanced port 0 lid 8 lmc 0
[1]\t"H-0000000000000200"[1](200) \t\t# "fast" lid 12 4xXDR

Ca\t1 "H-0000000000000200"\t\t# "fast"
[1](200) \t"S-0000000000000100"[1]\t\t# lid 12 lmc 0 "sw" lid 8 4xXDR
'''


def said(text, lids):
    """The lines in the order of their text, however their fields are spaced; some without LIDs."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    lines = [line for line in lines if SAID.match(line)]
    if not lids:
        lines = [re.sub(r" (enhanced|base) port 0|\blid \d+ ?|\blmc \d+ ?", "", line).strip() for line in lines]
    return sorted(lines)


def comes_back(session, text):
    # Where no subnet manager has been, ours gives the LIDs.
    lids = bool(re.search(r"\blid (?!0\b|65535\b)", text))
    with Subnet(session, text) as subnet:
        want, found = said(text, lids), said(subnet.ok(None, "ibnetdiscover"), lids)
    odd = [f"-{line}" for line in want if line not in found] + [f"+{line}" for line in found if line not in want]
    expect(want == found, "\n".join(odd[:20]) or "some lines twice")


def mixed(session):
    comes_back(session, MIXED)


def without_lids(session):
    for lid in (0, 65535):
        comes_back(session, re.sub(r"\blid \d+", f"lid {lid}", MIXED))


def xdr(session):
    """No bit of the first field of extended speeds; the ibnetdiscover of rdma-core 44 does not know it."""
    with Subnet(session, XDR) as subnet:
        out = subnet.ok("fast", "cat", "/sys/class/infiniband/mlx5_0/ports/1/rate")
        expect(out == "800 Gb/sec (4X XDR)\n", out)
        out = subnet.ok("fast", "smpquery", "-D", "portinfo", "0")
        expect("LinkSpeedExtActive:..............No Extended Speed" in out, out)


def others(session):
    directory = os.environ.get("SOFTHCA_TOPOLOGIES")
    if not directory:
        raise Skip("SOFTHCA_TOPOLOGIES names no directory of topologies")
    files = sorted(pathlib.Path(directory).glob("*.txt"))
    expect(files, f"{directory} has no *.txt")
    for path in files:
        try:
            comes_back(session, path.read_text(errors="replace"))
        except Exception as failure:
            failure.args = (f"{path.name}: {failure.args[0]}", *failure.args[1:])
            raise


def cases():
    return [(f"given back: {test.__name__.replace('_', ' ')}", test)
            for test in (mixed, without_lids, xdr, others)]
