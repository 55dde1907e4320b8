#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines, each a fabric with a run-time directory of its own: on two loopback addresses, or in two network
namespaces with a cable (veth) between them.  Run in a user and network namespace of its own; the argument says which
step."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import roce_frames
import ties
from connections import is_good
from harness import Failure, Session, expect, free_port, wait_listening, within

PORT = "mlx5_1"
NAME = f"host1/{PORT}"
UDP_PORT = 4791
NETWORK = {"v4": ("10.9.0.1", "10.9.0.2", 24), "v6": ("fd09::1", "fd09::2", 64)}
UNKNOWN_QPN = 0xfffff0
CASES = (("ib_write_bw", "-n", "50"), ("ib_read_bw", "-n", "50"), ("ib_send_bw", "-n", "50"),
         ("ib_atomic_lat", "-n", "50"), ("ib_write_lat", "-n", "50"), ("ib_send_bw", "-n", "50", "-c", "UC"),
         ("ib_write_bw", "-n", "50", "-c", "UC"), ("ib_send_lat", "-n", "50", "-c", "UD"),
         ("ib_write_bw", "-n", "20", "-q", "4", "-s", "100000"))


def ip(*words, prefix=()):
    subprocess.run([*prefix, "ip", *words], check=True)


class Machine(Session):
    """A fabric; its programs run behind 'prefix', which leads into its network namespace."""
    def __init__(self, build, address, prefix=()):
        super().__init__(build)
        self.address, self.prefix = address, prefix

    def start(self, argv, **options):
        return super().start([*self.prefix, *argv], **options)

    def up(self, *tie_words):
        result = self.tool("fabric", "up")
        expect(result.status == 0, result.text())
        return self.tie(*tie_words)

    def tie(self, *words):
        text = ties.tie(self, PORT, *(words or (f"udp={self.address}",)))
        ties.is_state(self, "ACTIVE", NAME)
        return text

    def counts(self):
        return ties.port_of(self, NAME)["tie"]

    def down(self):
        self.tool("fabric", "down")
        self.expect_clean()

    def mtu(self):
        text = self.run_ok("ibv_devinfo", "-d", PORT).out
        return int(text.split("active_mtu:")[1].split()[0])


@contextlib.contextmanager
def joined(machines):
    """Their fabrics, up and tied to their addresses."""
    machines = list(machines)
    try:
        for machine in machines:
            machine.up()
        yield machines
        for machine in machines:
            machine.down()
    finally:
        for machine in machines:
            machine.close()


@contextlib.contextmanager
def loopback_pair(build):
    ip("link", "set", "lo", "up")
    with joined(Machine(build, address) for address in ("127.18.0.2", "127.18.1.2")) as machines:
        yield machines


@contextlib.contextmanager
def namespaces():
    """Two network namespaces, this one and that of a process that sleeps, with interfaces va and vb."""
    ip("link", "set", "lo", "up")
    other = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
    try:
        own = os.readlink("/proc/self/ns/net")
        expect(within(10, lambda: os.readlink(f"/proc/{other.pid}/ns/net") != own), "no other namespace")
        prefix = ("nsenter", "-t", str(other.pid), "-n", "--")
        ip("link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", str(other.pid))
        for name, end, where in (("va", 0, ()), ("vb", 1, prefix)):
            ip("link", "set", "lo", "up", prefix=where)
            for family in NETWORK.values():
                words = ("addr", "add", f"{family[end]}/{family[2]}", "dev", name)
                ip(*words, *(("nodad",) if ":" in family[end] else ()), prefix=where)
            ip("link", "set", name, "up", prefix=where)
        yield prefix
    finally:
        # The end of the namespace takes the interfaces away, but later.
        subprocess.run(["ip", "link", "del", "va"], check=False, stderr=subprocess.DEVNULL)
        other.kill()
        other.wait()


@contextlib.contextmanager
def namespace_pair(build, family="v4"):
    own, other = NETWORK[family][:2]
    with namespaces() as prefix, joined((Machine(build, own), Machine(build, other, prefix))) as machines:
        yield machines


def pair(machines, *argv, to=None, good=True):
    """A program of perftest: its server on the first machine, its client on the second."""
    one, two = machines
    port = str(free_port())
    server = one.background(*argv, "-p", port)
    try:
        wait_listening(int(port), server)
        client = two.background(*argv, "-p", port, to or one.address)
        results = one.finish_all({"server": server, "client": client})
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.communicate()
    if good:
        for name, result in results.items():
            expect(result.status == 0, f"{name} of {argv}: {result.status}\n{result.text()}")
    return results["client"]


def connected(machines, *argv, to=None):
    """A program that rdma_cm connects, which listens on no TCP port: the client tries again until the server is there."""
    one, two = machines
    port = str(free_port())
    server = one.background(*argv, "-p", port)
    try:
        def tried():
            result = two.run(*argv, "-p", port, to or one.address)
            return result.status == 0 or server.poll() is not None
        expect(within(60, tried), f"{argv}: no connection")
        result = one.finish(server)
        expect(result.status == 0, f"{argv}: {result.status}\n{result.text()}")
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.communicate()


