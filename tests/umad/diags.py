# SPDX-License-Identifier: BSD-2-Clause
"""Each program of infiniband-diags on a subnet with nothing started but softhca, compared with the
topology.  A row is a command and what it must print: patterns, or (pattern, how often)."""
import os
import pathlib
import re
import shutil

import nets
from harness import Failure, Skip, expect, within
from subnet import Subnet

HERE = pathlib.Path(__file__).resolve().parent
HOME = "A"  # where the built-in subnet manager is: the first port of the file
NODE = re.compile(r'^(Switch|Ca|Rt)\s+\d+ "[^"]*"\s+# "([^"]*)"(?:.* lid (\d+) lmc)?')
PORT = re.compile(r'^\[(\d+)\](?:\([0-9a-f]+\))?\s+"[^"]*"\[(\d+)\](?:\([0-9a-f]+\))?\s+# '
                  r'(?:lid (\d+) lmc \d+ )?"([^"]*)"')


class Discovered:
    """ibnetdiscover's output: links by (name, port), and LIDs by (name, port; 0 of switches)."""

    def __init__(self, text):
        self.links, self.lids, name = {}, {}, None
        for line in text.splitlines():
            head, port = NODE.match(line), PORT.match(line)
            if head:
                name = head[2]
                if head[1] == "Switch":
                    self.lids[name, 0] = int(head[3])
            elif port:
                self.links[name, int(port[1])] = (port[4], int(port[2]))
                if port[3]:
                    self.lids[name, int(port[1])] = int(port[3])


def expected_links(topology):
    return {(node.name, port): other for node in nets.nodes(topology).values()
            for port, other in node.links.items()}


def values(subnet, topology, home=HOME):
    """What stands in braces in rows: {lid_NAME}, {lid_NAME_PORT}, {guid_NAME}, {gid_NAME}."""
    found = Discovered(subnet.ok(home, "ibnetdiscover"))
    expect(found.links == expected_links(topology), f"ibnetdiscover: {found.links}")
    lids = list(found.lids.values())
    expect(0 not in lids and len(set(lids)) == len(lids), f"LIDs {found.lids}")
    named = {f"lid_{name}_{port}": lid for (name, port), lid in found.lids.items()}
    named |= {f"lid_{name}": lid for (name, port), lid in found.lids.items() if port < 2}
    for node in nets.nodes(topology).values():
        named[f"guid_{node.name}"] = f"{node.guid:016x}"
        named[f"port_{node.name}"] = f"{node.port_guid(min(1, node.ports)):016x}"
        named[f"short_{node.name}"] = f"{node.port_guid(1):x}"
        guid = node.port_guid(1)
        named[f"gid_{node.name}"] = f"fe80::{guid >> 16:x}:{guid & 0xffff:x}"
    return named


def row_holds(subnet, row, named):
    host, command, *patterns = row
    command = [word.format(**named) for word in command.split()]
    result = subnet.run(host, *command)
    story = f"{' '.join(command)}: status {result.status}\n{result.text()[:4000]}"
    expect(result.status == 0, story)
    for pattern in patterns:
        wanted, count = pattern if isinstance(pattern, tuple) else (pattern, None)
        wanted = re.sub(r"\{(\w+)\}", lambda m: str(named[m[1]]), wanted)
        found = len(re.findall(wanted, result.out, re.MULTILINE))
        expect(found == count if count is not None else found,
               f"'{wanted}' is found {found} times\n{story}")


