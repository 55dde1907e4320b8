# SPDX-License-Identifier: BSD-2-Clause
"""The data checker between two hosts with three switches on the way, of which there are two, while
cables go and come, routes are broken and mended, and OpenSM sweeps."""
import os
import pathlib
import signal
import socket

import nets
from checklist import path_of
from diags import Discovered
from harness import expect, story_of, within
from life import children
from subnet import NAME, Subnet

DISTURBANCES = 60 if os.environ.get("UMAD_LONG") else 6
OPERATIONS = "1500"
LIMIT = 120
DROPS = "255"  # in a forwarding table


def ring():
    """H1 is at S1, H2 at S3; between them are S2 and S4."""
    return nets.text(['Hca 1 "H1"', '[1] "S1"[1]', "", 'Hca 1 "H2"', '[1] "S3"[1]', "",
                      'Switch 8 "S1"', '[1] "H1"[1]', '[2] "S2"[1]', '[3] "S4"[1]', "",
                      'Switch 8 "S2"', '[1] "S1"[2]', '[2] "S3"[2]', "",
                      'Switch 8 "S3"', '[1] "H2"[1]', '[2] "S2"[2]', '[3] "S4"[2]', "",
                      'Switch 8 "S4"', '[1] "S1"[3]', '[2] "S3"[3]', ""])


class Checker:
    """Both sides of one run, which may go on."""

    def __init__(self, subnet, seed):
        program = str(pathlib.Path(subnet.session.build).resolve() / "tests/traffic/verify")
        ends = socket.socketpair()
        self.subnet, self.sides = subnet, []
        for side, (host, end) in enumerate(zip(("H1", "H2"), ends)):
            command = subnet.command(host, program, "--device", "mlx5_0", "--ops", OPERATIONS,
                                     "--max-size", "65536", "--seed", str(seed), "--side", str(side),
                                     "--control", str(end.fileno()))
            process = subnet.session.start(command, pass_fds=[end.fileno()])
            subnet.programs.append(process)
            self.sides.append(process)
            end.close()

    def runs(self):
        return all(process.poll() is None for process in self.sides)

    def ends_well(self, story):
        results = self.subnet.session.finish_all(dict(zip(("side 0", "side 1"), self.sides)), LIMIT)
        for process in self.sides:
            self.subnet.programs.remove(process)
        expect(all(result.status == 0 for result in results.values()), f"after {story}: {story_of(results)}")


class Disturber:
    def __init__(self, subnet, opensm):
        self.subnet, self.opensm, self.story = subnet, opensm, []
        self.lid = str(Discovered(subnet.ok("H1", "ibnetdiscover")).lids["H2", 1])

    def swept(self, change):
        """Until OpenSM has the subnet up again."""
        before = self.subnet.log().count("SUBNET UP")
        change()
        expect(within(60, lambda: self.subnet.log().count("SUBNET UP") > before),
               "OpenSM does not sweep\n" + self.subnet.log()[-2000:])

    def link(self, state, node, port):
        result = self.subnet.session.tool("fabric", "link", "--fabric", NAME, state, node, port)
        expect(result.status == 0, result.text())

    def cable_goes(self, node="S1", port="2"):
        self.swept(lambda: self.link("down", node, port))
        self.swept(lambda: self.link("up", node, port))

    def other_cable_goes(self):
        self.cable_goes("S3", "3")

    def cable_flaps(self):
        """Faster than OpenSM sees."""
        for node, port in (("S1", "2"), ("S1", "3"), ("S2", "2")):
            self.link("down", node, port)
            self.link("up", node, port)
        self.swept(self.sweeps)

    def route_breaks(self):
        def entry(port):
            return self.subnet.ok("H1", path_of(self.subnet.session, "tables_mads"), self.lid, port,
                                  "1").strip()
        port = entry(DROPS)
        expect(port in ("2", "3"), f"S1's route is port {port}")
        expect(entry(port) == DROPS, "somebody else has changed the table")

    def sweeps(self):
        os.kill(self.opensm, signal.SIGHUP)

    def next(self):
        what = (self.route_breaks, self.cable_goes, self.sweeps, self.cable_flaps,
                self.other_cable_goes)[len(self.story) % 5]
        what()
        self.story.append(what.__name__)


def data_bears_it(session):
    with Subnet(session, ring(), "external") as subnet:
        process = subnet.opensm_resident("H1")
        disturber, seed = Disturber(subnet, children(process.pid)[-1]), 1
        while len(disturber.story) < DISTURBANCES:
            checker = Checker(subnet, seed)
            seed += 1
            while checker.runs() and len(disturber.story) < DISTURBANCES:
                disturber.next()
            checker.ends_well(disturber.story)


def cases():
    return [("across: data bears cables, routes and sweeps", data_bears_it)]
