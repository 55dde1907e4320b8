# SPDX-License-Identifier: BSD-2-Clause
"""Records of subnet administration by component masks that chance makes, compared with a filter over all
records; and alias GUIDs, which must be answered as a resident OpenSM answers on the same subnet."""
import collections
import json
import os
import pathlib
import random
import re
import time

import nets
from harness import expect, within
from subnet import Subnet

PROGRAM = pathlib.Path(__file__).resolve().parent / "sa_ask.py"
GET, SET, TABLE, DELETE = 0x01, 0x02, 0x12, 0x15
PORTS = (0x100001, 0x100003, 0x100004)  # GUIDs that the topology gives
KEY = 1  # of those whom the SA trusts
ASKER = "B"
QUERIES = 400 if os.environ.get("UMAD_LONG") else 30
SEED = int(time.time()) % 100000
OK, INVALID, NO_RECORDS, INVALID_GID = 0, 0x200, 0x300, 0x500


def ask(subnet, requests, host=ASKER):
    path = subnet.directory / "requests"
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    lines = subnet.ok(host, "python3", str(PROGRAM), str(path)).splitlines()
    expect(len(lines) == len(requests), f"{len(lines)} answers to {len(requests)} requests")
    return [json.loads(line) for line in lines]


# ---- fields ----

class Fields:
    """Components of a record: (first bit, bits), or None for one that is no plain value."""

    def __init__(self, attribute, *widths, special=None, rate=None):
        self.attribute, self.special, self.rate = attribute, special or {}, rate
        self.places, at = [], 0
        for width in widths:
            self.places.append((at, width))
            at += width

    def value(self, record, component):
        at, width = self.places[component]
        return int(record, 16) >> (len(record) * 4 - at - width) & (1 << width) - 1

    def put(self, record, component, value):
        at, width = self.places[component]
        shift = len(record) * 4 - at - width
        number = int(record, 16) & ~((1 << width) - 1 << shift) | value << shift
        return f"{number:0{len(record)}x}"

    def agrees(self, wanted, record, mask, node):
        """Does the record have all components that the mask names?"""
        for component in range(len(self.places)):
            if not mask >> component & 1:
                continue
            special = self.special.get(component)
            if special:
                if not special(self, wanted, record, component, mask, node):
                    return False
            elif self.value(wanted, component) != self.value(record, component):
                return False
        return True


def any_of_a_ca(fields, wanted, record, component, _, node):
    """A port's number says something of switches only: an adapter's LID names its port."""
    return node(fields.value(record, 0)) != "Switch" or \
        fields.value(wanted, component) == fields.value(record, component)


def ignored(*_):
    return True


# By speed: numbers of rates are in no order.
RATES = {2: 25, 5: 50, 3: 100, 6: 200, 4: 300, 7: 400, 8: 600, 9: 800, 10: 1200}


def selected(fields, wanted, record, component, mask, _):
    """A value by its selector, which stands before it; either does nothing without the other."""
    if not mask >> component - 1 & 1:
        return True
    want, have = fields.value(wanted, component), fields.value(record, component)
    if component == fields.rate:
        want, have = RATES[want], RATES[have]
    return {0: have > want, 1: have < want, 2: have == want, 3: True}[fields.value(wanted, component - 1)]


PORT_INFO = (64, 64, 16, 16, 32, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4, 2, 3, 3, 4, 4, 4, 4, 4, 4, 8, 8, 8, 4, 4, 3, 5, 4,
             1, 1, 1, 1, 16, 16, 16, 8, 1, 2, 5, 3, 5, 4, 4, 16, 8, 24, 16, 4, 4, 3, 5)