def rping(machines, address):
    one, two = machines
    port = str(free_port())
    words = ("rping", "-C", "10", "-v", "-V", "-p", port, "-a", address)
    server = one.background(*words, "-s")
    try:
        last = []

        def done():
            last[:] = [two.run(*words, "-c", limit=60)]
            return is_good(last[0]) or server.poll() is not None
        good = within(60, done) and is_good(last[0])
        if not good and server.poll() is not None:
            last.append(one.finish(server))
        expect(good, "rping: " + "\n".join(f"{result.status} {result.text()}" for result in last))
        result = one.finish(server)
        expect("rdma-ping-9" in result.out, result.text())
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.communicate()


def nothing_bad(machines):
    for machine in machines:
        counts = machine.counts()
        expect(not any(counts[k] for k in ("in_bad", "in_checksum", "in_foreign")) and counts["in"] and counts["out"],
               f"{counts}")


def loopback(build):
    """Two addresses of 127.0.0.0/8: all transports, and rdma_cm in both directions."""
    with loopback_pair(build) as machines:
        expect(machines[0].mtu() == 4096, "the MTU of lo")
        gids = ties.port_of(machines[0], NAME)["gids"]
        expect([(g["index"], g["type"]) for g in gids] == [(0, "RoCE v2"), (3, "RoCE v2")], f"{gids}")
        for argv in CASES:
            pair(machines, *argv, "-d", PORT, "-x", "3")
        pair(machines, "ib_send_bw", "-n", "50", "-c", "XRC", "-d", PORT, "-x", "0")
        rping(machines, "127.18.0.2")
        rping(machines[::-1], "127.18.1.2")
        nothing_bad(machines)


@contextlib.contextmanager
def captured(name, path):
    """What dumpcap has of an interface, with times in microseconds; newer ones write nanoseconds."""
    written = path.with_suffix(".dumped")
    dump = subprocess.Popen(["dumpcap", "-q", "-P", "-B", "64", "-i", name, "-w", str(written), "-f", "udp"],
                            stderr=subprocess.PIPE, text=True)
    lines = []
    for line in dump.stderr:
        lines.append(line)
        if line.startswith("File:"):
            break
    expect(lines and lines[-1].startswith("File:"), f"dumpcap does not begin: {lines}")
    try:
        yield
        time.sleep(0.5)
    finally:
        dump.send_signal(signal.SIGINT)
        dump.communicate(timeout=30)
    subprocess.run(["editcap", "-F", "pcap", str(written), str(path)], check=True)
    written.unlink()


def tshark(path, expression):
    """How many packets of the file are so."""
    out = subprocess.run(["tshark", "-r", str(path), "-Y", expression], capture_output=True, text=True, check=True)
    return len(out.stdout.splitlines())


def whole(machines):
    """Each packet is a datagram of its own from now on.  On this cable the kernel does not cut what it need not."""
    for machine in machines:
        machine.tool("fabric", "untie", PORT)
        machine.tie(f"udp={machine.address}", "gso=off")


def namespaces_step(build):
    """A cable with packets of 1,500 bytes: IPv4 and IPv6, and what tshark says of all that passes."""
    for family in NETWORK:
        with namespace_pair(build, family) as machines:
            expect(all(machine.mtu() == 1024 for machine in machines), "the MTU of the cable")
            whole(machines)
            path = machines[0].runtime / "packets.pcap"
            with captured("va", path):
                for argv in CASES:
                    pair(machines, *argv, "-d", PORT, "-x", "3", to=NETWORK["v4"][0])
                rping(machines, machines[0].address)
            nothing_bad(machines)
            packets = tshark(path, "udp.port == 4791")
            expect(packets > 1000, f"{packets} packets")
            expect(tshark(path, "infiniband") == packets, "some are no RoCE")
            expect(tshark(path, "_ws.malformed") == 0, "some are malformed")
            # tshark does not look at the CRC.
            for data in ties.frames_of(path):
                if roce_frames.is_roce(data):
                    expect(data[-4:] == roce_frames.invariant_crc(data, "ip" + family), f"the CRC of {data.hex()}")
            expect(tshark(path, "infiniband.cm.req"), "no request of rdma_cm")
            if family == "v4":
                expect(tshark(path, "ip.id != 0 || ip.flags.df == 0") == 0, "headers that the CRC does not cover as they are")
            path.unlink()


def captured_here(machines):
    """How many requests of rdma_cm softhca capture has of a connection through the tie."""
    path = machines[0].runtime / "here.pcapng"
    capture = machines[0].start([machines[0].softhca, "capture", NAME, "-w", str(path)])
    expect(capture.stderr.readline().startswith("capturing "), "softhca capture does not begin")
    rping(machines, machines[0].address)
    capture.send_signal(signal.SIGINT)
    machines[0].finish(capture)
    requests = tshark(path, "infiniband.cm.req")
    path.unlink()
    return requests


