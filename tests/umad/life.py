# SPDX-License-Identifier: BSD-2-Clause
"""Programs that speak MADs beside the rest of the fabric: what they take, and what stays when they or the
daemon die."""
import json
import os
import pathlib
import signal
import time

import nets
from checklist import path_of
from harness import cpu_seconds, expect, within
from subnet import NAME, Subnet

LOOKS = 4  # seconds in which a program's use of the CPU is looked at
CPU_MOST = 0.05


def children(pid):
    """The process and those that it started."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    found = [pid]
    for name in tasks.glob("*/children"):
        for child in name.read_text().split():
            found += children(int(child))
    return found


def takes_no_slot(session):
    """A program that speaks MADs only has no thread of ours and no slot of the data path."""
    with Subnet(session, nets.small()) as subnet:
        process = subnet.begin("H2", "ibping", "-S")
        lid = subnet.ok("H2", "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid").strip()
        expect(within(30, lambda: subnet.run("H1", "ibping", "-c", "1", "-L", lid).status == 0),
               "no answer")
        pid = children(process.pid)[-1]
        threads = os.listdir(f"/proc/{pid}/task")
        expect(len(threads) == 1, f"{len(threads)} threads")
        status = json.loads(session.tool("fabric", "status", "--fabric", NAME, "--json").out)
        expect(status["clients"] == [], f"slots: {status['clients']}")


def killed(session):
    """OpenSM is killed over and over; each time its port's IsSM bit and its agents are free again."""
    with Subnet(session, nets.small(), "external") as subnet:
        for n in range(5):
            process = subnet.opensm_resident("H2", log=f"log{n}")
            expect("ERR 5431" not in subnet.log(f"log{n}"), "the IsSM bit of the last one")
            subnet.end(process)
            expect(within(30, lambda: not int(subnet.ok(
                "H2", "cat", "/sys/class/infiniband/mlx5_0/ports/1/cap_mask"), 0) & 2), "IsSM")


def daemon_dies(session):
    """OpenSM, whose receiver reads again after each error, stays almost idle when its device is gone."""
    with Subnet(session, nets.small(), "external") as subnet:
        process = subnet.opensm_resident("H1", "-s", "0")
        pid = children(process.pid)[-1]
        for daemon in session.daemons():
            os.kill(daemon, signal.SIGKILL)
        before = cpu_seconds(pid)
        time.sleep(LOOKS)
        used = cpu_seconds(pid) - before if pathlib.Path(f"/proc/{pid}").exists() else 0
        expect(used <= LOOKS * CPU_MOST, f"{used:.2f} s of CPU in {LOOKS} s")
        subnet.end(process)


def failure_of(subnet, *command):
    """A program of verbs at both ends of the subnet; what they say if one does not end well, else nothing."""
    port = str(18700 + os.getpid() % 1000)
    listener = subnet.begin("H2", *command, "-p", port)
    client = None

    def connected():
        nonlocal client
        client = subnet.run("H1", *command, "-p", port, "127.0.0.1")
        return "Couldn't connect" not in client.text()

    expect(within(30, connected), client and client.text())
    if client.status != 0:
        subnet.end(listener)  # it would wait for messages that do not come
        return f"status {client.status}\n{client.text()}"
    out, err = listener.communicate(timeout=60)
    return f"status {listener.returncode} of the listener\n{out}{err}" if listener.returncode else ""


def end_well(subnet, what, *command):
    failure = failure_of(subnet, *command)
    expect(not failure, f"{what}: {failure}")


def pingpong(*options):
    return "ibv_rc_pingpong", "-d", "mlx5_0", "-c", "-n", "20", *options


def data_obeys(session):
    """Data goes over three switches; not while a cable between them is out; and again when it is back."""
    with Subnet(session, nets.chain(3)) as subnet:
        def link(state):
            result = session.tool("fabric", "link", "--fabric", NAME, state, "S2", "8")
            expect(result.status == 0, result.text())

        end_well(subnet, "over three switches", *pingpong())
        link("down")
        expect(failure_of(subnet, *pingpong()), "over a cable that is out")
        link("up")
        expect(within(30, lambda: not failure_of(subnet, *pingpong())), "after the cable is back")


def data_waits_for_opensm(session):
    """Without a subnet manager no data arrives; OpenSM lets it."""
    with Subnet(session, nets.chain(2), "external") as subnet:
        expect(failure_of(subnet, *pingpong()), "without LIDs")
        subnet.opensm_once("H1")
        end_well(subnet, "after OpenSM", *pingpong())


def no_descriptor_left(session):
    """With every number of a descriptor taken, plain MADs come and go; the rest is refused, and nothing is lost."""
    with Subnet(session, nets.small()) as subnet:
        lid = int(subnet.ok("H1", "cat", "/sys/class/infiniband/mlx5_0/ports/1/sm_lid"), 0)
        subnet.ok("H2", path_of(session, "full_mads"), str(lid))


def cases():
    return [(f"life: {test.__name__.replace('_', ' ')}", test) for test in (
        takes_no_slot, killed, daemon_dies, data_obeys, data_waits_for_opensm, no_descriptor_left)]
