# SPDX-License-Identifier: BSD-2-Clause
"""Ports that go down and come up again, as `softhca fabric port` makes them."""
import contextlib
import json
import os
import re
import signal
import tempfile
import threading

from harness import data_flows, expect, free_port, wait_listening
from pairs import LINKS, both_ended_well
from tool import complains

EVENT_LIMIT = 60  # seconds until a program must have seen an event
ERROR_LIMIT = 120  # seconds until traffic over a dead port must have ended


@contextlib.contextmanager
def fabric(session, *options):
    """A fabric that stays while nobody is on it."""
    up = session.tool("fabric", "up", *options)
    expect(up.status == 0, up.text())
    try:
        yield
    finally:
        session.tool("fabric", "down")


def set_port(session, port, state):
    result = session.tool("fabric", "port", port, state)
    expect(result.status == 0 and f"{port.split('/')[-1]} is {state}" in result.out,
           f"status {result.status}\n{result.text()}")


def devinfo_state(session, device, host="host1"):
    result = session.tool("run", "--host", host, "--", "ibv_devinfo", "-d", device)
    found = re.search(r"state:\s+(\w+)", result.out)
    expect(result.status == 0 and found, result.text())
    return found[1]


def read_until(process, word):
    """Lines up to one with the word, or up to the end."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if word in line:
            break
    return "".join(lines)


def asyncwatch(device):
    """Each change is one event, on each descriptor of that device and on no other's."""
    def test(session):
        # A pipe is written in blocks, which a program that is killed does not finish.
        argv = ["stdbuf", "-oL", "ibv_asyncwatch", "-d"]
        (other,) = set(LINKS.values()) - {device}
        with fabric(session):
            watchers = [session.background(*argv, d) for d in (device, device, other)]
            timer = threading.Timer(EVENT_LIMIT, lambda: [w.kill() for w in watchers])
            timer.start()
            try:
                for watcher in watchers:
                    read_until(watcher, "async event FD")
                for state in ("down", "down", "up", "up"):
                    set_port(session, device, state)
                texts = [read_until(w, "PORT_ACTIVE") for w in watchers[:2]]
                watchers[2].send_signal(signal.SIGTERM)
                rest = session.finish(watchers[2]).text()
            finally:
                timer.cancel()
                for watcher in watchers:
                    watcher.kill()
                    watcher.communicate()
        for text in texts:
            events = re.findall(r"event_type (\w+) .*port (\d)", text)
            expect(events == [("IBV_EVENT_PORT_ERR", "1"), ("IBV_EVENT_PORT_ACTIVE", "1")], text)
        expect("event_type" not in rest, f"events of another device:\n{rest}")
    return test


def state_everywhere(session):
    """One state, whoever is asked, and only that port's."""
    with fabric(session):
        set_port(session, "host2/mlx5_1", "down")
        expect(devinfo_state(session, "mlx5_1", "host2") == "PORT_DOWN", "host2 is not down")
        expect(devinfo_state(session, "mlx5_0", "host2") == "PORT_ACTIVE", "mlx5_0 is down")
        expect(devinfo_state(session, "mlx5_1") == "PORT_ACTIVE", "host1 is down")
        set_port(session, "mlx5_0", "down")  # the first host's
        port = "/sys/class/infiniband/mlx5_0/ports/1"
        result = session.run_ok("cat", f"{port}/state", f"{port}/phys_state",
                                f"{port}/counters/link_downed")
        expect(result.out == "1: DOWN\n2: Polling\n1\n", result.out)
        status = json.loads(session.tool("fabric", "status", "--json").out)
        states = [p["state"] for h in status["hosts"] for p in h["ports"]]
        expect(states == ["1: DOWN", "4: ACTIVE", "4: ACTIVE", "1: DOWN"], states)
        set_port(session, "host1/mlx5_0", "up")
        result = session.run_ok("cat", f"{port}/state", f"{port}/phys_state")
        expect(result.out == "4: ACTIVE\n5: LinkUp\n", result.out)