def connections(build):
    """rdma_cm between machines: programs of perftest and rping, both ways, over IPv4 and IPv6."""
    for family in NETWORK:
        with namespace_pair(build, family) as machines:
            rping(machines, machines[0].address)
            rping(machines[::-1], machines[1].address)
            if family == "v4":
                for argv in (("ib_write_bw",), ("ib_read_lat",), ("ib_send_bw", "-c", "UD")):
                    connected(machines, *argv, "-d", PORT, "-n", "50", "-R")
            if family == "v4":
                expect(captured_here(machines), "softhca capture shows no MAD of the connection")
            # Nobody listens there.
            refused = machines[1].run("rping", "-c", "-C", "1", "-a", machines[0].address, "-p", str(free_port()))
            expect("REJECTED" in refused.text(), refused.text())
            nothing_bad(machines)


def network(build):
    """The interface's MTU, state and address change: the port follows, and so does a port that is tied anew."""
    with namespace_pair(build) as machines:
        one = machines[0]
        for mtu, wanted in ((9000, 4096), (4191, 2048), (352, 256), (1500, 1024)):
            ip("link", "set", "va", "mtu", str(mtu))
            expect(within(30, lambda: one.mtu() == wanted), f"MTU {mtu}: {one.mtu()}")
        ip("link", "set", "va", "mtu", "351")
        ties.is_state(one, "DOWN", NAME)
        ip("link", "set", "va", "mtu", "1500")
        ties.is_state(one, "ACTIVE", NAME)
        ip("link", "set", "vb", "down", prefix=machines[1].prefix)
        for machine in machines:
            ties.is_state(machine, "DOWN", NAME)
        ip("link", "set", "vb", "up", prefix=machines[1].prefix)
        for machine in machines:
            ties.is_state(machine, "ACTIVE", NAME)
        ip("addr", "del", "10.9.0.1/24", "dev", "va")
        ties.is_state(one, "DOWN", NAME)
        ip("addr", "add", "10.9.0.1/24", "dev", "va")
        ties.is_state(one, "ACTIVE", NAME)
        pair(machines, "ib_write_bw", "-n", "20", "-d", PORT, "-x", "3")
        # Its own addresses come back with the end of the tie, and the MTU.
        expect(one.tool("fabric", "untie", PORT).status == 0, "untie")
        gids = ties.port_of(one, NAME)["gids"]
        expect(gids[0]["type"] == "RoCE v1" and one.mtu() == 4096, f"{gids}")
        one.tie("udp", "peers=10.9.0.0/30")
        expect(one.counts()["to"] == "udp=10.9.0.1 peers=10.9.0.0/30", one.counts()["to"])
        pair(machines, "ib_write_bw", "-n", "20", "-d", PORT, "-x", "3")


def datagram(sgid, dgid, **what):
    """The payload of UDP of a packet that is right, and nobody's."""
    f = roce_frames.Frame(kind="ipv4", sgid=roce_frames.mapped(sgid), dgid=roce_frames.mapped(dgid),
                          operation="SEND_ONLY", qpn=UNKNOWN_QPN, payload=b"x" * 20, sport=UDP_PORT + 1)
    for name, value in what.items():
        setattr(f, name, value)
    return roce_frames.make(f)


SENDER = """
import socket, sys
own, to, sport, raw = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "raw"
if raw:
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 10, 3)
    s.bind((own, sport))
for line in sys.stdin:
    s.sendto(bytes.fromhex(line), (to, 4791))
"""


def send_from(machine, own, to, packets, raw=False):
    """Datagrams by a program of plain sockets; raw: with their IP headers."""
    subprocess.run([*machine.prefix, sys.executable, "-c", SENDER, own or "-", to, str(UDP_PORT + 1), "raw" if raw else "udp"],
                   input="\n".join(p.hex() for p in packets), text=True, check=True)


def counted(machine, before, **wanted):
    def right():
        now = machine.counts()
        return all(now[name] - before[name] == value for name, value in wanted.items())
    if not within(30, right):
        raise Failure(f"not {wanted}: {before}, then {machine.counts()}")