# On the topology 'router': hosts A and C, B with two ports, switches S1 and S2, the router R1.
LOCAL = [
    (HOME, "ibstat", r"^CA 'mlx5_0'", r"State: Active", r"Base lid: {lid_A}$", r"SM lid: {lid_A}$",
     r"Port GUID: 0x{port_A}"),
    ("B", "ibstat", (r"State: Active", 2), r"Base lid: {lid_B_1}$", r"Base lid: {lid_B_2}$"),
    ("B", "ibstat -l", r"^mlx5_0$"),
    ("B", "ibstat -p", (r"^0x", 2)),
    ("B", "ibstatus", (r"state:\s+4: ACTIVE", 2), (r"phys state:\s+5: LinkUp", 2)),
    ("S1", "ibstat", r"^Switch 'switch0'", r"Port 0:", r"Base lid: {lid_S1}$"),
    (HOME, "ibaddr", r"GID fe80::.* LID start 0x[0-9a-f]* end"),
    (HOME, "ibaddr -l {lid_C}", r"LID start 0x{lid_C}"),
]
DISCOVERY = [
    (HOME, "ibnetdiscover -l", r'"A"', r'"R1"'),
    (HOME, "ibhosts", (r"^Ca\t", 3), r'0x{guid_B} ports 2 "B"'),
    (HOME, "ibswitches", (r"^Switch\t", 2), r'0x{guid_S2} ports 8 "S2"'),
    (HOME, "ibrouters", (r"^Rt\t", 1), r'0x{guid_R1} ports 2 "R1"'),
    (HOME, "ibnodes", (r"^(Ca|Switch)\t", 5)),
    (HOME, "iblinkinfo", (r"Active/  LinkUp", 16), (r"Down/ Polling", 6)),
    (HOME, "iblinkinfo -S 0x{guid_S2}", (r"Active/  LinkUp", 5)),
    (HOME, "ibnetdiscover --cache cache", r"Switch"),
    (HOME, "ibnetdiscover --load-cache cache", r'"S2"'),
    (HOME, "ibcacheedit --switchguid 0x{guid_S1}:0x777 cache other"),
    (HOME, "ibnetdiscover --load-cache other", r"S-0000000000000777"),
    (HOME, "ibnetdiscover -p", (r"^CA ", 4), (r"^SW ", 16), (r"^RT ", 2)),
]
# Scripts that keep what ibnetdiscover says in a directory of the system.
CACHE = "/var/cache/infiniband-diags"
CACHED = [
    (HOME, "ibfindnodesusing 0x{guid_S1} 3", r'0x{guid_S1} 3 \("S1" base\)  ==>>  0x{guid_S2} 3 \(S2\)'),
    (HOME, "ibidsverify"),
]
SMPS = [
    (HOME, "sminfo", r"sm lid {lid_A} sm guid 0x{short_A}, .* state 3 SMINFO_MASTER"),
    ("C", "sminfo", r"sm lid {lid_A} sm guid"),
    (HOME, "smpquery nodeinfo {lid_C}", r"NodeType:\.*Channel Adapter", r"Guid:\.*0x{guid_C}"),
    (HOME, "smpquery nodedesc {lid_S2}", r"Node Description:\.*S2"),
    (HOME, "smpquery portinfo {lid_S1} 3", r"LinkState:\.*Active", r"PhysLinkState:\.*LinkUp"),
    (HOME, "smpquery portinfo {lid_S1} 7", r"LinkState:\.*Down", r"PhysLinkState:\.*Polling"),
    (HOME, "smpquery -D portinfo 0,1,2 1", r"Lid:\.*{lid_B_1}$", r"SMLid:\.*{lid_A}$"),
    (HOME, "smpquery switchinfo {lid_S1}", r"LinearFdbCap:\.*49152"),
    (HOME, "smpquery pkeys {lid_C} 1", r"0: 0xffff 0x0000"),
    (HOME, "smpquery sl2vl {lid_C} 1", r"SL2VL table", r"\| 0\| 1\| 2\|"),
    (HOME, "smpquery vlarb {lid_C} 1", r"VLArbitration"),
    (HOME, "smpquery guidinfo {lid_C}", r"0x{port_C}"),
    (HOME, "smpdump {lid_C} 0x11", r"^0101 0101"),
    (HOME, "smpdump -D 0,1 0x10", r"^5331"),
    (HOME, "ibroute {lid_S1}", r"^0x0*{hex_C} \d+ : \(Channel Adapter portguid 0x{port_C}"),
    (HOME, "ibroute -M {lid_S1}", r"Multicast mlids"),
    (HOME, "dump_lfts", (r"^Unicast lids", 2)),
    (HOME, "dump_fts", (r"^Unicast lids", 2), (r"valid lids dumped", 2)),
    (HOME, "dump_mfts", (r"^Multicast mlids", 2)),
    (HOME, "ibtracert {lid_A} {lid_C}", r"From ca .*{guid_A}", r"To ca .*{guid_C}", (r"^\[", 3)),
    (HOME, "ibportstate {lid_S1} 3 query", r"LinkState:\.*Active", r"^Peer PortInfo"),
]
COUNTERS = [
    (HOME, "perfquery", r"PortSelect:\.*1$", r"PortXmitPkts:\.*\d"),
    (HOME, "perfquery -x {lid_C} 1", r"PortRcvPkts:\.*\d+$", r"PortUnicastXmitPkts"),
    (HOME, "perfquery -x {lid_S1} 1", r"PortXmitPkts:\.*[1-9]"),
    (HOME, "perfquery -a {lid_S1}", r"PortSelect:\.*255$"),
    (HOME, "perfquery -a -l {lid_S1}", (r"PortSelect:", 8)),
    (HOME, "perfquery -R {lid_C} 1"),
    (HOME, "perfquery {lid_C} 1", r"PortRcvPkts:\.*[0-9]$"),
    (HOME, "perfquery -r {lid_S1} 1", r"PortXmitPkts:\.*[1-9]"),
    (HOME, "ibqueryerrors", r"5 nodes checked, 0 bad nodes|Summary: \d+ nodes checked, 0 bad"),
    (HOME, "ibqueryerrors --counters", r"PortXmitPkts"),
]
# What an option of perfquery prints: names of counters, and how many there are.
OPTIONS = [
    ("-x", r"^Port\w+:", 16), ("-X", r"^XmtDataSL\d+:", 16), ("-S", r"^RcvDataSL\d+:", 16),
    ("-D", r"^Port\w+Discards:", 4), ("-E", r"^Port(?!Select)\w+:", 6), ("-T", r"Lane\d+:", 36),
    ("--flowctlcounters", r"^Port(Xmit|Rcv)FlowPkts:", 2), ("--rcvcc", r"^PortPktRcv[FB]ECN:", 2),
    ("--vlxmitflowctlerrors", r"^PortVLXmitFlowCtlUpdateErrors\d+:", 16), ("--xmitcc", r"^PortXmitTimeCong:", 1),
    ("--vlxmitcounters", r"^PortVLXmitWait\d+:", 16), ("--slrcvfecn", r"^PortSLRcvFECN\d+:", 16),
    ("--slrcvbecn", r"^PortSLRcvBECN\d+:", 16), ("--vlxmittimecc", r"^PortVLXmitTimeCong\d+:", 15),
    ("-c", r"^(Counter|Sample|Tick|Tag)\w*:", 26),
]
OPTION_ROWS = [(HOME, f"perfquery {option} {{lid_{node}}} 1", (pattern, count))
               for option, pattern, count in OPTIONS for node in ("C", "S1")] + [
    (HOME, "perfquery --swportvlcong {lid_S1} 1", (r"^SWPortVLCongestion\d+:", 16)),
]
RECORDS = [
    (HOME, "saquery", (r"NodeRecord dump", 8), (r"NodeDescription\.*B$", 2)),
    ("C", "saquery NR {lid_S2}", (r"NodeRecord dump", 1), r"NodeDescription\.*S2$"),
    (HOME, "saquery -D", r'^ *{lid_A} +"A"$', (r"^ *\d", 4)),
    (HOME, "saquery -L C", r"^{lid_C}$"),
    (HOME, "saquery -l C", r"^{lid_C}$"),
    (HOME, "saquery -G C", r"^0x{port_C}$"),
    (HOME, "saquery -O {lid_C}", r"^C$"),
    (HOME, "saquery -U 0x{port_C}", r"^C$"),
    (HOME, "saquery -s", (r"PortInfoRecord dump", 1), r"EndPortLid\.*{lid_A}$"),
    (HOME, "saquery -c", r"SA ClassPortInfo", r"Base version\.*1"),
    (HOME, "saquery PIR {lid_C}", (r"PortInfoRecord dump", 1), r"EndPortLid\.*{lid_C}$"),
    (HOME, "saquery PIR", (r"PortInfoRecord dump", 24)),
    (HOME, "saquery -p --src-to-dst {lid_A}:{lid_C}", (r"PathRecord dump", 1), r"dlid\.*{lid_C}$"),
    (HOME, "saquery --src-to-dst A:C", (r"PathRecord dump", 1), r"slid\.*{lid_A}$"),
    (HOME, "saquery --sgid-to-dgid {gid_A}-{gid_C}", (r"PathRecord dump", 1), r"dlid\.*{lid_C}$"),
    (HOME, "saquery PR", (r"PathRecord dump", 64)),
    (HOME, "saquery -x", (r"LinkRecord dump", 16)),
    (HOME, "saquery SMIR", (r"SMInfoRecord dump", 1), r"LID\.*{lid_A}$"),
    (HOME, "saquery SWIR", (r"SwitchInfoRecord dump", 2)),
    (HOME, "saquery LFTR {lid_S1}", r"LFT Record dump"),
    (HOME, "saquery --smkey 1 PKTR {lid_C}", r"PKeyTableRecord dump", r"0xffff"),
    (HOME, "saquery GIR {lid_C}", r"GUIDInfo Record dump"),
    (HOME, "saquery SL2VL {lid_C}", r"SL2VLTable|SL2VL"),
    (HOME, "saquery VLAR {lid_C}", r"VLArb"),
    (HOME, "saquery -g", r"MCMemberRecord group dump|MGID"),
    (HOME, "saquery -S"),
    (HOME, "saquery -I"),
]
BY_GUID = [
    (HOME, "ibtracert -G 0x{port_A} 0x{port_C}", r"To ca .*{guid_C}"),
    (HOME, "smpquery -G nodedesc 0x{port_C}", r"Node Description:\.*C"),
    (HOME, "ibaddr -G 0x{port_C}", r"LID"),
    (HOME, "perfquery -G 0x{port_C} 1", r"PortSelect"),
    (HOME, "ibroute -G 0x{guid_S2}", r"Unicast lids"),
]
CLASSES = [
    (HOME, "ibccquery CongestionInfo {lid_C}", r"Congestion"),
    (HOME, "ibccquery SwitchCongestionSetting {lid_S1}"),
    (HOME, "ibccconfig SwitchCongestionSetting {lid_S1} 0x1F 0x1F 0x3 0xF 8 5 2:3 9"),
    (HOME, "ibccquery SwitchCongestionSetting {lid_S1}", r"^Threshold:\.*0x0f$",
     r"Packet_Size:\.*8$", r"CS_ReturnDelay:\.*0x8003$", r"^CS_Threshold:\.*0x05$", r"Marking_Rate:\.*9$"),
    (HOME, "ibccconfig SwitchPortCongestionSetting {lid_S1} 3 1 0 7 4 77"),
    (HOME, "ibccquery SwitchPortCongestionSetting {lid_S1} 3", r"Cong_Parm_Marking_Rate:\.*77$"),
    (HOME, "ibccconfig CACongestionSetting {lid_C} 0 0x3 150 11 12 13"),
    (HOME, "ibccquery CACongestionSetting {lid_C}", (r"CCTI_Timer:\.*150$", 2),
     (r"CCTI_Increase:\.*11$", 2), (r"Trigger_Threshold:\.*12$", 2), (r"CCTI_Min:\.*13$", 2)),
    (HOME, "ibccconfig CongestionControlTable {lid_C} 1 0 0:5 1:6"),
    (HOME, "ibccquery CongestionControlTable {lid_C}", r"CCTI_Limit:\.*1$", r"Multiplier:\.*5$",
     r"Multiplier:\.*6$"),
    (HOME, "ibccconfig CongestionKeyInfo {lid_C} 0x1234 1 0 0"),
    (HOME, "ibccquery -c 0x1234 CongestionKeyInfo {lid_C}", r"CC_KeyProtectBit:\.*1$"),
]