def refused(session):
    with fabric(session):
        for arguments, word in ((["host9/mlx5_0", "down"], "host9"),
                                (["mlx5_9", "down"], "mlx5_9"),
                                (["mlx5_0", "sideways"], "sideways"),
                                (["/mlx5_0", "down"], "/mlx5_0"),
                                (["host1/", "down"], "host1/"),
                                (["host1/mlx5_0/1", "down"], "mlx5_0/1"),
                                ([f"{'h' * 100}/mlx5_0", "down"], "hhh"),
                                (["mlx5_0"], "a state"),
                                (["mlx5_0", "down", "up"], "a state")):
            complains(session.tool("fabric", "port", *arguments), word)
        expect(devinfo_state(session, "mlx5_0") == "PORT_ACTIVE", "a refused command did it")
    complains(session.tool("fabric", "port", "mlx5_0", "down"), "not running")


def host_port(session, host):
    """State and LID of its InfiniBand port."""
    result = session.tool("run", "--host", host, "--", "cat",
                          *(f"/sys/class/infiniband/mlx5_0/ports/1/{name}" for name in ("state", "lid")))
    expect(result.status == 0, result.text())
    return result.out.split("\n")[:2]


def cables_and_nodes(session):
    """A cable has two ends, a node all its cables; what comes back has the LID that it had."""
    def did(*arguments):
        result = session.tool("fabric", *arguments)
        expect(result.status == 0, result.text())

    with fabric(session):
        before = host_port(session, "host1"), host_port(session, "host2")
        down = ["1: DOWN", before[0][1]]
        expect(before[0][0] == "4: ACTIVE", before)
        did("link", "down", "switch1", "1")
        expect((host_port(session, "host1"), host_port(session, "host2")) == (down, before[1]),
               "the wrong host")
        did("link", "up", "host1", "1")  # the other end of it
        expect(host_port(session, "host1") == before[0], host_port(session, "host1"))
        did("node", "remove", "switch1")
        expect(host_port(session, "host1") == down, host_port(session, "host1"))
        did("node", "add", "switch1")
        did("node", "remove", "host2")
        expect((host_port(session, "host1"), host_port(session, "host2")[0]) ==
               (before[0], "1: DOWN"), "after the switch came back and host2 went")
        did("node", "add", "host2")
        expect((host_port(session, "host1"), host_port(session, "host2")) == before, before)
        for arguments, word in ((["link", "down", "nowhere", "1"], "nowhere"),
                                (["link", "down", "switch1", "37"], "no port 37"),
                                (["link", "down", "switch1", "36"], "no cable"),
                                (["link", "down", "switch1", "x"], "'x'"),
                                (["link", "away", "switch1", "1"], "away"),
                                (["link", "down", "n" * 100, "1"], "nnn"),
                                (["link", "down"], "a node and a port"),
                                (["node", "remove", "nowhere"], "nowhere"),
                                (["node", "kill", "switch1"], "kill"),
                                (["node", "remove"], "a node")):
            complains(session.tool("fabric", *arguments), word)
        expect(host_port(session, "host1") == before[0], "a refused command did it")


def rates_of_a_file(session):
    """What a network file says of a link is what sysfs and verbs say of it."""
    with tempfile.NamedTemporaryFile("w", suffix=".net") as net:
        net.write('Switch 8 "S1"\n[1] "H1" w=1 s=2\n\nHca 1 "H1"\n[1] "S1" w=1 s=2\n')
        net.flush()
        up = session.tool("fabric", "up", "--topology", net.name)
    expect(up.status == 0, up.text())
    try:
        rate = session.run_ok("cat", "/sys/class/infiniband/mlx5_0/ports/1/rate").out
        expect(rate == "5 Gb/sec (1X DDR)\n", rate)
        info = session.run_ok("ibv_devinfo", "-v", "-d", "mlx5_0").out
        for line in (r"active_width:\s+1X \(1\)", r"active_speed:\s+5.0 Gbps \(2\)",
                     r"active_mtu:\s+2048"):
            expect(re.search(line, info), f"{line} is not in:\n{info}")
    finally:
        session.tool("fabric", "down")


def await_data(session, pair, device, hosts):
    """Until data flows over the device of one of the hosts; the pair has not ended."""
    expect(data_flows(session, pair, device, hosts) and all(p.poll() is None for p in pair),
           "the pair ended by itself")


