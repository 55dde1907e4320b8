# SPDX-License-Identifier: BSD-2-Clause
"""Ethernet ports that are tied to pcap files, TAP interfaces and each other: `softhca fabric tie`."""
import contextlib
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys

from harness import TIME_LIMIT, Failure, Skip, expect, within

HERE = pathlib.Path(__file__).resolve().parent
MAGIC = {"microseconds": 0xa1b2c3d4, "nanoseconds": 0xa1b23c4d}


def frame(seed, length):
    r = random.Random(seed)
    return bytes((2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2)) + r.randbytes(length - 12)


def swapped(data):
    return data[6:12] + data[:6] + data[12:]


def pcap(frames, order="<", magic="microseconds", linktype=1, gap_us=100):
    head = struct.pack(order + "IHHiIII", MAGIC[magic], 2, 4, 0, 0, 65535, linktype)
    unit = 1000 if magic == "nanoseconds" else 1
    return head + b"".join(
        struct.pack(order + "IIII", 1000, i * gap_us * unit, len(f), len(f)) + f
        for i, f in enumerate(frames))


def frames_of(path):
    data, at, frames = pathlib.Path(path).read_bytes(), 24, []
    expect(struct.unpack_from("<I", data)[0] == MAGIC["microseconds"], "no pcap file")
    while at < len(data):
        length, whole = struct.unpack_from("<8xII", data, at)
        expect(length == whole, f"a frame in part: {length} of {whole}")
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames


@contextlib.contextmanager
def fabric(session, *options):
    up = session.tool("fabric", "up", "--link-types", "eth,eth", *options)
    expect(up.status == 0, up.text())
    try:
        yield
    finally:
        session.tool("fabric", "down")


@contextlib.contextmanager
def reflector(session, device="mlx5_0", host="host1", count=0, start=False):
    """A program on the port that sends back what comes, with swapped addresses."""
    argv = [str(session.build / "tests/clients/reflect"), device, str(count)]
    process = session.background(*argv, *(["start"] if start else []), run_options=("--host", host))
    try:
        expect(process.stdout.readline() == "ready\n", "the reflector does not come up")
        yield process
    finally:
        if process.returncode is None:
            os.kill(process.pid, signal.SIGTERM)
            session.finish(process)


def raw_packets():
    if os.geteuid() != 0:
        raise Skip("raw packet queues need root")


def tie(session, *words, status=0):
    result = session.tool("fabric", "tie", *words)
    expect(result.status == status, f"status {result.status}: {result.text()}")
    return result.text()


def port_of(session, name="host1/mlx5_0", fabric=None):
    host, device = name.split("/")
    where = ("--fabric", fabric) if fabric else ()
    status = json.loads(session.tool("fabric", "status", *where, "--json").out)
    ports = next(h["ports"] for h in status["hosts"] if h["name"] == host)
    return next(p for p in ports if p["device"] == device)


def counted(session, name="host1/mlx5_0", **values):
    """Waits for counts of a tie."""
    if not within(30, lambda: all(port_of(session, name)["tie"][k] == v for k, v in values.items())):
        raise Failure(f"not {values} but {port_of(session, name)['tie']}")


def counted_at_least(session, what, count, name="host1/mlx5_0"):
    if not within(30, lambda: port_of(session, name)["tie"][what] >= count):
        raise Failure(f"not {count} of '{what}' but {port_of(session, name)['tie']}")


def is_state(session, state, name="host1/mlx5_0"):
    if not within(30, lambda: state in port_of(session, name)["state"]):
        raise Failure(f"{name} is {port_of(session, name)['state']} and not {state}")