def table(rows):
    def test(session):
        topology = nets.router()
        with Subnet(session, topology) as subnet:
            named = values(subnet, topology)
            named |= {name.replace("lid_", "hex_"): f"{lid:x}" for name, lid in named.items()
                      if name.startswith("lid_")}
            stories = []
            for row in rows:
                try:
                    row_holds(subnet, row, named)
                except Failure as failure:
                    stories.append(str(failure))
            expect(not stories, "\n".join(stories))
    return test


def ibping(session):
    """A server of ibping at one host answers a client at another."""
    topology = nets.router()
    with Subnet(session, topology) as subnet:
        named = values(subnet, topology)
        for server, client in (("ibping -S", "ibping -c 5 -f {lid_C}"),
                               ("ibsysstat -S", "ibsysstat {lid_C} ping")):
            process = subnet.begin("C", *server.split())
            command = client.format(**named).split()
            last = []

            def answered():
                last[:] = [subnet.run(HOME, *command)]
                return last[0].status == 0

            expect(within(5, answered), f"{server}: {last[0].text()}")
            expect(process.poll() is None, f"{server} has ended")
            subnet.end(process)


def links_by_ibportstate(session):
    """A port is disabled, enabled, reset and made slower from afar."""
    topology = nets.router()
    with Subnet(session, topology) as subnet:
        named = values(subnet, topology)
        lid = str(named["lid_S1"])

        def says(pattern):
            return re.search(pattern, subnet.ok(HOME, "smpquery", "portinfo", lid, "4"))

        subnet.ok(HOME, "ibportstate", lid, "4", "disable")
        expect(says(r"LinkState:\.*Down") and says(r"PhysLinkState:\.*Disabled"), "disable")
        subnet.ok(HOME, "ibportstate", lid, "4", "enable")
        expect(within(30, lambda: says(r"LinkState:\.*Active")), "enable")
        subnet.ok(HOME, "ibportstate", lid, "4", "width", "1")
        subnet.ok(HOME, "ibportstate", lid, "4", "reset")
        expect(within(30, lambda: says(r"LinkWidthActive:\.*1X") and says(r"LinkState:\.*Active")),
               "width")