GUIDS = (64,) * 8
KINDS = {
    "NodeRecord": Fields(0x11, 16, 16, 8, 8, 8, 8, 64, 64, 64, 16, 16, 32, 8, 24, 512),
    "PortInfoRecord": Fields(0x12, 16, 8, 8, *PORT_INFO),
    "SwitchInfoRecord": Fields(0x14, 16, 16),
    "LinearForwardingTableRecord": Fields(0x15, 16, 16),
    "MulticastForwardingTableRecord": Fields(0x17, 16, 4, 3, 9),
    "SMInfoRecord": Fields(0x18, 16, 16, 64, 64, 32, 4, 4),
    "LinkRecord": Fields(0x20, 16, 8, 8, 16),
    "GUIDInfoRecord": Fields(0x30, 16, 8, 8, 32, *GUIDS),
    "P_KeyTableRecord": Fields(0x33, 16, 16, 8, special={2: any_of_a_ca}),
    "SLtoVLMappingTableRecord": Fields(0x13, 16, 8, 8, special={1: any_of_a_ca, 2: any_of_a_ca}),
    "VLArbitrationTableRecord": Fields(0x36, 16, 8, 8, special={1: any_of_a_ca}),
    "ServiceRecord": Fields(0x31, 64, 128, 16, 16, 32, 128, 512, *(8,) * 16, *(16,) * 8, *(32,) * 4, 64, 64),
    "PathRecord": Fields(0x35, 8, 56, 128, 128, 16, 16, 1, 3, 20, 8, 8, 1, 7, 16, 12, 4, 2, 6, 2, 6, 2, 6, 8,
                         special={0: ignored, 1: ignored, 7: ignored, 9: ignored, 11: ignored, 12: ignored,
                                  14: ignored, 16: ignored, 17: selected, 18: ignored, 19: selected,
                                  20: ignored, 21: selected, 22: ignored}, rate=19),
    "MCMemberRecord": Fields(0x38, 128, 128, 32, 16, 2, 6, 8, 16, 2, 6, 2, 6, 4, 20, 8, 4, 4, 1,
                             special={4: ignored, 5: selected, 8: ignored, 9: selected, 10: ignored,
                                      11: selected}, rate=9),
    "InformInfoRecord": Fields(0xf3, 128, 16, 48, 128, 16, 16, 16, 8, 8, 16, 16, 24, 3, 5, 8, 24,
                               special={2: ignored, 6: ignored, 12: ignored, 14: ignored}),
}
INFORM_INFO = 0x03


# ---- queries by chance ----

class Chance:
    """Queries for records of a kind, made of those that there are."""

    def __init__(self, fields, records, seed):
        self.fields, self.records, self.random = fields, records, random.Random(seed)

    def query(self):
        """A record whose fields are those of one or of several records, or none's; and a mask."""
        wanted = self.random.choice(self.records)
        mask = 0
        for _ in range(self.random.randrange(5)):
            component = self.random.randrange(len(self.fields.places))
            mask |= 1 << component
            dice = self.random.random()
            if dice < 0.3:
                other = self.random.choice(self.records)
                wanted = self.fields.put(wanted, component, self.fields.value(other, component))
            elif dice < 0.4 and component not in self.fields.special:
                width = self.fields.places[component][1]
                wanted = self.fields.put(wanted, component, self.random.randrange(1 << min(width, 62)))
        return wanted, mask

    def expected(self, wanted, mask, node):
        return sorted(record for record in self.records
                      if self.fields.agrees(wanted, record, mask, node))


def request(fields, method, data="", mask=0):
    return {"method": method, "attribute": fields.attribute, "mask": mask, "data": data, "key": KEY}


def gid_of(port):
    return f"fe80000000000000{port:016x}"


def services():
    for number in range(6):
        yield request(KINDS["ServiceRecord"], SET, f"{number // 2:016x}{gid_of(PORTS[number % 3])}ffff0000"
                      f"{600:08x}{number:032x}" + f"{number:02x}" * 64 +
                      "".join(f"{(number * 7 + i) % 3:02x}" for i in range(64)), (1 << 37) - 1)


# MGID, PortGID, Q_Key, traffic class, P_Key, SL, flow label, JoinState
MASK_CREATE = 0x130c7 & ~0x8 | 1 << 12 | 1 << 13


