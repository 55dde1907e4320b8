#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two fabrics whose tied ports meet in this program, which looks at each frame and loses, repeats, swaps, spoils and
forges some.  Run in a user and network namespace of its own."""
import collections
import contextlib
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import sys
import threading

import roce_frames
import ties
from harness import TIME_LIMIT, Failure, Session, expect, free_port, wait_listening, within

ETH_P_ALL = 3
MTU = 4300
POOR_FRAMES = 150
ENDS = (("one", "host1", "one0"), ("two", "host2", "two0"))


class Cable(threading.Thread):
    """Each frame of one end goes to the other, as the fault has it."""
    def __init__(self):
        super().__init__(daemon=True)
        self.sockets = [self.socket_of(name) for _, _, name in ENDS]
        self.seen = collections.Counter()  # (kind, transport, operation)
        self.looks = set()  # (kind, traffic class, hops)
        self.wrong = []
        self.done = collections.Counter()
        self.fault = self.whole
        self.draw = random.Random(1)
        self.held = [None, None]
        self.stop_pipe = os.pipe()
        self.start()

    @staticmethod
    def socket_of(name):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        s.bind((name, 0))
        return s

    def run(self):
        """The interfaces go with the fabrics, if a step has failed."""
        with contextlib.suppress(OSError):
            self.carry_all()

    def carry_all(self):
        while True:
            # What is held back goes when nothing comes for a while.
            ready, _, _ = select.select([*self.sockets, self.stop_pipe[0]], [], [],
                                        0.005 if any(self.held) else None)
            if self.stop_pipe[0] in ready:
                return
            for end, s in enumerate(self.sockets):
                if s in ready:
                    data, address = s.recvfrom(16384)
                    if address[2] != socket.PACKET_OUTGOING:
                        self.carry(end, data)
                elif self.held[end] and not ready:
                    self.put(end, self.held[end])
                    self.held[end] = None

    def carry(self, end, data):
        if not roce_frames.is_roce(data):
            self.put(end, data)
            return
        try:
            f = roce_frames.take(data)
            expect(roce_frames.make(f) == data, f"made anew it differs: {data.hex()}")
        except Failure as failure:
            self.wrong.append(str(failure))
            return
        self.seen[f.kind, f.transport, f.operation] += 1
        self.looks.add((f.kind, f.traffic_class, f.hops))
        self.fault(end, data, f)

    def put(self, end, data):
        try:
            self.sockets[1 - end].send(data)
        except OSError:
            self.done["refused"] += 1  # the queue of the interface is full

    def close(self):
        os.write(self.stop_pipe[1], b"x")
        self.join()
        for s in self.sockets:
            s.close()
        for fd in self.stop_pipe:
            os.close(fd)

    # ---- faults ----

    def whole(self, end, data, _):
        self.put(end, data)

    def poor(self, end, data, _):
        """A fifth suffers, but none of the last: a program that has all it waits for ends, and answers no more."""
        faults = ("lost", "twice", "late", "spoiled") if sum(self.done.values()) < POOR_FRAMES else ()
        what = self.draw.choice((*faults, *["whole"] * 16))
        self.done[what] += 1
        if what == "lost":
            return
        if what == "late":
            data, self.held[end] = self.held[end], data
            if not data:
                return
        if what == "spoiled":
            spoiled = bytearray(data)
            spoiled[-1 - self.draw.randrange(8)] ^= 1 << self.draw.randrange(8)
            data = bytes(spoiled)
        self.put(end, data)
        if what == "twice":
            self.put(end, data)

    def forger(self, end, data, f):
        """Beside each frame one that has the right CRC and says something else."""
        numbers = {"psn": 24, "length": 32, "rkey": 32, "va": 64, "imm": 32, "syndrome": 8, "msn": 24,
                   "original": 64, "pkey": 16, "swap_add": 64, "qpn": 24}
        self.put(end, data)
        for _ in range(2):
            name = self.draw.choice((*numbers, "operation", "transport", "payload", "payload"))
            before = f.__dict__.copy()
            if name in numbers:
                near = getattr(f, name) + self.draw.choice((-1, 1, 2, 1 << self.draw.randrange(numbers[name])))
                setattr(f, name, near % (1 << numbers[name]))
            elif name == "operation":
                f.operation = self.draw.choice(list(roce_frames.NUMBERS))
            elif name == "transport":
                f.transport = self.draw.choice(list(roce_frames.CODES))
            else:
                f.payload = self.draw.randbytes(self.draw.choice((0, 1, 1023, 1024, 1025, 4096)))
            self.put(end, roce_frames.make(f))
            f.__dict__.update(before)
            self.done["forged"] += 1


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def pair(session, *argv, good=True):
    """A stock program of two sides, one in each fabric."""
    port = str(free_port())

    def side(end, *more):
        fabric, host, _ = ENDS[end]
        return session.background(*argv, "-d", "mlx5_0", "-p", port, *more,
                                  run_options=("--fabric", fabric, "--host", host))

    server = side(0)
    try:
        wait_listening(int(port), server)
        client = session.finish(side(1, "127.0.0.1"), TIME_LIMIT if good else 8)
        expect(not good or client.status == 0, f"{argv}: {client.status}\n{client.text()}")
        # Without the one there is nothing more for the other to be heard of.
        other = session.finish(server, TIME_LIMIT if good else 1)
        expect(not good or other.status == 0, f"{argv}: {other.status}\n{other.text()}")
        expect(max(client.status, other.status) < 128, f"{argv}\n{client.text()}\n{other.text()}")
    except Failure:
        if good:
            raise
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.communicate()


def tie_of(session, end):
    fabric, host, _ = ENDS[end]
    return ties.port_of(session, f"{host}/mlx5_0", fabric)["tie"]


def all_bad(session):
    return sum(tie_of(session, end)["in_bad"] for end in range(2))


def all_kinds(session, cable):
    """Stock programs by each kind of address: every frame is as the specification has it."""
    cable.fault = cable.whole
    for argv in (("ibv_rc_pingpong", "-g", "0", "-c", "-n", "5", "-s", "5000", "-m", "1024"),
                 ("ibv_uc_pingpong", "-g", "2", "-c", "-n", "5", "-s", "9000", "-m", "4096"),
                 ("ibv_ud_pingpong", "-g", "3", "-c", "-n", "5", "-s", "1000"),
                 ("ib_write_bw", "-x", "3", "-n", "5", "-s", "3001", "--mtu", "1024", "--tclass", "96"),
                 ("ib_read_bw", "-x", "1", "-n", "5", "-s", "5001", "--mtu", "1024", "--tclass", "41"),
                 ("ib_atomic_lat", "-x", "3", "-n", "5", "-A", "CMP_AND_SWAP"),
                 ("ibv_xsrq_pingpong", "-g", "3", "-n", "5")):
        pair(session, *argv)
    # Pingpongs ask for one hop, the others for 255.
    expect({("v1", 0, 1), ("ipv4", 0, 1), ("ipv4", 96, 255), ("ipv6", 41, 255)} <= cable.looks, f"{cable.looks}")
    expect(not all_bad(session), "some were said to be bad")


def poor_cable(session, cable):
    """What is lost, comes twice, late or spoiled is made up for; all that is spoiled is counted."""
    before = all_bad(session)
    cable.fault = cable.poor
    pair(session, "ibv_rc_pingpong", "-g", "3", "-c", "-n", "40", "-s", "3000", "-m", "1024")
    cable.fault = cable.whole
    expect(all(cable.done[what] for what in ("lost", "twice", "late", "spoiled")), f"{cable.done}")
    if not within(5, lambda: all_bad(session) - before == cable.done["spoiled"]):
        raise Failure(f"{cable.done['spoiled']} spoiled: {all_bad(session) - before}")


def forged(session, cable):
    """Frames that lie: programs may fail, none dies, and afterwards all is well."""
    pids = [tie_of(session, end)["pid"] for end in range(2)]
    cable.fault = cable.forger
    for argv in (("ibv_rc_pingpong", "-g", "3", "-n", "50", "-s", "6000", "-m", "1024"),
                 ("ib_write_bw", "-x", "1", "-n", "20", "-s", "9000", "--mtu", "1024"),
                 ("ib_atomic_lat", "-x", "1", "-n", "20")):
        pair(session, *argv, good=False)
    cable.fault = cable.whole
    expect(cable.done["forged"] > 50, f"{cable.done}")
    expect(pids == [tie_of(session, end)["pid"] for end in range(2)], "a carrier has gone")
    pair(session, "ibv_rc_pingpong", "-g", "3", "-c", "-n", "5", "-s", "6000", "-m", "1024")


def all_right(_, cable):
    expect(not cable.wrong, "\n".join(cable.wrong[:5]))
    for one in (("v1", "rc", "SEND_FIRST"), ("v1", "rc", "ACK"), ("v1", "uc", "SEND_MIDDLE"), ("ipv4", "ud", "SEND_ONLY"),
                ("ipv4", "rc", "WRITE_FIRST"), ("ipv4", "rc", "WRITE_LAST"), ("ipv6", "rc", "READ_REQUEST"),
                ("ipv6", "rc", "READ_MIDDLE"), ("ipv6", "rc", "ADD"), ("ipv6", "rc", "ATOMIC_ACK"),
                ("ipv4", "rc", "SWAP"), ("ipv4", "xrc", "SEND_LAST"), ("ipv4", "xrc", "ACK")):
        expect(cable.seen[one], f"no {one} among {cable.seen}")


def strangers(session, cable):
    """Frames that are for nobody here, or are no RoCE, count as lost and not as bad."""
    mac = bytes.fromhex(ties.port_of(session, "host1/mlx5_0", "one")["gids"][0]["gid"].replace(":", ""))[8:]
    mac = bytes((mac[0] ^ 2,)) + mac[1:3] + mac[5:]
    dgid = roce_frames.link_local(mac)
    f = roce_frames.Frame(dmac=mac, smac=b"\x02\0\0\0\x05\x05", sgid=roce_frames.link_local(b"\x02\0\0\0\x05\x05"),
                          dgid=dgid, operation="SEND_ONLY", qpn=5, payload=b"x" * 10)
    good = roce_frames.make(f)
    tagged = good[:12] + b"\x81\x00\x00\x05" + good[12:]
    other_port = bytearray(good)
    other_port[57] ^= 1
    elsewhere = roce_frames.make(roce_frames.Frame(**{**f.__dict__, "dgid": bytes(15) + b"\1"}))
    none = (good, tagged, bytes(other_port), elsewhere, b"\x02" + good[1:], good[:14], good[:40], mac + bytes(8) + b"\x89\x06")
    short = bytearray(good)
    short[18:20] = (len(good) - 54 + 1).to_bytes(2, "big")  # longer than there is
    opcode = bytearray(good[:-4])
    opcode[62] = 0x1f
    bad = (good[:-1] + bytes((good[-1] ^ 1,)), bytes(short), bytes(opcode) + bytes(4), good[:-20])
    before = tie_of(session, 0)
    for data in none + bad:
        cable.put(1, data)

    def counted():
        now = tie_of(session, 0)
        return now["in_bad"] - before["in_bad"] == len(bad) and \
            now["in_dropped"] - before["in_dropped"] >= len(none) + len(bad)

    if not within(5, counted):
        raise Failure(f"{before}\n{tie_of(session, 0)}")


def main():
    session = Session(pathlib.Path(sys.argv[1]))
    ip("link", "set", "lo", "up")
    try:
        for fabric, host, name in ENDS:
            up = session.tool("fabric", "up", "--fabric", fabric, "--link-types", "eth,eth")
            expect(up.status == 0, up.text())
            ties.tie(session, "--fabric", fabric, f"{host}/mlx5_0", f"tap={name}")
            ip("link", "set", name, "mtu", str(MTU))
        cable = Cable()
        for step in (all_kinds, strangers, poor_cable, forged, all_right):
            step(session, cable)
        cable.close()
        for fabric, _, _ in ENDS:
            session.tool("fabric", "down", "--fabric", fabric)
        session.expect_clean()
    finally:
        session.close()
    print("done")


main()