def queue_pair(machine):
    """The number of the queue pair of a fresh program."""
    process = machine.background("stdbuf", "-oL", "ibv_rc_pingpong", "-d", PORT, "-g", "3", "-p", str(free_port()))
    try:
        return int(process.stdout.readline().split("QPN ")[1].split(",")[0], 16)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def strangers(build):
    """Datagrams of others: what is spoiled, of no peer, or for nobody is dropped and counted as that; identifications of
    any kind are right."""
    with namespace_pair(build) as machines:
        one, two = machines
        own, to = two.address, one.address
        good = datagram(own, to)
        body = good[42:]
        spoiled = body[:-6] + bytes((body[-6] ^ 1,)) + body[-5:]
        numbers = [queue_pair(one) for _ in range(6)]
        expect(len(set(numbers)) == 6 and any(number % 1024 for number in numbers), f"who knows one knows {numbers}")
        before = one.counts()
        send_from(two, own, to, [body] * 3)
        counted(one, before, in_dropped=3, in_bad=0, in_checksum=0, in_foreign=0)
        send_from(two, own, to, [spoiled] * 5)
        counted(one, before, in_dropped=8, in_bad=5, in_checksum=5, in_foreign=0)
        # No RoCE at all: too short, no such operation, another version.
        send_from(two, own, to, [b"", b"x", bytes(11), bytes((0x1f,)) + body[1:], body[:1] + b"\x4f" + body[2:], bytes(9000)[:1400]])
        counted(one, before, in_dropped=14, in_bad=11, in_checksum=6, in_foreign=0)
        # As cards and other systems do: identifications, with and without leave to fragment.
        packets = []
        for number in (1, 0x1234, 0x8000, 0xffff):
            for flags in (0x4000, 0):
                frame = bytearray(good)
                frame[18:22] = number.to_bytes(2, "big") + flags.to_bytes(2, "big")
                packets.append(bytes(frame[14:-4]) + roce_frames.invariant_crc(frame, "ipv4"))
        send_from(two, own, to, packets, raw=True)
        counted(one, before, in_dropped=14 + len(packets), in_bad=11, in_checksum=6, in_foreign=0)
        # From an address that is on no peers' network, although the kernel lets it in.
        ip("addr", "add", "10.8.0.2/24", "dev", "vb", prefix=two.prefix)
        ip("route", "add", "10.8.0.0/24", "dev", "va")
        send_from(two, "10.8.0.2", to, [datagram("10.8.0.2", to)[42:], b"", spoiled])
        counted(one, before, in_dropped=17 + len(packets), in_bad=11, in_checksum=6, in_foreign=3)
        text = one.tool("fabric", "status").out
        expect("in_checksum 6, in_foreign 3" in text, text)
        # And the other way: a program that sends to somebody who is no peer is told.
        pair(machines, "ib_write_bw", "-n", "20", "-d", PORT, "-x", "3")
        expect(two.tool("fabric", "untie", PORT).status == 0, "untie")
        two.tie(f"udp={two.address}", "peers=10.7.0.0/16")
        client = pair(machines, "ib_write_bw", "-n", "20", "-c", "UC", "-d", PORT, "-x", "3", good=False)
        expect(within(30, lambda: "none of the peers" in two.counts().get("warning", "")),
               f"{two.counts()}\n{client.text()}")


def killed(build):
    """A peer that dies, a carrier that dies, and both tied anew in the other order."""
    with namespace_pair(build) as machines:
        one, two = machines
        for what in ("program", "carrier"):
            port = str(free_port())
            words = ("ib_write_bw", "-d", PORT, "-x", "3", "-p", port, "-D", "100", "-s", "4096")
            server = one.background(*words)
            wait_listening(int(port), server)
            client = two.background(*words, one.address, run_options=("--explain",))
            before = one.counts()["in"]
            expect(within(60, lambda: one.counts()["in"] > before + 1000), "no traffic")
            if what == "program":
                os.killpg(server.pid, signal.SIGKILL)
            else:
                os.kill(one.counts()["pid"], signal.SIGKILL)
                ties.is_state(one, "DOWN", NAME)
            result = two.finish(client, 60)
            expect(result.status != 0 and "Failed status 12" in result.text(), f"{what}: {result.text()}")
            expect("the peer is on another machine" in result.text(), f"{what}: {result.text()}")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.communicate()
            if what == "carrier":
                expect(one.counts()["pid"] == 0, "its carrier has ended")
                one.tie()
            pair(machines, "ib_write_bw", "-n", "20", "-d", PORT, "-x", "3")
        # A fabric that goes and comes again is the same peer.
        one.tool("fabric", "down")
        one.up()
        pair(machines, "ib_write_bw", "-n", "20", "-d", PORT, "-x", "3")
        rping(machines, one.address)


def peer(machine, address):
    """What status says of a machine; {}: it knows none of that address."""
    return next((p for p in machine.counts()["peers"] if p["address"] == address), {})