def files(session):
    """Frames of a file come to a program and back into a file, byte by byte, in each pace and form."""
    raw_packets()
    sizes = [14, 15, 60, 64, 65, 1514, 1518, 9216] * 5
    frames = [frame(i, n) for i, n in enumerate(sizes)]
    odd = frames[:7] + [b"x" * 13, bytes(9217)] + frames[7:]  # neither is a frame
    first, out = session.runtime / "in.pcap", session.runtime / "out.pcap"
    with fabric(session):
        for form, words, times in (
                (dict(), ("pace=original",), 1), (dict(order=">"), ("pace=top",), 1),
                (dict(magic="nanoseconds"), ("pace=3000", "loop=2"), 2),
                (dict(magic="nanoseconds", order=">"), ("pace=top", "loop=3"), 3)):
            first.write_bytes(pcap(odd, **form))
            text = tie(session, "mlx5_0", f"in={first}", f"out={out}", *words)
            expect(text == f"host1/mlx5_0 is tied to in={str(first)[:50]} out={str(out)[:50]}\n",
                   text)
            expect("already" in tie(session, "mlx5_0", "tap=never", status=125), "tied twice")
            with reflector(session):
                counted(session, all_in=True, out=times * len(frames))
            counted(session, **{"in": times * len(frames), "in_dropped": 2 * times,
                                "out_dropped": 0})
            expect(session.tool("fabric", "untie", "mlx5_0").status == 0, "untie")
            expect(frames_of(out) == times * [swapped(f) for f in frames], f"bytes {form} {words}")
        is_state(session, "ACTIVE")
        # What a stock reader makes of it.
        with contextlib.suppress(FileNotFoundError):
            dump = session.call("tcpdump", "-nr", str(out))
            expect(dump.status == 0 and "link-type EN10MB" in dump.err, dump.text())
    first.unlink()
    out.unlink()


def bad_words(session):
    """What is no tie, and no file of frames, is said before anything changes."""
    some = session.runtime / "some.pcap"
    good = pcap([frame(1, 100), frame(2, 100)])
    with fabric(session, "--hosts", "1"):
        for words in ((), ("mlx5_0",), ("mlx5_0", "foo=1"), ("mlx5_0", "tap="), ("a b", "tap=t"),
                      ("mlx5_0", "tap=t", "out=o"), ("mlx5_0", "pace=top", "out=o"),
                      ("mlx5_0", "in=i", "in=j"), ("mlx5_0", "in=i", "pace=fast"),
                      ("mlx5_0", "in=i", "loop=0"), ("mlx5_0:x", "tap=t")):
            tie(session, *words, status=2)
        for words, reason in (
                (("mlx5_7", "tap=t"), "has no device 'mlx5_7'"),
                (("mlx5_0:2", "tap=t"), "has no device 'mlx5_0' with a port 2"),
                (("host9/mlx5_0", "tap=t"), "has no host 'host9'"),
                (("mlx5_0", "port=mlx5_0"), "tied to itself"),
                (("mlx5_0", "port=host1/mlx5_5"), "no device 'mlx5_5'"),
                (("mlx5_0", "tap=" + 16 * "x"), "no name for an interface"),
                (("mlx5_0", "in=/no/such"), "No such file"),
                (("mlx5_0", "in=/dev/zero"), "is no pcap file"),
                (("mlx5_0", "out=/no/such/file"), "No such file"),
                (("mlx5_0", "out=/dev/full"), "No space left")):
            expect(reason in tie(session, *words, status=125), f"{words}: not '{reason}'")
        for content, reason in (
                (b"", "too short for a pcap file"), (good[:23], "too short for a pcap file"),
                (b"\x7fELF" + bytes(100), "is no pcap file"),
                (b"\x0a\x0d\x0d\x0a" + bytes(100), "is a pcapng file"),
                (pcap([frame(1, 60)], linktype=113), "not Ethernet (link type 113"),
                (pcap([]), "has no frame"), (good[:-1], "frame 2 is cut off"),
                (good[:24 + 15], "frame 1 is cut off"), (good + b"x", "frame 3 is cut off"),
                (good[:32] + b"\xff\xff\xff\x7f" + good[36:], "frame 1 is cut off")):
            some.write_bytes(content)
            text = tie(session, "mlx5_0", f"in={some}", status=125)
            expect(reason in text, f"not '{reason}' but {text}")
        some.write_bytes(good)
        text = tie(session, "mlx5_0", f"in={some}", f"out={some}", status=125)
        expect("cannot go where they come from" in text and some.read_bytes() == good, text)
        result = session.tool("fabric", "untie", "mlx5_0")
        expect(result.status == 125 and "is not tied" in result.err, result.text())
        expect("tie" not in port_of(session) and "ACTIVE" in port_of(session)["state"], "its state")
    some.unlink()
    with fabric_of_types(session, "ib,eth"):
        expect("port of InfiniBand" in tie(session, "mlx5_0", "tap=t", status=125), "InfiniBand")
        expect("port of InfiniBand" in tie(session, "mlx5_1", "port=host2/mlx5_0", status=125),
               "InfiniBand at the other end")
    expect("not running" in tie(session, "mlx5_0", "tap=t", status=125), "no fabric")


