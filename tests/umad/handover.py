# SPDX-License-Identifier: BSD-2-Clause
"""A built-in subnet manager with a priority, and OpenSM: who is the master they find out by the protocol
between subnet managers."""
import re

import nets
from diags import Discovered
from harness import expect, within
from subnet import Subnet

HOME = "A"  # where the built-in one is
STATES = {"NOTACT": 0, "DISCOVER": 1, "STANDBY": 2, "MASTER": 3}
HANDOVER, ACKNOWLEDGE, DISABLE, STANDBY, DISCOVER = range(1, 6)


class Managers:
    """The built-in one and OpenSMs at C."""

    def __init__(self, subnet):
        self.subnet = subnet
        self.lids = Discovered(subnet.ok(HOME, "ibnetdiscover")).lids
        self.ours = str(self.lids[HOME, 1])
        # A trap that another SM represses ends in OpenSM's own agent, so sweeps may be seconds apart.
        (subnet.directory / "conf").write_text("sweep_interval 2\nsminfo_polling_timeout 300\n")

    def opensm(self, priority, log):
        return self.subnet.opensm_begin("C", self.subnet.directory / log, "-p", str(priority), "-F",
                                        str(self.subnet.directory / "conf"))

    def text(self, lid=None):
        return self.subnet.run("B", "sminfo", *([lid] if lid else [])).text()

    def state(self, lid):
        found = re.search(r"state (\d)", self.text(lid))
        return int(found[1]) if found else None

    def master_is(self, host):
        """Ports of others name it, and it says so itself."""
        return f"sm lid {self.lids[host, 1]} " in self.text() and " state 3 " in self.text()

    def becomes(self, host, log=None):
        story = self.subnet.log(log) if log else ""
        expect(within(60, lambda: self.master_is(host)), f"{host} is not the master\n{self.text()}{story}")

    def told(self, modifier):
        """What a Set of the built-in one's SMInfo ends with."""
        return self.subnet.run("B", "sminfo", self.ours, str(modifier)).status


def to_opensm(session):
    """OpenSM of a higher priority is given the subnet; when it is killed, the other takes it again, and no
    LID has changed by either."""
    with Subnet(session, nets.router(), "5") as subnet:
        managers = Managers(subnet)
        for modifier in (DISABLE, STANDBY, 6):
            expect(managers.told(modifier) != 0, f"a master admits modifier {modifier}")
        expect(managers.told(DISCOVER) == 0, "a master does not look around")
        process = managers.opensm(8, "log")
        managers.becomes("C", "log")
        expect(managers.state(managers.ours) == STATES["STANDBY"], managers.text(managers.ours))
        for modifier in (HANDOVER, ACKNOWLEDGE, STANDBY):
            expect(managers.told(modifier) != 0, f"one that stands by admits modifier {modifier}")
        expect(within(60, lambda: subnet.logged("log", "SUBNET UP")), subnet.log("log"))
        subnet.end(process)
        managers.becomes(HOME)
        expect(Discovered(subnet.ok(HOME, "ibnetdiscover")).lids == managers.lids, "LIDs")
        subnet.ok("B", "saquery")


def from_opensm(session):
    """OpenSM of a lower priority stands by; while it is the master it gives the subnet to the other as soon
    as that one is there."""
    with Subnet(session, nets.router(), "8") as subnet:
        managers = Managers(subnet)
        process = managers.opensm(9, "first")
        managers.becomes("C", "first")
        expect(managers.told(DISABLE) == 0 and managers.state(managers.ours) == STATES["NOTACT"],
               managers.text(managers.ours))
        subnet.end(process)
        process = managers.opensm(5, "second")
        managers.becomes("C", "second")
        expect(managers.told(HANDOVER) != 0 and managers.told(STANDBY) == 0, "out of rest")
        managers.becomes(HOME, "second")
        expect(within(60, lambda: "HANDOVER" in subnet.log("second") or
                      "Entering STANDBY" in subnet.log("second")), subnet.log("second"))
        subnet.end(process)
        process = managers.opensm(5, "third")
        expect(within(60, lambda: subnet.logged("third", "Entering STANDBY")), subnet.log("third"))
        expect(managers.master_is(HOME), managers.text())


def at_its_port(session):
    """At the built-in one's own port there is room for one: it stands back for OpenSM of any priority."""
    with Subnet(session, nets.router(), "15") as subnet:
        subnet.opensm_once(HOME, "-p", "1")
        expect(within(60, lambda: " priority 15 state 3 " in subnet.run("B", "sminfo").text()),
               subnet.run("B", "sminfo").text())


def cases():
    return [(f"handover: {test.__name__.replace('_', ' ')}", test)
            for test in (to_opensm, from_opensm, at_its_port)]