def members():
    """Two groups; the ports are in them in different states."""
    for group, port, state in ((1, 0, 1), (1, 1, 2), (1, 2, 4), (2, 1, 1), (2, 0, 5)):
        yield request(KINDS["MCMemberRecord"], SET, f"ff12a01cfe80{group:020x}{gid_of(PORTS[port])}"
                      f"{0x10 * group:08x}000000{group:02x}ffff0000{group << 20:08x}{state:02x}", MASK_CREATE)


def subscriptions():
    for trap, response in ((128, 18), (144, 5), (0xffff, 18)):
        yield {"method": SET, "attribute": INFORM_INFO, "mask": 0, "key": KEY,
               "data": f"{0:032x}ffff00000000" + f"0101ffff{trap:04x}000000{response:02x}00ffffff"}


def prepared(subnet):
    """Services, members of groups and subscriptions, so that there are such records."""
    answers = ask(subnet, [*services(), *members(), *subscriptions()])
    expect([answer and answer["status"] for answer in answers] == [OK] * len(answers), f"{answers}")


def by_masks(names):
    def test(session):
        with Subnet(session, nets.router()) as subnet:
            prepared(subnet)
            tables = ask(subnet, [request(KINDS[name], TABLE) for name in ["NodeRecord", *names]])
            nodes = KINDS["NodeRecord"]
            kinds = {nodes.value(record, 0): {1: "Ca", 2: "Switch", 3: "Rt"}[nodes.value(record, 4)]
                     for record in tables[0]["records"]}
            asked = []
            for name, table in zip(names, tables[1:]):
                expect(table["status"] == OK and table["records"], f"{name}: {table}")
                chance = Chance(KINDS[name], table["records"], SEED)
                asked += [(name, chance, *chance.query()) for _ in range(QUERIES)]
            answers = ask(subnet, [request(chance.fields, TABLE, wanted, mask)
                                   for _, chance, wanted, mask in asked])
            for (name, chance, wanted, mask), answer in zip(asked, answers):
                expected = chance.expected(wanted, mask, kinds.get)
                story = f"seed {SEED}: {name}, mask {mask:#x}, record {wanted}: {answer}"
                if expected:
                    expect(answer and answer["status"] == OK and sorted(answer["records"]) == expected,
                           f"{len(expected)} records, {story}")
                else:
                    # A LID or GID that nobody has is told as such, or two that are not of one port, or a
                    # partition that the asker is not in.
                    none = (OK, NO_RECORDS) + (INVALID, INVALID_GID) * (name in ("PathRecord", "ServiceRecord"))
                    expect(answer and answer["status"] in none and not
                           (answer["status"] == OK and answer["records"]), f"no record, {story}")
    return test


# ---- alias GUIDs ----

GUID_RECORD = KINDS["GUIDInfoRecord"]
LID, BLOCK = 1, 2
CHOSEN = "001405"  # OpenFabrics' OUI, of GUIDs that the SA chooses
NEW = [0x5000000000000000 + n for n in range(4)]


def guids(lid, values, method=SET, block=0, mask=LID | BLOCK):
    """A change of the GUIDs by index, which are asked for by the mask."""
    data = f"{lid:04x}{block:02x}" + 10 * "0" + "".join(f"{values.get(i, 0):016x}" for i in range(8))
    return request(GUID_RECORD, method, data, mask | sum(1 << 4 + i for i in values))


def joined(guid, method):
    data = f"ff12a01cfe80{9:020x}{gid_of(guid)}" + f"{7:08x}" + 6 * "0" + "00ffff0000" + 8 * "0" + "01"
    return request(KINDS["MCMemberRecord"], method, data, MASK_CREATE)


def path_from(guid):
    return request(KINDS["PathRecord"], GET, f"{0:016x}{gid_of(PORTS[0])}{gid_of(guid)}", 0xc)