def vendor(session):
    """vendstat, of a node whose vendor is Mellanox."""
    topology = nets.small().replace('Hca 1 "H2"', 'vendid=0x2c9\ndevid=0x1021\nHca 1 "H2"')
    with Subnet(session, topology) as subnet:
        named = values(subnet, topology, "H1")
        row_holds(subnet, ("H1", "vendstat -N {lid_H2}", r"hw_dev_id: +0x1021$"), named)


def balance(session):
    """check_lft_balance counts for each port of each switch how many LIDs' routes leave by it."""
    topology = nets.fat_tree(4, 2, 3, 8)
    with Subnet(session, topology) as subnet:
        files = subnet.directory
        tables = subnet.ok("H0_0", "dump_lfts")
        (files / "tables").write_text(tables)
        subnet.ok("H0_0", "ibnetdiscover", "--cache", "found")
        said = subnet.ok("H0_0", "check_lft_balance", "-v", "-l", "tables", "-i", "found")
        expected, found, name = {}, {}, None
        for line in tables.splitlines():
            head = re.match(r"Unicast lids .* \((\w+)\)", line)
            route = re.match(r"0x\w+ (\d+) : \(Channel Adapter", line)
            name = head[1] if head else name
            if route:
                expected[name, route[1]] = expected.get((name, route[1]), 0) + 1
        for line in said.splitlines():
            head, port = re.match(r".*Port Usage: (\w+),", line), re.match(r"Port (\d+): (\d+)", line)
            name = head[1] if head else name
            if port:
                found[name, port[1]] = int(port[2])
        switches = [node.name for node in nets.nodes(topology).values() if node.kind == "Switch"]
        expect({switch for switch, _ in found} == set(switches), said)
        for switch in switches:
            routed = sum(n for (name, _), n in expected.items() if name == switch)
            expect(routed == 12, f"{switch}: {routed} hosts")
        wrong = {key: n for key, n in found.items() if n != expected.get(key, 0)}
        expect(not wrong, f"{wrong}\n{said}\n{tables}")