@contextlib.contextmanager
def fabric_of_types(session, types):
    up = session.tool("fabric", "up", "--link-types", types)
    expect(up.status == 0, up.text())
    try:
        yield
    finally:
        session.tool("fabric", "down")


def killed(session):
    """Whoever is killed, the others go on: the port is down without its carrier, and can be tied anew."""
    raw_packets()
    first, out = session.runtime / "in.pcap", session.runtime / "out.pcap"
    first.write_bytes(pcap([frame(i, 100) for i in range(50)]))
    words = ("mlx5_0", f"in={first}", f"out={out}", "pace=top", "loop=forever")
    with fabric(session):
        tie(session, *words)
        with reflector(session) as program:
            expect(within(30, lambda: port_of(session)["tie"]["out"] > 100), "no frames")
            os.kill(port_of(session)["tie"]["pid"], signal.SIGKILL)
            is_state(session, "DOWN")
            expect(port_of(session)["tie"]["pid"] == 0, "its carrier has ended")
            is_state(session, "ACTIVE", "host1/mlx5_1")
            tie(session, *words)
            is_state(session, "ACTIVE")
            expect(within(30, lambda: port_of(session)["tie"]["out"] > 100), "no frames afterwards")
            os.killpg(program.pid, signal.SIGKILL)
        expect(within(30, lambda: port_of(session)["tie"]["pid"] != 0), "the carrier goes on")
        with reflector(session):
            before = port_of(session)["tie"]["out"]
            expect(within(30, lambda: port_of(session)["tie"]["out"] > before + 100), "with the next")
        os.kill(port_of(session)["tie"]["pid"], signal.SIGTERM)
        is_state(session, "DOWN")
        expect(session.tool("fabric", "untie", "mlx5_0").status == 0, "untie")
        is_state(session, "ACTIVE")
        # A carrier has nothing to do without a daemon.
        tie(session, *words)
        (daemon,) = session.daemons()
        os.kill(daemon, signal.SIGKILL)
        expect(within(30, lambda: not session.processes()), f"left: {session.processes()}")
    first.unlink()
    out.unlink()