def changes(lids):
    """(What it does, request), with the LIDs of the first port of A and of B."""
    a, b = lids
    return [
        ("no GUID is named", guids(a, {})),
        ("no block", guids(a, {1: NEW[0]}, mask=LID)),
        ("no LID", guids(a, {1: NEW[0]}, mask=BLOCK)),
        ("a LID that nobody has", guids(0x1234, {1: NEW[0]})),
        ("a block that is not there", guids(a, {1: NEW[0]}, block=9)),
        ("the port's own", guids(a, {0: NEW[0]})),
        ("two", guids(a, {1: NEW[0], 5: NEW[1]})),
        ("a record", request(GUID_RECORD, GET, f"{a:04x}00", LID | BLOCK)),
        ("again", guids(a, {1: NEW[0]})),
        ("one that is there already, at another place", guids(a, {2: NEW[0]})),
        ("one of another port", guids(b, {3: NEW[0], 4: NEW[2]})),
        ("the first GUID of another port", guids(b, {3: PORTS[0]})),
        ("in place of another", guids(a, {1: NEW[3]})),
        ("what is free by that", guids(b, {3: NEW[0]})),
        ("one that the SA chooses", guids(a, {6: 0})),
        ("and keeps", guids(a, {6: 0})),
        ("a path", path_from(NEW[3])),
        ("a member", joined(NEW[3], SET)),
        ("of a group, which stays", guids(a, {1: 0, 5: 0}, DELETE)),
        ("leaves", joined(NEW[3], DELETE)),
        ("away", guids(a, {1: 0, 5: 0, 6: 0}, DELETE)),
        ("the path with it", path_from(NEW[3])),
        ("the port's own, by Delete", guids(a, {0: 0, 1: 0}, DELETE)),
        ("Delete without a block", guids(a, {1: 0}, DELETE, mask=LID)),
        ("Delete of a LID that nobody has", guids(0x1234, {1: 0}, DELETE)),
        ("what the SA chose", guids(a, {6: 0})),
        ("all of A", guids(a, {i: 0 for i in range(1, 8)}, DELETE)),
        ("all of B", guids(b, {i: 0 for i in range(1, 8)}, DELETE)),
    ]


def told(what, answer):
    """What must be the same whoever answers: not which MLID a group has, nor which GUID is chosen, nor
    that a GID is told as invalid, which to OpenSM is one without paths."""
    if answer is None:
        return None
    if answer["status"] in (NO_RECORDS, INVALID_GID):
        return (NO_RECORDS, [])
    records = answer["records"] if answer["status"] == OK else []
    if what in ("a member", "leaves", "a path"):
        records = [record[:48 if what == "a path" else 64] for record in records]
    return (answer["status"],
            [CHOSEN if record[i:i + 6] == CHOSEN else record[i:i + 16]
             for record in records for i in range(0, len(record), 16)])


def aliases(session):
    with Subnet(session, nets.router()) as subnet:
        def all_of_it():
            nodes = ask(subnet, [request(KINDS["NodeRecord"], TABLE)])[0]["records"]
            lids = {KINDS["NodeRecord"].value(record, 8): KINDS["NodeRecord"].value(record, 0)
                    for record in nodes}
            rows = changes([lids[port] for port in PORTS[:2]])
            answers = ask(subnet, [row for _, row in rows])
            return [(what, told(what, answer)) for (what, _), answer in zip(rows, answers)]

        ours = all_of_it()
        subnet.opensm_resident("A", "-s", "0")
        theirs = all_of_it()
        different = [f"{what}: {mine}, OpenSM {other}"
                     for (what, mine), (_, other) in zip(ours, theirs) if mine != other]
        expect(not different, "\n".join(different))


# ---- multicast trees ----

OF_OURS = re.compile(r"^(0xc0\w\w)((?: +x?)*)$", re.MULTILINE)


def trees(subnet):
    """Lines of both switches' multicast tables but for the broadcast group's: {MLID: how many ports}."""
    found = collections.Counter()
    for switch in ("S1", "S2"):
        lid = subnet.ok(switch, "cat", "/sys/class/infiniband/switch0/ports/0/lid").strip()
        for mlid, ports in OF_OURS.findall(subnet.ok("A", "ibroute", "-M", lid)):
            found[mlid] += ports.count("x")
    return dict(found)


