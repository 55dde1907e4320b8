# SPDX-License-Identifier: BSD-2-Clause
"""softhca capture: what it writes, as tshark reads it, beside the ports' counters; readers and programs that stop or die."""
import collections
import contextlib
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time

import connections
from harness import Failure, Skip, expect, wait_listening, within, free_port

SECONDS = 30
ALL = ("host1/mlx5_0", "host1/mlx5_1", "host2/mlx5_0", "host2/mlx5_1")
ETHERNET, ERF = 1, 197


# ---- the files, read without anybody else's program ----

class File:
    """What stands in a capture file: interfaces by name, frames as (interface, sent, time, captured, whole), losses."""

    def __init__(self, data):
        self.names, self.types, self.frames, self.counts = [], [], [], {}
        at = 0
        while at < len(data):
            kind, length = struct.unpack_from("<II", data, at)
            expect(length >= 12 and length % 4 == 0 and at + length <= len(data), f"a block is cut off at {at} of {len(data)}")
            expect(struct.unpack_from("<I", data, at + length - 4)[0] == length, f"lengths of the block at {at} differ")
            self.block(kind, data[at + 8:at + length - 4])
            at += length

    @staticmethod
    def options(body):
        found, at = {}, 0
        while at < len(body):
            code, length = struct.unpack_from("<HH", body, at)
            found[code] = body[at + 4:at + 4 + length]
            at += 4 + (length + 3) // 4 * 4
        return found

    def block(self, kind, body):
        if kind == 1:
            self.types.append(struct.unpack_from("<H", body)[0])
            self.names.append(self.options(body[8:])[2].decode())
        elif kind == 6:
            which, high, low, captured, whole = struct.unpack_from("<IIIII", body)
            flags = struct.unpack("<I", self.options(body[20 + (captured + 3) // 4 * 4:])[2])[0]
            self.frames.append((self.names[which], flags == 2, high << 32 | low, body[20:20 + captured], whole))
        elif kind == 5:
            options = self.options(body[12:])
            self.counts[self.names[struct.unpack_from("<I", body)[0]]] = tuple(
                struct.unpack("<Q", options[code])[0] for code in (4, 5))

    def packets(self):
        """By port: how many it sent, how many it received; as counters count them, without the lane of SMPs."""
        found = collections.Counter()
        for name, sent, _time, data, _whole in self.frames:
            if self.types[self.names.index(name)] == ETHERNET or data[16] >> 4 != 15:
                found[name, sent] += 1
        return {name: (found[name, True], found[name, False]) for name in self.names}


def counters(session):
    status = session.tool("fabric", "status", "--json")
    expect(status.status == 0, status.text())
    return {f"{host['name']}/{port['device']}": (port["counters"]["port_xmit_packets"], port["counters"]["port_rcv_packets"])
            for host in json.loads(status.out)["hosts"] for port in host["ports"]}


@contextlib.contextmanager
def fabric(session, *options):
    expect(session.tool("fabric", "up", *options).status == 0, "no fabric")
    try:
        yield
    finally:
        session.tool("fabric", "down")


def begins(capture):
    line = capture.stderr.readline()
    expect(line.startswith("capturing "), f"it does not begin: {line}{capture.stderr.read() if capture.poll() is not None else ''}")


@contextlib.contextmanager
def capturing(session, *arguments, name="x.pcapng"):
    """Yields what holds, at the end, the path, the file and what the tool said."""
    result = type("Captured", (), {})()
    result.path = session.place / name
    capture = session.start([session.softhca, "capture", "-w", str(result.path), *arguments])
    capture.stderr._CHUNK_SIZE = 1
    result.process = capture
    try:
        begins(capture)
        yield result
        capture.send_signal(signal.SIGINT)
        ended = session.finish(capture)
        expect(ended.status == 0, ended.text())
        result.said = ended.text()
        result.file = File(result.path.read_bytes())
        expect(f"{len(result.file.frames)} packets captured\n" in result.said, result.said)
    finally:
        connections.end(capture)


def nothing_lost(captured):
    expect("\n0 packets dropped\n" in captured.said, captured.said)
    in_order(captured)


def in_order(captured):
    times = [frame[2] for frame in captured.file.frames]
    late = sum(a > b for a, b in zip(times, times[1:]))
    expect(not late, f"{late} of {len(times)} frames have an earlier time than the one in front of them")


def tshark(session, path, *arguments):
    connections.needs("tshark")
    result = session.call("tshark", "-r", str(path), *arguments)
    expect(result.status == 0, result.text())
    return result.out


def expect_sound(session, path, frames):
    """tshark takes each frame apart to its end."""
    lines = tshark(session, path, "-Y", "infiniband && !_ws.malformed && !_ws.short", "-T", "fields", "-e", "frame.number").split()
    expect(len(lines) == frames, f"{len(lines)} of {frames} frames are sound packets")


def perftest(session, program, device, *arguments):
    port = free_port()
    argv = (program, "-d", device, "-F", "-p", str(port), *arguments)
    server = session.background(*argv)
    try:
        wait_listening(port, server)
        client = session.run(*argv, "127.0.0.1", run_options=("--host", "host2"))
        expect(client.status == 0, client.text())
        expect(session.finish(server).status == 0, "the server fails")
    finally:
        connections.end(server)


# ---- rows ----

def transfers(session):
    """Each packet of each port, once; by WRITE, READ, SEND, atomics, on all transports."""
    with fabric(session):
        with capturing(session, "-s", "256", "-B", "64") as captured:
            for device in ("mlx5_0", "mlx5_1"):
                for program, arguments in (("ib_write_bw", ("-s", "20000")), ("ib_read_bw", ("-s", "5001")),
                                           ("ib_send_bw", ("-c", "UC", "-s", "9000")), ("ib_send_bw", ("-c", "UD", "-s", "999")),
                                           ("ib_atomic_bw", ()), ("ib_write_lat", ("-s", "2"))):
                    perftest(session, program, device, "-n", "50", *arguments)
            counted = counters(session)
        nothing_lost(captured)
        expect(sorted(captured.file.names) == sorted(ALL), captured.file.names)
        expect(captured.file.packets() == counted, f"{captured.file.packets()} frames, {counted} counted")
        expect(all(sent and received for sent, received in counted.values()), counted)
        expect(captured.file.counts == {name: (sum(counted[name]), 0) for name in ALL}, captured.file.counts)


def whole(session):
    """Whole packets, which tshark takes apart."""
    with fabric(session):
        with capturing(session, "-B", "64") as captured:
            for device in ("mlx5_0", "mlx5_1"):
                perftest(session, "ib_write_bw", device, "-n", "20", "-s", "20001")
                perftest(session, "ib_atomic_bw", device, "-n", "20")
                perftest(session, "ib_read_bw", device, "-n", "20", "-s", "1001")
                perftest(session, "ib_send_bw", device, "-n", "20", "-s", "1001", "-c", "UD")
            counted = counters(session)
        nothing_lost(captured)
        expect(captured.file.packets() == counted, f"{captured.file.packets()} frames, {counted} counted")
        expect_sound(session, captured.path, len(captured.file.frames))


def rping(session, *words):
    """A client on the second host."""
    result = session.run("rping", "-c", *words, run_options=("--host", "host2"))
    expect(connections.is_good(result), f"status {result.status} of rping: {result.text()}")


def expect_mads(session, captured, counted, *wanted):
    nothing_lost(captured)
    expect(captured.file.packets() == counted, f"{captured.file.packets()} frames, {counted} counted")
    expect_sound(session, captured.path, len(captured.file.frames))
    shown = set(tshark(session, captured.path, "-T", "fields", "-e", "infiniband.mad.mgmtclass",
                       "-e", "infiniband.mad.attributeid").splitlines())
    expect(set(wanted) <= shown, f"{set(wanted) - shown} is not there: {sorted(shown)}")


def managed(session):
    """SMPs: of a subnet manager and of infiniband-diags."""
    connections.needs("opensm", "ibnetdiscover")
    place = session.place / "opensm"
    place.mkdir()
    with fabric(session, "--sm", "external"):
        with capturing(session) as captured:
            manager = session.run("opensm", "-o", "-f", str(place / "log"), env={
                **session.env, "OSM_TMP_DIR": str(place), "OSM_CACHE_DIR": str(place)})
            expect(manager.status == 0, manager.text())
            session.run_ok("ibnetdiscover")
            counted = counters(session)
        expect_mads(session, captured, counted, "0x81\t0x0011", "0x81\t0x0015", "0x81\t0x0019")


def connected(session):
    """What rdma_cm says to connect and to disconnect, and the paths that it asks for."""
    connections.needs("rping")
    with fabric(session):
        with capturing(session) as captured:
            for address in ("198.18.0.1", "198.18.0.2"):
                connections.pair(session, ("rping", "-s", "-C", "3", "-a", address), ("rping", "-c", "-C", "3", "-a", address))
            counted = counters(session)
        expect_mads(session, captured, counted, *(f"0x07\t0x{kind:04x}" for kind in (0x10, 0x13, 0x14, 0x15, 0x16)))


def chosen(session):
    """-c, -s, -f and the names of ports."""
    with fabric(session):
        with capturing(session, "host1/mlx5_1", "mlx5_1:1", "-f", "opcode=write and transport=rc dqpn!=5", "-s", "77") as captured:
            perftest(session, "ib_write_bw", "mlx5_1", "-n", "30", "-s", "9000")
            perftest(session, "ib_read_bw", "mlx5_1", "-n", "5", "-s", "64")
            perftest(session, "ib_write_bw", "mlx5_0", "-n", "5", "-s", "64")
        nothing_lost(captured)
        expect(captured.file.names == ["host1/mlx5_1"], captured.file.names)
        expect(len(captured.file.frames) == 90, len(captured.file.frames))
        expect(all(len(f[3]) == 77 and f[4] > 800 for f in captured.file.frames), "not 77 octets of each")
        path = session.place / "few.pcapng"
        few = session.start([session.softhca, "capture", "-w", str(path), "-c", "7"])
        few.stderr._CHUNK_SIZE = 1
        begins(few)
        perftest(session, "ib_write_bw", "mlx5_1", "-n", "30", "-s", "9000")
        result = session.finish(few)
        expect(result.status == 0 and len(File(path.read_bytes()).frames) == 7, result.text())


def converted(session):
    """The other programs for such files, and a replay: each frame is as RoCE has it, up to its CRC."""
    connections.needs("capinfos", "mergecap", "editcap", "tcpdump", "rping")
    with fabric(session):
        server = session.background("rping", "-s", "-P", "-S", "999", "-a", "198.18.0.2")
        try:
            connections.listens(session, server)
            rping(session, "-C", "1", "-S", "999", "-a", "198.18.0.2")
            with capturing(session, "host1/mlx5_1", "-f", "transport=rc") as captured:
                rping(session, "-C", "20", "-S", "999", "-a", "198.18.0.2")
            expect(server.poll() is None, "the server has ended")
            nothing_lost(captured)
            came = [f for f in captured.file.frames if not f[1]]
            expect(len(came) > 60, f"{len(came)} frames came")
            path = session.place / "in.pcap"
            for argv, text in ((("capinfos", captured.path), "Ethernet"),
                               (("tcpdump", "-r", captured.path, "-c", "5"), "UDP"),
                               (("mergecap", "-w", session.place / "two.pcapng", captured.path, captured.path), ""),
                               (("editcap", "-F", "pcap", captured.path, path), "")):
                result = session.call(*(str(word) for word in argv))
                expect(result.status == 0 and text in result.text(), result.text())
            result = session.call("tshark", "-r", str(captured.path), "-Y", "frame.packet_flags_direction == 1", "-F", "pcap",
                                  "-w", str(path))
            expect(result.status == 0, result.text())
            before = counters(session)["host1/mlx5_1"][1]
            tied = session.tool("fabric", "tie", "mlx5_1", f"in={path}", "pace=top")
            expect(tied.status == 0, tied.text())
            expect(within(SECONDS, lambda: f"all in, in {len(came)}, out" in session.tool("fabric", "status").out),
                   session.tool("fabric", "status").text())
            expect(" in_bad 0" in session.tool("fabric", "status").out, session.tool("fabric", "status").text())
            expect(within(SECONDS, lambda: counters(session)["host1/mlx5_1"][1] - before == len(came)),
                   f"{counters(session)} after {len(came)} frames, {before} before")
            session.tool("fabric", "untie", "mlx5_1")
        finally:
            connections.end(server)


def stopped_reader(session):
    """A pipe that nobody empties: programs go on, and what is lost is counted, also in the file."""
    with fabric(session):
        read, write = os.pipe()
        capture = subprocess.Popen([session.softhca, "capture", "-w", "-", "-B", "1"], stdout=write, env=session.env,
                                   stderr=subprocess.PIPE, text=True, bufsize=0, start_new_session=True)
        os.close(write)
        try:
            capture.stderr._CHUNK_SIZE = 1
            begins(capture)
            perftest(session, "ib_write_bw", "mlx5_1", "-n", "500", "-s", "65536")
            capture.send_signal(signal.SIGINT)
            data = b"".join(iter(lambda: os.read(read, 1 << 20), b""))
            said = capture.stderr.read()
            expect(capture.wait(SECONDS) == 0, said)
            file = File(data)
            dropped = sum(count[1] for count in file.counts.values())
            expect(dropped > 1000 and f"\n{dropped} packets dropped" in said, f"{file.counts} {said}")
            counted = sum(sum(pair) for pair in counters(session).values())
            expect(len(file.frames) + dropped == counted, f"{len(file.frames)} and {dropped} of {counted}")
        finally:
            os.close(read)
            connections.end(capture)


def stopped_senders(session):
    """Threads stopped for a while at any moment, also between sending a packet and showing it: the order stays."""
    with fabric(session):
        with capturing(session, "-s", "80", "-B", "128") as captured:
            port = free_port()
            argv = ("ib_write_bw", "-d", "mlx5_1", "-F", "-p", str(port), "-s", "8192", "-n", "20000")
            server = session.background(*argv)
            client = None
            try:
                wait_listening(port, server)
                client = session.background(*argv, "127.0.0.1", run_options=("--host", "host2"))
                while client.poll() is None:
                    for process in (server, client):
                        process.send_signal(signal.SIGSTOP)
                        time.sleep(0.15)
                        process.send_signal(signal.SIGCONT)
                        time.sleep(0.05)
                for process in (client, server):
                    ended = session.finish(process)
                    expect(ended.status == 0, ended.text())
            finally:
                for process in (client, server):
                    process and connections.end(process)
        in_order(captured)
        expect(len(captured.file.frames) > 1000, len(captured.file.frames))


def takes_part(process):
    return "softhca-capture" in pathlib.Path(f"/proc/{process.pid}/maps").read_text()


def deaths(session):
    """Whoever is stopped or killed: nobody waits, and nothing stays behind."""
    connections.needs("rping")
    with fabric(session):
        server = session.background("rping", "-s", "-P", "-a", "198.18.0.1")

        def client():
            rping(session, "-C", "5", "-a", "198.18.0.1")
        try:
            connections.listens(session, server)
            for number in (signal.SIGKILL, signal.SIGSTOP):
                capture = session.start([session.softhca, "capture", "-w", str(session.place / "dead.pcapng")])
                capture.stderr._CHUNK_SIZE = 1
                try:
                    begins(capture)
                    expect(takes_part(server), "the server takes no part")
                    capture.send_signal(number)
                    client()
                finally:
                    connections.end(capture)
                expect(within(SECONDS, lambda: not takes_part(server)), "the buffer stays behind")
            client()
            # A program that is stopped does not keep the capture from beginning or ending.
            server.send_signal(signal.SIGSTOP)
            with capturing(session, "-s", "100") as captured:
                perftest(session, "ib_write_bw", "mlx5_1", "-n", "10", "-s", "64")
            expect("1 programs took no part" in captured.said and len(captured.file.frames) > 20, captured.said)
            server.send_signal(signal.SIGCONT)
            with capturing(session) as captured:
                client()
                server.kill()
                server.wait()
                time.sleep(0.2)
            expect(captured.file.packets()["host1/mlx5_0"] == captured.file.packets()["host2/mlx5_0"][::-1], captured.file.packets())
            # The daemon goes: the capture ends, and has what was there.
            with contextlib.suppress(Failure):
                with capturing(session, name="last.pcapng") as captured:
                    perftest(session, "ib_write_bw", "mlx5_1", "-n", "10", "-s", "64")
                    session.tool("fabric", "down")
                    result = session.finish(captured.process)
                    expect(result.status == 0 and "fabric 'default' has gone" in result.err, result.text())
            file = File((session.place / "last.pcapng").read_bytes())
            expect(file.packets()["host1/mlx5_1"][1] >= 10, file.packets())
        finally:
            server.poll() is None and connections.end(server)


def refused(session):
    """One line says what is wrong."""
    path = str(session.place / "never.pcapng")
    with fabric(session):
        for arguments, status, text in (
                (("-w", "/nowhere/x"), 125, "/nowhere/x: No such file or directory"),
                (("host9/mlx5_0", "-w", path), 125, "has no host 'host9'"),
                (("mlx5_7", "-w", path), 125, "has no device 'mlx5_7' with a port 1"),
                (("a b", "-w", path), 2, "'a b' is not the name of a port"),
                ((), 2, "-w FILE is missing"),
                (("-w", path, "-c", "0"), 2, "-c takes a number from 1"),
                (("-w", path, "-s", "x"), 2, "-s takes a number from 1"),
                (("-w", path, "-B", "4096"), 2, "-B takes a number from 1"),
                (("-w", path, "-f", "mac=1"), 2, "packets have no 'mac'; they have qpn"),
                (("-w", path, "-f", "qpn"), 2, "'qpn' is not FIELD=VALUE"),
                (("-w", path, "-f", "qpn=0x1000000"), 2, "qpn is a number up to 0xffffff, not '0x1000000'"),
                (("-w", path, "-f", "gid=1.2.3"), 2, "gid is an IPv6 or IPv4 address, not '1.2.3'"),
                (("-w", path, "-f", "opcode=sent"), 2, "opcode is send, write"),
                (("-w", path, "-f", "transport=tcp"), 2, "transport is rc, uc"),
                (("-w", path, "-f", "qpn=1 " * 9), 2, "more than 8 terms"),
                (("-w", "/dev/full"), 125, "/dev/full: No space left on device")):
            result = session.tool("capture", *arguments)
            first = result.err.splitlines()[0] if result.err else ""
            expect(result.status == status and first.startswith("softhca capture: ") and text in first,
                   f"{arguments}: {result.status} {result.text()}")
        expect(not os.path.exists(path), "a file was made")


def wireshark(session):
    """The ports in tshark's list of interfaces, and live."""
    connections.needs("tshark")
    place = session.place / "extcap"
    place.mkdir()
    program = place / "softhca"
    program.write_text(f'#!/bin/sh\nexec {session.softhca} capture "$@"\n')
    program.chmod(0o755)
    folders = session.call("tshark", "-G", "folders").out
    system = next((line.split("\t")[-1] for line in folders.splitlines() if line.startswith("Extcap path")), "")
    argv, env = ["tshark"], {**session.env, "WIRESHARK_EXTCAP_DIR": str(place)}
    if not os.geteuid():
        # tshark listens to the environment of users other than root only.
        argv = ["unshare", "-m", "sh", "-c", f'mount --bind {place} {system} && exec tshark "$@"', "sh"]
        if session.call("unshare", "-m", "mount", "--bind", str(place), system).status:
            raise Skip("no right to mount")
    with fabric(session):
        listed = session.call(*argv, "-D", env=env)
        for name in ALL:
            expect(f"softhca-{name} (softhca: {name})" in listed.out, listed.text())
        expect("softhca (softhca: all ports)" in listed.out, listed.text())
        for interface in ("softhca-host1/mlx5_0", "softhca"):
            live = session.start([*argv, "-i", interface, "-c", "10", "-T", "fields", "-e", "infiniband.lrh.vl"], env=env)
            try:
                deadline = time.monotonic() + SECONDS
                while live.poll() is None and time.monotonic() < deadline:
                    session.run_ok("ibnetdiscover")
                result = session.finish(live)
                expect(result.status == 0 and result.out.split() == ["0x0f"] * 10, result.text())
            finally:
                connections.end(live)
        bad = session.tool("capture", "--extcap-interface", "softhca", "--extcap-capture-filter", "qpn=x")
        expect(bad.status == 2 and "qpn is a number" in bad.out, bad.text())


def placed(row):
    """Gives the row a folder for its files."""
    def run(session):
        with tempfile.TemporaryDirectory() as place:
            session.place = pathlib.Path(place)
            row(session)
    return run


def cases():
    for name, row in (("packets and counters", transfers), ("packets in tshark", whole), ("MADs of a subnet manager", managed),
                      ("connections", connected), ("what is wanted", chosen), ("other programs", converted),
                      ("a reader that stops", stopped_reader), ("senders that stop", stopped_senders),
                      ("stopped and killed", deaths), ("what is refused", refused),
                      ("extcap", wireshark)):
        yield f"capture: {name}", placed(row)