def spoiled(session):
    """A file that changes under a carrier: status says so until the port is tied anew."""
    raw_packets()
    first = session.runtime / "in.pcap"
    whole = pcap([frame(i, 100) for i in range(50)])
    first.write_bytes(whole)
    words = ("mlx5_0", f"in={first}", "pace=top", "loop=forever")
    with fabric(session):
        tie(session, *words)
        with reflector(session):
            expect(within(30, lambda: port_of(session)["tie"]["in"] > 100), "no frames")
            expect("warning" not in port_of(session)["tie"], "a warning of nothing")
            with open(first, "r+b") as file:
                file.truncate(len(whole) // 2)
            expect(within(30, lambda: "cannot be read any more" in
                          port_of(session)["tie"].get("warning", "")), "no warning")
            text = session.tool("fabric", "status").out
            expect("      the pcap file has been changed: its frame " in text, text)
            expect(session.tool("fabric", "untie", "mlx5_0").status == 0, "untie")
            first.write_bytes(whole)
            tie(session, *words)
            expect("warning" not in port_of(session)["tie"], "a former tie's warning")
    first.unlink()


def stopped(session):
    """A carrier that is stopped holds nobody up: frames for it are lost and counted."""
    raw_packets()
    out = session.runtime / "out.pcap"
    with fabric(session):
        tie(session, "mlx5_0", f"out={out}")
        carrier = port_of(session)["tie"]["pid"]
        os.kill(carrier, signal.SIGSTOP)
        try:
            with reflector(session, device="mlx5_1", host="host1", count=2000), \
                    reflector(session, device="mlx5_1", host="host2", count=2000, start=True) as one:
                expect(session.finish(one).status == 0, "frames of other ports")
            devices = session.tool("devices")
            expect(devices.status == 0, "the daemon answers")
            result = session.run(str(session.build / "bench/frames"), "mlx5_0", "near")
            expect(result.status == 0, result.text())
            expect(int(port_of(session)["counters"]["port_xmit_discards"]) > 0, "counted")
        finally:
            os.kill(carrier, signal.SIGCONT)
        expect(within(30, lambda: port_of(session)["tie"]["out"] > 100), "it goes on")
        expect(session.tool("fabric", "untie", "mlx5_0").status == 0, "untie")
        expect(within(30, lambda: not os.path.exists(f"/proc/{carrier}")), "it ends")
        frames_of(out)
    out.unlink()


def cable(session):
    """Two ports with a cable between them: frames and RoCE pass there, and to nobody else."""
    raw_packets()
    with fabric(session, "--hosts", "3"):
        tie(session, "mlx5_0", "port=host2/mlx5_0")
        expect(port_of(session, "host2/mlx5_0")["tie"]["to"] == "port=host1/mlx5_0", "its end")
        with reflector(session, host="host3") as third, \
                reflector(session, host="host2", count=500) as other, \
                reflector(session, host="host1", count=500, start=True) as one:
            expect(session.finish(one).status == 0 and session.finish(other).status == 0, "frames")
            os.kill(third.pid, signal.SIGTERM)
            expect(session.finish(third).out == "0\n", "the third hears nothing")
        expect(roce_between(session, "host2"), "RoCE through the cable")
        expect(not roce_between(session, "host3", 4), "RoCE to where no cable leads")
        session.tool("fabric", "port", "host2/mlx5_0", "down")
        is_state(session, "DOWN")
        session.tool("fabric", "port", "host2/mlx5_0", "up")
        is_state(session, "ACTIVE")
        expect(session.tool("fabric", "untie", "host2/mlx5_0").status == 0, "untie")
        expect("tie" not in port_of(session), "both ends are free")
        expect(roce_between(session, "host3"), "RoCE on the segment")


def roce_between(session, host, limit=TIME_LIMIT):
    from harness import free_port, wait_listening
    port = str(free_port())
    argv = ["ibv_ud_pingpong", "-d", "mlx5_0", "-g", "1", "-n", "10", "-p", port]
    server = session.background(*argv, run_options=("--host", host))
    try:
        wait_listening(int(port), server)
        client = session.background(*argv, "127.0.0.1", run_options=("--host", "host1"))
        try:
            return session.finish(client, limit).status == 0
        except Failure:
            return False
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def inside(session, program, *words):
    """Runs a program of this directory, or one whose path is given, in a network namespace without root."""
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if probe.returncode or not os.path.exists("/dev/net/tun"):
        raise Skip("no network namespace or no /dev/net/tun: " + probe.stderr.decode().strip())
    result = session.call("unshare", "-rn", sys.executable, str(HERE / program), str(session.build),
                          *map(str, words), limit=900)
    expect(result.status == 0 and "done" in result.out, result.text())


def tap(session):
    """A TAP interface: frames both ways, and the link's state."""
    inside(session, "tap_inside.py")


def roce(session):
    """Two fabrics with a cable between TAP interfaces: stock programs by all kinds of addresses, and faults."""
    inside(session, "roce_inside.py")


def cases():
    return [(f"ties: {test.__name__.replace('_', ' ')}", test) for test in (
        files, bad_words, killed, spoiled, stopped, cable, tap, roce)]