def of_group(answer):
    return f"0x{KINDS['MCMemberRecord'].value(answer['records'][0], 3):04x}"


def joins_make_trees(session):
    """A join adds branches to the tables of switches, by the built-in manager as by OpenSM, and leaving
    takes them away; no program of verbs is there at all."""
    for manager in ("builtin", "external"):
        with Subnet(session, nets.router(), manager) as subnet:
            if manager == "external":
                subnet.opensm_resident("A", "-s", "0")
            # B's second port is at the other switch than its first.
            first, second = (ask(subnet, [joined(port, SET)])[0] for port in PORTS[1:])
            mlid = of_group(first)
            expect(of_group(second) == mlid, f"{first}, {second}")
            expect(within(30, lambda: trees(subnet).get(mlid) == 4), f"{manager}: {trees(subnet)}")
            ask(subnet, [joined(PORTS[2], DELETE)])
            expect(within(30, lambda: trees(subnet).get(mlid, 0) < 3), f"{manager}: {trees(subnet)}")
            ask(subnet, [joined(PORTS[1], DELETE)])
            expect(within(30, lambda: not trees(subnet).get(mlid)), f"{manager}: {trees(subnet)}")


# ---- very long answers ----

PAIRS = "saquery -t 60000 PR | grep -c dlid"


def ports_of(leaves):
    """A fat tree's end ports: hosts, leaves and spines."""
    return leaves * 18 + leaves + 18


def all_pairs(session):
    """Paths between all pairs of ports, in one answer.  Others are served meanwhile."""
    leaves = 36 if os.environ.get("UMAD_LONG") else 18
    with Subnet(session, nets.fat_tree(leaves)) as subnet:
        asking = subnet.session.start(subnet.command("H0_1", "bash", "-c", PAIRS), env=subnet.environment())
        while asking.poll() is None:
            subnet.ok("H1_1", "saquery", "NR", "1")
        out, err = asking.communicate()
        expect(int(out) == ports_of(leaves) ** 2, f"{out} paths between {ports_of(leaves)} ports\n{err}")


def too_many_pairs(session):
    """More than a program is given in one message: the SA says that it has no resources for that."""
    with Subnet(session, nets.fat_tree(54, ports=64)) as subnet:
        text = subnet.run("H0_1", "saquery", "-t", "60000", "PR").text()
        expect("SA_ERR_NO_RESOURCES" in text, text[:500])
        expect(len(subnet.ok("H0_1", "saquery").split("NodeRecord dump")) == ports_of(54) + 1, "NodeRecords")


BROADCAST = "ff12401bffff000000000000ffffffff"


def path_to_a_group(session):
    """From one port and from all: the group's own, wherever it is asked from."""
    with Subnet(session, nets.router()) as subnet:
        nodes = ask(subnet, [request(KINDS["NodeRecord"], TABLE)])[0]["records"]
        gid = subnet.ok(ASKER, "cat", "/sys/class/infiniband/mlx5_0/ports/1/gids/0").strip().replace(":", "")
        data = "00" * 8 + BROADCAST + gid
        one, every = ask(subnet, [{"method": TABLE, "attribute": 0x35, "mask": mask, "data": data}
                                  for mask in (0xc, 0x4)])
        expect(one["status"] == OK and len(one["records"]) == 1, f"{one}")
        expect(one["records"][0][16:80] == BROADCAST + gid and one["records"][0][80:84] == "c000", f"{one}")
        expect(every["status"] == OK and len(every["records"]) == len(nodes), f"{len(nodes)} nodes: {every}")


def cases():
    return [(f"records: {name} by masks", by_masks([name])) for name in KINDS] + \
        [("records: alias GUIDs, as OpenSM", aliases), ("records: joins make trees", joins_make_trees),
         ("records: paths of all pairs", all_pairs),
         ("records: paths of too many pairs", too_many_pairs),
         ("records: path to a group", path_to_a_group)]
