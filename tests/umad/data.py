# SPDX-License-Identifier: BSD-2-Clause
"""Data of verbs on switches: what their ports have carried."""
import re

import nets
from harness import expect
from life import pingpong
from subnet import Subnet

SWITCHES = 3
GIB = ("-s", str(1 << 20), "-n", "512")  # there and back
COUNTERS = ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts")


def ports_on_the_way():
    """Each link's two ends, from H1 to H2."""
    yield ("H1", 1), ("S1", 1)
    for n in range(1, SWITCHES):
        yield (f"S{n}", 8), (f"S{n + 1}", 7)
    yield (f"S{SWITCHES}", 1), ("H2", 1)


def lids(subnet):
    found = {name: int(lid) for name, lid in re.findall(
        r'"(S\d+)" base port 0 lid (\d+)', subnet.ok("H1", "ibswitches"))}
    for host in ("H1", "H2"):
        found[host] = int(subnet.ok(
            host, "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid"), 0)
    return found


def counted(subnet, lid):
    """What all ports say, asked in the same order each time."""
    ports = [port for link in ports_on_the_way() for port in link]
    found = {}
    for node, port in ports:
        out = subnet.ok("H1", "perfquery", "-x", str(lid[node]), str(port))
        found[node, port] = [int(re.search(name + r":\.*(\d+)", out)[1]) for name in COUNTERS]
    return found


def less(a, b):
    return {port: [x - y for x, y in zip(a[port], b[port])] for port in a}


def every_port_counts(session):
    """1 GiB over three switches: both ends of each link count the same words and packets, and each
    link the same as the first.  The questions are MADs and count too, the same in each round."""
    with Subnet(session, nets.chain(SWITCHES)) as subnet:
        lid = lids(subnet)
        counted(subnet, lid)
        rounds = [counted(subnet, lid), counted(subnet, lid)]
        expect(pingpong(subnet, *GIB), "no data arrives")
        rounds.append(counted(subnet, lid))
        data = less(less(rounds[2], rounds[1]), less(rounds[1], rounds[0]))
    first = data["H1", 1]
    expect(first[0] * 4 > 512 << 20 and first[1] * 4 > 512 << 20, f"H1 has counted {first}")
    for near, far in ports_on_the_way():
        expect(data[near] == first, f"{near}: {data[near]}, H1: {first}")
        there = [data[far][i] for i in (1, 0, 3, 2)]
        expect(there == first, f"{far}: {data[far]}, H1: {first}")


def links_have_mtus(session):
    """Links of ibsim's files take 2,048 bytes: larger packets are lost."""
    with Subnet(session, nets.chain(2)) as subnet:
        expect(pingpong(subnet, "-m", "2048"), "a path MTU of 2048")
        expect(not pingpong(subnet, "-m", "4096"), "a path MTU of 4096")


def cases():
    return [(f"data: {test.__name__.replace('_', ' ')}", test) for test in (
        every_port_counts, links_have_mtus)]
