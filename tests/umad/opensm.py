# SPDX-License-Identifier: BSD-2-Clause
"""OpenSM and osmtest as they come from the distribution: routing engines, a resident SM, SMs that come
and go beside each other and beside the built-in one."""
import os
import re
import signal

import nets
from diags import Discovered
from harness import expect, within
from subnet import Subnet

BY_ENGINE = {
    "minhop": (nets.torus, "N00_0"),
    "updn": (nets.fat_tree, "H0_0"),
    "ftree": (nets.fat_tree, "H0_0"),
    "dor": (nets.torus, "N00_0"),
    "dfsssp": (nets.fat_tree, "H0_0"),
}


TIMEOUT = "250"  # ms; osmtest waits for answers that must not come
FLOWS = "cvmq"
LONG_FLOWS = "as"  # many such answers; a lease that ends


def lids(subnet, host):
    return Discovered(subnet.ok(host, "ibnetdiscover")).lids


def engine(name):
    """It brings the subnet up, and all ports are active."""
    def test(session):
        topology, host = BY_ENGINE[name]
        with Subnet(session, topology(), "external") as subnet:
            subnet.opensm_once(host, "-R", name)
            up = len(re.findall("Active/  LinkUp", subnet.ok(host, "iblinkinfo")))
            links = sum(len(node.links) for node in nets.nodes(topology()).values())
            expect(up == links, f"{up} ends of links are active, of {links}")
    return test


def yields_and_takes_back(session):
    """OpenSM becomes the master at once; when it has gone, the built-in SM is it again, and no LID has
    changed by either."""
    with Subnet(session, nets.torus()) as subnet:
        before = lids(subnet, "N00_0")
        built_in = subnet.ok("N11_0", "sminfo")
        process = subnet.opensm_resident("N22_1", "-p", "3")
        expect(f"sm lid {before['N22_1', 1]} " in subnet.ok("N11_0", "sminfo"), "OpenSM is not it")
        expect(lids(subnet, "N00_0") == before, "OpenSM has changed LIDs")
        subnet.end(process)
        expect(within(30, lambda: subnet.run("N11_0", "sminfo").out.split(",")[0] ==
                      built_in.split(",")[0]), subnet.run("N11_0", "sminfo").text())
        expect(lids(subnet, "N00_0") == before, "the built-in SM has changed LIDs")


def two(session):
    """The one of higher priority is the master.  When it is killed, the other is."""
    with Subnet(session, nets.torus(), "external") as subnet:
        patience = ["-F", str(subnet.directory / "conf")]
        (subnet.directory / "conf").write_text("sweep_interval 1\nsminfo_polling_timeout 300\n")
        first = subnet.opensm_resident("N00_0", "-p", "8", *patience, log="first.log")
        subnet.opensm_begin("N33_1", subnet.directory / "second.log", "-p", "1", *patience)
        expect(within(30, lambda: subnet.logged("second.log", "Entering STANDBY")),
               subnet.log("second.log"))
        before = lids(subnet, "N11_0")
        subnet.end(first, signal.SIGKILL)
        expect(within(60, lambda: subnet.logged("second.log", "SUBNET UP")),
               subnet.log("second.log"))
        expect(lids(subnet, "N11_0") == before, "LIDs have changed")
        expect(f"sm lid {before['N33_1', 1]} " in subnet.ok("N11_0", "sminfo"), "the master")


def resident(session):
    """What its SA answers, over RMPP where it is much, on the subnet of 648 hosts."""
    with Subnet(session, nets.fat_tree(), "external") as subnet:
        subnet.opensm_resident("H0_0", "-R", "minhop")
        records = subnet.ok("H1_1", "saquery").count("NodeRecord dump")
        expect(records == 702, f"{records} NodeRecords")
        text = subnet.ok("H2_2", "ibqueryerrors")
        expect("702 nodes checked, 0 bad nodes" in text, text[-500:])


def keeps_its_key(session):
    """OpenSM sets its own M_Key on each port and reads the next answers with it, at each level of protection."""
    for level in range(4):
        with Subnet(session, nets.small(), "external") as subnet:
            conf = subnet.directory / "conf"
            conf.write_text(f"m_key 0x1234\nm_key_lease_period 60\nm_key_protection_level {level}\n")
            subnet.opensm_once("H1", "-F", str(conf))
            text = subnet.ok("H1", "smpquery", "-K", "--m_key", "0x1234", "portinfo", "-D", "0,1,2")
            expect(re.search(r"^LinkState:\.*Active$", text, re.MULTILINE), text)
            expect(re.search(rf"^ProtectBits:\.*{level}$", text, re.MULTILINE), text)
            expect(re.search(r"^Mkey:\.*0x0000000000001234$", text, re.MULTILINE), text)


def asks_to_register_again(session):
    """Adapters of a topology file offer client reregistration, so programs hear of an OpenSM that takes over."""
    with Subnet(session, nets.small(), "external") as subnet:
        subnet.opensm_once("H1")
        heard = subnet.directory / "heard"
        subnet.begin("H2", "sh", "-c", f"exec stdbuf -oL ibv_asyncwatch > {heard}")
        expect(within(10, lambda: heard.exists() and "async event FD" in heard.read_text()), "ibv_asyncwatch")
        subnet.opensm_once("H1")
        expect(within(10, lambda: "CLIENT_REREGISTER" in heard.read_text().upper().replace(" ", "_")), heard.read_text())


def osmtest(flow):
    """osmtest's flow against a resident OpenSM; it writes its inventory first."""
    def test(session):
        with Subnet(session, nets.torus(), "external") as subnet:
            subnet.opensm_resident("N00_0")
            subnet.ok("N10_0", "osmtest", "-f", "c", "-t", TIMEOUT, "-i", "inventory")
            if flow != "c":
                subnet.ok("N10_0", "osmtest", "-f", flow, "-t", TIMEOUT, "-i", "inventory")
    return test


def cases():
    return ([(f"opensm: {name} routes", engine(name)) for name in BY_ENGINE] +
            [("opensm: the built-in SM yields and takes back", yields_and_takes_back),
             ("opensm: keeps its key", keeps_its_key),
             ("opensm: asks to register again", asks_to_register_again), ("opensm: two of them", two), ("opensm: resident, 702 records", resident)] +
            [(f"osmtest: flow {flow}", osmtest(flow))
             for flow in FLOWS + (LONG_FLOWS if os.environ.get("UMAD_LONG") else "")])