def traffic_ends(program, device, options=(), host="host1"):
    """A dead port looks like a dead peer; when it is up again, new connections work."""
    def test(session):
        port = free_port()
        argv = [program, "-d", device, "-F", *options]
        endless = [*argv, "-D", "60", "-p", str(port)]
        with fabric(session):
            pair = [session.background(*endless)]
            wait_listening(port, pair[0])
            pair.append(session.background(*endless, "127.0.0.1", run_options=("--host", host)))
            await_data(session, pair, device, {"host1", host})
            set_port(session, f"{host}/{device}", "down")
            try:
                client = session.finish(pair[1], ERROR_LIMIT)
                expect(client.status > 0 and "status 12" in client.text(),
                       f"status {client.status}, no retry exceeded\n{client.text()}")
                # The server of ib_send_bw polls for what will never come; nothing tells a receiver.
                if program != "ib_send_bw":
                    server = session.finish(pair[0], ERROR_LIMIT)
                    expect(server.status >= 0, f"status {server.status}\n{server.text()}")
            finally:
                for process in pair:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.communicate()
            set_port(session, f"{host}/{device}", "up")
            again = [*argv, "-n", "100"]
            both_ended_well(session.pair(again, again))
    return test


# Two switches, and two ways between them.
TWO_WAYS = "".join(f'{kind} {ports} "{name}"\n' + "".join(f'[{i + 1}] "{to}"[{at}]\n'
                                                        for i, (to, at) in enumerate(links)) + "\n"
                   for kind, ports, name, links in (
                       ("Switch", 8, "S1", (("H1", 1), ("A", 1), ("B", 1))),
                       ("Switch", 8, "S2", (("H2", 1), ("A", 2), ("B", 2))),
                       ("Switch", 8, "A", (("S1", 2), ("S2", 2))),
                       ("Switch", 8, "B", (("S1", 3), ("S2", 3))),
                       ("Hca", 1, "H1", (("S1", 1),)), ("Hca", 1, "H2", (("S2", 1),))))


def links_between_switches(session):
    """Connections outlive a link that fails while there is another way, and end when there is none."""
    def link(state, node):
        result = session.tool("fabric", "link", state, node, "1")
        expect(result.status == 0, result.text())

    with tempfile.NamedTemporaryFile("w", suffix=".net") as net:
        net.write(TWO_WAYS)
        net.flush()
        up = session.tool("fabric", "up", "--topology", net.name)
    expect(up.status == 0, up.text())
    port = free_port()
    endless = ["ib_write_bw", "-d", "mlx5_0", "-F", "-D", "60", "-p", str(port)]
    pair = []
    try:
        pair.append(session.background(*endless, run_options=("--host", "H1")))
        wait_listening(port, pair[0])
        pair.append(session.background(*endless, "127.0.0.1", run_options=("--host", "H2")))
        await_data(session, pair, "mlx5_0", {"H1", "H2"})
        for node in ("A", "B") * 2:
            link("down", node)
            await_data(session, pair, "mlx5_0", {"H1", "H2"})
            link("up", node)
        link("down", "A")
        link("down", "B")
        client = session.finish(pair[1], ERROR_LIMIT)
        expect(client.status > 0 and "status 12" in client.text(),
               f"status {client.status}, no retry exceeded\n{client.text()}")
    finally:
        for process in pair:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        session.tool("fabric", "down")


def cases():
    for link, device in LINKS.items():
        yield f"port: ibv_asyncwatch {link}", asyncwatch(device)
    yield "port: state everywhere", state_everywhere
    yield "port: refused", refused
    yield "port: cables and nodes", cables_and_nodes
    yield "port: rates of a network file", rates_of_a_file
    yield "port: links between switches", links_between_switches
    for link, device in LINKS.items():
        yield f"port: down under ib_write_bw {link}", traffic_ends("ib_write_bw", device)
        yield (f"port: down under ib_write_bw {link} 8 bytes",
               traffic_ends("ib_write_bw", device, ["-s", "8"]))
    yield "port: down under ib_send_bw", traffic_ends("ib_send_bw", "mlx5_0")
    yield "port: down under ib_read_bw", traffic_ends("ib_read_bw", "mlx5_0")
    yield ("port: down under ib_write_bw of the other host",
           traffic_ends("ib_write_bw", "mlx5_0", host="host2"))