def cached(session):
    if os.geteuid() != 0 and not os.access(CACHE, os.W_OK):
        raise Skip(f"an ordinary user may not write to {CACHE}")
    table(CACHED)(session)


def every_tool_has_a_row(session):
    """What the package brings is here, one way or another."""
    if not shutil.which("dpkg"):
        raise Skip("no dpkg, which lists what infiniband-diags brings")
    files = session.call("dpkg", "-L", "infiniband-diags").out.split()
    tools = {file.rsplit("/", 1)[1] for file in files if "bin/" in file}
    text = (HERE / "diags.py").read_text()
    missing = sorted(tool for tool in tools if not re.search(rf'"{tool}[ "]', text))
    expect(tools and not missing, f"no row: {missing}")


def cases():
    return [(f"diags: {name}", test) for name, test in (
        ("the own port", table(LOCAL)), ("discovery", table(DISCOVERY)),
        ("scripts with a cache", cached),
        ("subnet management", table(SMPS)), ("counters", table(COUNTERS)), ("options of perfquery", table(OPTION_ROWS)),
        ("records", table(RECORDS)), ("destinations by GUID", table(BY_GUID)),
        ("congestion control", table(CLASSES)), ("ibping and ibsysstat", ibping),
        ("ibportstate", links_by_ibportstate), ("vendstat", vendor),
        ("check_lft_balance", balance), ("every tool has a row", every_tool_has_a_row))]