def peers(build):
    """Status has a row for each machine, whose counts are those of the port; what is lost and sent again shows there."""
    with namespace_pair(build) as machines:
        one, two = machines
        for argv in CASES[:6]:
            pair(machines, *argv, "-d", PORT, "-x", "3")
        for own, other in ((one, two), (two, one)):
            counts, row = own.counts(), peer(own, other.address)
            expect(len(counts["peers"]) == 1 and not counts["unlisted"], f"{counts}")
            expect(all(row[name] == counts[name] for name in ("in", "out", "in_dropped")), f"{counts}")
            expect(row["in_bytes"] > row["in"] * 48 and row["out_bytes"] > row["out"] * 48, f"{row}")
            expect(0 < row["rtt_least_ns"] <= 1e9 and row["heard_ms_ago"] < 60000, f"{row}")
            expect(not any(row[name] for name in ("in_checksum", "in_missed", "out_missed", "unreachable")), f"{row}")
            # On a busy machine some packets are sent again: both sides say so.
            expect(row["out_repeated"] == peer(other, own.address)["in_repeated"], f"{row}\n{peer(other, own.address)}")
            text = own.tool("fabric", "status").out
            expect(f"      {other.address}: in {row['in']}, in_bytes " in text and "round trip " in text, text)
        # What one side sees of a loss, the other side sees, too.
        expect(one.tool("fabric", "impair", "loss=1", "what=data", "seed=7").status == 0, "impair")
        pair(machines, "ib_write_bw", "-n", "300", "-d", PORT, "-x", "3")
        one.tool("fabric", "impair", "loss=0")
        before = row
        row, back = peer(two, one.address), peer(one, two.address)
        expect(row["out_repeated"] > before["out_repeated"] and row["out_repeated"] == back["in_repeated"], f"{row}\n{back}")
        expect(row["out_missed"] and row["out_missed"] == back["in_missed"], f"{row}\n{back}")
        # Many addresses, each with a row of its own.
        expect(one.tool("fabric", "untie", PORT).status == 0, "untie")
        one.tie(f"udp={one.address}", "peers=10.0.0.0/8")
        many = [f"10.77.{n // 250}.{n % 250 + 1}" for n in range(2000)]
        for name in ("all", "default", "va"):
            pathlib.Path(f"/proc/sys/net/ipv4/conf/{name}/rp_filter").write_text("0")
        ip("route", "add", "10.77.0.0/16", "dev", "va")
        for at in range(0, len(many), 50):
            send_from(two, None, one.address, [datagram(a, one.address)[14:] for a in many[at:at + 50]], raw=True)
            expect(within(30, lambda: len(one.counts()["peers"]) == at + 50), f"{len(one.counts()['peers'])} and not {at + 50}")
        rows = one.counts()["peers"]
        expect([r["address"] for r in rows] == many and all(r["in"] == r["in_dropped"] == 1 for r in rows), f"{rows[:3]}")
        text = one.tool("fabric", "status").out
        expect(f"and {len(many) - 64} more" in text, text)


def counters(machine, *names):
    values = ties.port_of(machine, NAME)["hw_counters"]
    return [values[name] for name in names]


def silence(machines, reason, before=lambda: None):
    """A connection falls silent in 'before', and the line that explains it names the reason."""
    one, two = machines
    port = str(free_port())
    words = ("ib_write_bw", "-d", PORT, "-x", "3", "-p", port, "-D", "100", "-s", "4096")
    server = one.background(*words)
    wait_listening(int(port), server)
    client = two.background(*words, one.address, run_options=("--explain",))
    (seen,) = counters(one, "rx_write_requests")
    expect(within(60, lambda: counters(one, "rx_write_requests")[0] > seen + 200), "no traffic")
    try:
        before(server)
        result = two.finish(client, 60)
        lines = [line for line in result.text().splitlines() if "no answer after" in line]
        expect(result.status != 0 and lines and any(reason in line for line in lines), f"not '{reason}':\n{result.text()}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def kill_group(process):
    os.killpg(process.pid, signal.SIGKILL)


def explained(build):
    """Why a peer is silent: its host does not answer, has no tie, or has no such queue pair; a NAT is found."""
    with namespace_pair(build) as machines:
        one, two = machines
        # Its carrier is stopped: nothing at all comes.
        carrier = one.counts()["pid"]
        silence(machines, "the peer's host did not answer: nothing has come from there since",
                lambda _: os.kill(carrier, signal.SIGSTOP))
        os.kill(carrier, signal.SIGCONT)
        # Another program goes on.
        port = str(free_port())
        words = ("ib_send_lat", "-d", PORT, "-x", "3", "-p", port, "-D", "100", "-s", "8")
        other = one.background(*words)
        wait_listening(int(port), other)
        beside = two.background(*words, one.address)
        silence(machines, "the peer has no such queue pair", kill_group)
        for process in (other, beside):
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        # The port is not tied any more, so the host says that nobody has the port.
        silence(machines, "nobody has UDP port 4791", lambda _: one.tool("fabric", "untie", PORT))
        expect(peer(two, one.address)["unreachable"] > 0, f"{two.counts()}")
        one.tie()
        # The address is gone.
        def unplug(_):
            ip("addr", "del", "10.9.0.1/24", "dev", "va")
            # One entry, since "flush" does not end well while packets ask for the entry again.
            subprocess.run([*two.prefix, "ip", "neigh", "del", "10.9.0.1", "dev", "vb"], check=True)
        silence(machines, "no such host, or no way to it", unplug)
        ip("addr", "add", "10.9.0.1/24", "dev", "va")
        ties.is_state(one, "ACTIVE", NAME)
        pair(machines, "ib_write_bw", "-n", "20", "-d", PORT, "-x", "3")


NAT = """table ip nat {
  chain post { type nat hook postrouting priority 100; oifname "vb" meta l4proto udp masquerade to :20000-30000; }
}"""


def translated(build):
    """A NAT between two machines is recognised, and told of with what to do; a wrong CRC alone is not taken for one."""
    with namespace_pair(build) as machines:
        one, two = machines
        own, to = two.address, one.address
        body = datagram(own, to, sport=UDP_PORT + 1)[42:]
        send_from(two, own, to, [body[:12] + os.urandom(20) + body[32:] for _ in range(50)])
        expect(within(30, lambda: peer(one, own).get("in_checksum", 0) == 50), f"{one.counts()}")
        expect("warning" not in one.counts(), f"{one.counts()}")
        # Sent from 10.3.0.9, and here from a peer's address.
        packets = [datagram("10.3.0.9", to, psn=n, sport=UDP_PORT)[42:] for n in range(5)]
        send_from(two, own, to, packets)
        wanted = f"packets of {own} were sent from 10.3.0.9: a NAT is between"
        expect(within(30, lambda: wanted in one.counts().get("warning", "")), f"{one.counts()}")
        text = one.tool("fabric", "status").out
        expect(wanted in text and "a VPN" in text, text)
        # To another address, and from another port.
        for packets, wanted in (([datagram(own, "192.168.1.9", psn=n, sport=UDP_PORT + 1)[42:] for n in range(5)],
                                 f"packets of {own} were sent to 192.168.1.9"),
                                ([datagram(own, to, sport=UDP_PORT)[42:]], f"packets of {own} were sent from another port")):
            expect(one.tool("fabric", "untie", PORT).status == 0, "untie")
            one.tie()
            send_from(two, own, to, packets)
            expect(within(30, lambda: wanted in one.counts().get("warning", "")), f"{one.counts()}")
        # The kernel's own.
        expect(one.tool("fabric", "untie", PORT).status == 0, "untie")
        one.tie()
        subprocess.run([*two.prefix, "nft", "-f", "-"], input=NAT, text=True, check=True)
        client = pair(machines, "ib_write_bw", "-n", "5", "-d", PORT, "-x", "3", good=False)
        expect(client.status != 0, client.text())
        expect(within(30, lambda: "a NAT is between" in one.counts().get("warning", "")), f"{one.counts()}")


MARKS = """table ip marks {
  chain post { type filter hook postrouting priority 0; udp dport 4791 ip ecn ect0 ip ecn set ce; }
}"""


def congestion(build):
    """Datagrams that a router could mark; marked ones are answered by notifications, which the sender obeys."""
    names = ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled")
    with namespace_pair(build) as machines:
        one, two = machines
        whole(machines)
        path = one.runtime / "marks.pcap"
        with captured("va", path):
            pair(machines, "ib_write_bw", "-n", "50", "-d", PORT, "-x", "3")
        packets = tshark(path, "infiniband")
        expect(packets and tshark(path, "infiniband && ip.dsfield.ecn == 2") == packets, "not all can be marked")
        expect(counters(one, *names) == [0, 0, 0] and counters(two, *names) == [0, 0, 0], "marks of nobody")
        subprocess.run([*two.prefix, "nft", "-f", "-"], input=MARKS, text=True, check=True)
        with captured("va", path):
            pair(machines, "ib_write_bw", "-n", "500", "-d", PORT, "-x", "3")
            pair(machines, "ib_send_bw", "-c", "UC", "-n", "50", "-d", PORT, "-x", "3")
        marked, sent, _ = counters(one, *names)
        handled = counters(two, *names)[2]
        marks, notes = tshark(path, "ip.dsfield.ecn == 3"), tshark(path, "infiniband.bth.opcode == 0x81")
        expect(marked > 1000 and sent and sent <= marked, f"{marked} marked, {sent} sent")
        expect(notes == sent == handled, f"{notes} notifications, {sent} sent, {handled} handled")
        expect(marks == marked, f"{marks} marks, {marked} counted")
        expect(tshark(path, "infiniband.bth.opcode == 0x81 && ip.dsfield.ecn == 0") == notes, "marks of notifications")
        expect(tshark(path, "_ws.malformed") == 0, "some are malformed")
        path.unlink()
        nothing_bad(machines)


def verify(machines, *words):
    """The traffic checker, a side on each machine."""
    ends = socket.socketpair()
    sides = {}
    for number, (machine, end) in enumerate(zip(machines, ends)):
        sides[f"side {number}"] = machine.start(
            [machine.softhca, "run", "--", str(machine.build / "tests/traffic/verify"), "--device", PORT, "--gid-index",
             "3", "--side", str(number), "--control", str(end.fileno()), *words], pass_fds=(end.fileno(),))
    for end in ends:
        end.close()
    results = machines[0].finish_all(sides)
    for name, result in results.items():
        expect(result.status == 0, f"{words}: {name}: {result.status}\n{result.text()}")


def traffic(build):
    """Random operations over a cable that loses, repeats and reorders: every byte is right."""
    with namespace_pair(build) as machines:
        verify(machines, "--ops", "300", "--max-size", "100000")
        verify(machines, "--ops", "300", "--max-size", "1024", "--transport", "ud")
        for seed, fault in enumerate((("loss=1",), ("loss=5",), ("duplicate=2", "reorder=2"))):
            for machine in machines:
                result = machine.tool("fabric", "impair", *fault, "what=data")
                expect(result.status == 0, result.text())
            verify(machines, "--ops", "150", "--max-size", "20000", "--seed", str(seed))
            for machine in machines:
                machine.tool("fabric", "impair", "loss=0")
        nothing_bad(machines)


def bad_words(build):
    """What is no tie is said in one line, before anything changes."""
    with namespaces() as prefix:
        machines = [Machine(build, NETWORK["v4"][0]), Machine(build, NETWORK["v4"][1], prefix)]
        one = machines[0]
        try:
            expect(one.tool("fabric", "up", "--link-types", "eth,eth").status == 0, "up")
            for words, reason in (
                    (("udp=0.0.0.0",), "any address"), (("udp=::",), "any address"), (("udp=10.9.0.77",), "no address of this machine"),
                    (("udp=224.0.0.1",), "no address of this machine"), (("udp=10.9.0.255",), "no address of this machine"),
                    (("udp=fd09::77",), "no address of this machine"), (("udp=elsewhere",), "no address like"),
                    (("udp=fe80::1%none",), "no address like"), (("udp=10.9.0.1", "peers=10.9.0.0/33"), "no network like"),
                    (("udp=10.9.0.1", "peers=10.9.0.0/-1"), "no network like"), (("udp=10.9.0.1", "peers=10.9.0/24"), "no network like"),
                    (("udp=10.9.0.1", "peers=10.9.0.0/24,"), "no network like"), (("udp=10.9.0.1", "peers=fd09::/64"), "another family"),
                    (("udp=fd09::1", "peers=10.9.0.0/24"), "another family"),
                    (("udp=10.9.0.1", "peers=" + ",".join(["10.9.0.0/24"] * 17)), "one network too many")):
                text = ties.tie(one, PORT, *words, status=125)
                expect(reason in text and len(text.splitlines()) == 1, f"{words}: {text}")
            for words in (("peers=10.9.0.0/24",), ("udp", "tap=t"), ("udp=10.9.0.1", "udp=10.9.0.1"), ("udp=",),
                          ("udp", "in=f"), ("tap=t", "peers=10.9.0.0/24"), ("tap=t", "gso=off"), ("udp", "gso=maybe")):
                ties.tie(one, PORT, *words, status=2)
            ip("link", "set", "va", "mtu", "351")
            expect("takes packets of 351 bytes" in ties.tie(one, PORT, "udp=10.9.0.1", status=125), "a small MTU")
            ip("link", "set", "va", "mtu", "1500")
            # IPv6 does not outlive that.
            ip("addr", "add", "fd09::1/64", "dev", "va", "nodad")
            expect("tie" not in ties.port_of(one, NAME), "nothing is tied")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind(("0.0.0.0", UDP_PORT))
                text = ties.tie(one, PORT, "udp=10.9.0.1", status=125)
                expect("port 4791 of 10.9.0.1 is taken" in text, text)
            # The same address at another port of the fabric, or in another fabric.
            ties.tie(one, PORT, "udp=10.9.0.1")
            expect("is tied already" in ties.tie(one, PORT, "udp=fd09::1", status=125), "twice")
            expect("is taken" in ties.tie(one, "mlx5_0", "udp=10.9.0.1", status=125), "the same address")
            ties.tie(one, "mlx5_0", "udp=fd09::1")
            one.tool("fabric", "untie", "mlx5_0")
            one.tool("fabric", "untie", PORT)
            # GIDs of a port that is not tied.
            text = ties.tie(one, "mlx5_0", "udp=10.9.0.1", status=125)
            expect("another port of this fabric has that address" in text, text)
            one.down()
        finally:
            for machine in machines:
                machine.close()


GROUPS = {"v4": "239.1.2.3", "v6": "ff0e::4:5"}


def joined_groups(machine, name):
    """The addresses of groups that an interface takes."""
    out = subprocess.run([*machine.prefix, "ip", "maddr", "show", "dev", name], capture_output=True, text=True, check=True)
    return out.stdout.split()


def group(receivers, sender, address, count="20"):
    """mckey on each receiver, then on the sender, whose datagrams all of them have to get."""
    processes = {}
    try:
        for number, machine in enumerate(receivers):
            process = machine.background("stdbuf", "-oL", "mckey", "-m", address, "-b", machine.address, "-C", count)
            processes[f"receiver {number}"] = process
            lines = []
            while "receiving" not in (lines[-1] if lines else "") and process.poll() is None:
                lines.append(process.stdout.readline())
            expect("receiving" in lines[-1], f"{lines}")
        for machine in receivers:
            name = "vb" if machine.prefix else "va"
            expect(within(30, lambda m=machine, n=name: address in joined_groups(m, n)), f"{address} is not joined")
        processes["sender"] = sender.background("mckey", "-m", address, "-b", sender.address, "-s", "-C", count)
        results = sender.finish_all(processes)
    finally:
        for process in processes.values():
            if process.poll() is None:
                kill_group(process)
                process.communicate()
    for name, result in results.items():
        expect(result.status == 0 and "return status 0" in result.out, f"{name}: {result.text()}")


def groups(build):
    """Datagrams to groups: by IP multicast between machines, which hear of members by IGMP and MLD."""
    for family, address in GROUPS.items():
        with namespace_pair(build, family) as machines:
            one, two = machines
            path = one.runtime / "group.pcap"
            whole(machines)
            with captured("va", path):
                group([one, one], two, address)
            expect(within(30, lambda: address not in joined_groups(one, "va")), "still joined")
            where = "ip.dst" if family == "v4" else "ipv6.dst"
            expect(tshark(path, f"infiniband && {where} == {address} && infiniband.bth.destqp == 0xffffff") >= 20, "no datagrams")
            expect(tshark(path, "_ws.malformed") == 0, "some are malformed")
            path.unlink()
            for machine in machines:
                machine.tool("fabric", "untie", PORT)
                machine.tie()
            # Members here and there.
            group([two, one], one, address)
            for machine in machines:
                counts = machine.counts()
                expect(not any(counts[k] for k in ("in_bad", "in_checksum", "in_foreign", "in_dropped", "out_dropped")), f"{counts}")
            # A member that is killed leaves; a carrier that comes later hears of those that are there.
            member = one.background("stdbuf", "-oL", "mckey", "-m", address, "-b", one.address, "-C", "5")
            try:
                expect(within(30, lambda: address in joined_groups(one, "va")), "not joined")
                os.kill(one.counts()["pid"], signal.SIGKILL)
                expect(within(30, lambda: address not in joined_groups(one, "va")), "joined by nobody")
                one.tie()
                expect(within(30, lambda: address in joined_groups(one, "va")), "not joined again")
            finally:
                kill_group(member)
                member.communicate()
            expect(within(30, lambda: address not in joined_groups(one, "va")), "the dead are members")


def listen(build):
    """A fabric that comes up with its tie, or not at all."""
    with namespaces() as prefix:
        machines = one, two = [Machine(build, NETWORK["v4"][0]), Machine(build, NETWORK["v4"][1], prefix)]
        try:
            for words, reason in ((("10.9.0.77",), "no address of this machine"), (("elsewhere",), "no address like"),
                                  (("10.9.0.1", "--peers", "10.9.0.0/33"), "no network like")):
                result = one.tool("fabric", "up", "--listen", *words)
                expect(result.status == 125 and reason in result.err and len(result.text().splitlines()) == 1, result.text())
                expect(one.tool("fabric", "status").status == 1, "a fabric without what was asked for")
            result = one.tool("fabric", "up", "--peers", "10.9.0.0/24")
            expect(result.status == 2 and "--listen" in result.err, result.text())
            result = one.tool("fabric", "up", "--listen", "auto", "--link-types", "eth,ib,eth")
            expect(result.status == 0 and "host1/mlx5_2 is tied to udp=10.9.0.1 peers=10.9.0.0/24" in result.out, result.text())
            result = one.tool("fabric", "up", "--listen", "fd09::1")
            expect(result.status == 125 and "is tied already" in result.err, result.text())
            one.tool("fabric", "down")
            result = one.tool("fabric", "up", "--listen", "auto", "--link-types", "ib,ib")
            expect(result.status == 125 and "InfiniBand" in result.err, result.text())
            one.tool("fabric", "down")
            result = one.tool("fabric", "up", "--listen", "10.9.0.1")
            expect(result.status == 0, result.text())
            result = two.tool("fabric", "up", "--listen", "10.9.0.2", "--peers", "10.9.0.1")
            expect(result.status == 0 and two.counts()["to"] == "udp=10.9.0.2 peers=10.9.0.1", result.text())
            for machine in machines:
                ties.is_state(machine, "ACTIVE", NAME)
            pair(machines, "ib_write_bw", "-n", "20", "-d", PORT, "-x", "3")
            nothing_bad(machines)
            for machine in machines:
                machine.down()
        finally:
            for machine in machines:
                machine.close()


STEPS = {"groups": groups, "listen": listen, "peers": peers, "explained": explained, "translated": translated, "congestion": congestion, "loopback": loopback, "namespaces": namespaces_step, "connections": connections, "network": network,
         "strangers": strangers, "killed": killed, "traffic": traffic, "bad_words": bad_words}


def main():
    STEPS[sys.argv[2]](pathlib.Path(sys.argv[1]))
    print("done")


if __name__ == "__main__":
    main()
