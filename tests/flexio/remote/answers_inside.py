#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The inside of the case of answers: asks queue pairs through a TAP interface, packet by packet.  Run in a user and
network namespace of its own."""
import pathlib
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "clients")]

import roce_frames  # noqa: E402
import ties  # noqa: E402
from harness import TIME_LIMIT, Session, expect  # noqa: E402

ETH_P_ALL = 3
TAP = "answers0"
QPN, FIRST_PSN, OWN_PSN, MTU = 0x123456, 0xfffffc, 7, 1024  # numbers begin again
MASK = 0xffffff
# Of AETHs: a positive answer that grants no credits, "not ready" with the timer that both ask for, and refusals.
ACK, NOT_READY, SEQUENCE, INVALID, ACCESS = 0x1f, 0x20 | 12, 0x60, 0x61, 0x62

LINK = roce_frames.link_local(bytes((2, 0, 0, 0, 5, 5)))
# Index of the target's address, the UDP port that it is to take, and the address of who asks.
WAYS = {"v1": (0, 0, LINK), "ipv6": (1, 0xc123, LINK), "ipv4": (3, 0xc124, roce_frames.mapped("203.0.113.9"))}

# Where things lie in the target's memory.
FILLED, FILLED_SEED = 8192, 3
WRITTEN, WORD, RECEIVED = 8192, 16384, 20480
IMM = 0x01020304


def mac_of(gid):
    """As the programs have it of any address: device code has to say it, and a program of verbs hears it."""
    return bytes((gid[8] ^ 2,)) + gid[9:11] + gid[13:]


def filled(offset, size):
    return bytes((FILLED_SEED + 7 * i) & 0xff for i in range(FILLED))[offset:][:size]


def message(name, data, imm=0, **first):
    """The packets that a message goes in."""
    parts = [data[i:i + MTU] for i in range(0, len(data), MTU)] or [b""]
    names = ["FIRST", *["MIDDLE"] * (len(parts) - 2), "LAST"] if len(parts) > 1 else ["ONLY"]
    packets = [dict(operation=f"{name}_{each}", payload=part) for each, part in zip(names, parts)]
    packets[0].update(first)
    if imm:
        packets[-1].update(operation=packets[-1]["operation"] + "_IMM", imm=imm)
    return packets


class Target:
    """A program that is asked; what it says is kept."""
    def __init__(self, session, wire, kind, program):
        self.session, self.wire, self.kind = session, wire, kind
        self.heard, self.psn, self.msn = [], FIRST_PSN, 0
        gid_index, self.sport, self.station = WAYS[kind]
        gids = [bytes.fromhex(each["gid"].replace(":", "")) for each in ties.port_of(session)["gids"]]
        self.gid, self.mac = gids[gid_index], mac_of(gids[0])
        self.process = session.background(*map(str, program), stdin=subprocess.PIPE)
        words = self.process.stdout.readline().split()
        expect(len(words) == 6 and words[0] == "peer", f"it says {words}")
        self.qpn, self.key, self.memory = int(words[1]), int(words[3]), int(words[4])
        self.order(f"fill 0 {FILLED} {FILLED_SEED}")
        self.order(f"from {gid_index} {self.sport} 0 0")
        self.order(f"connect {QPN} 0 {self.station.hex()} 3 {FIRST_PSN} {OWN_PSN} 4")

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        expect(answer == "ok\n", f"'{line}': {answer}")

    def end(self):
        """It has said nothing but what it was asked for."""
        self.process.stdin.close()
        self.process.stdin = None
        result = self.session.finish(self.process, TIME_LIMIT)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        self.wire.settimeout(0.0)
        more = self.listen(1)
        expect(not more, f"nobody asked for {[data.hex() for data in more]}")
        return self.heard

    def listen(self, count):
        """The next frames of RoCE, fewer if no more come."""
        frames = []
        try:
            while len(frames) < count:
                data, address = self.wire.recvfrom(10000)
                if address[2] != socket.PACKET_OUTGOING and roce_frames.is_roce(data):
                    frames.append(data)
        except (BlockingIOError, TimeoutError):
            pass
        return frames

    def ask(self, what, packets, answers, away=0, takes=0, counts=None):
        """Sends packets, whose numbers begin so far away from the expected one, and holds what comes against answers.
        Each of those has its operation, how far its number is from that of the first packet, its syndrome, and other
        members.  takes: by how many numbers the target is then further; counts: by how many messages.  Packets go
        together only if one answer is due to all of them: of several, one may stand for others."""
        first = self.psn + away
        for i, packet in enumerate(packets):
            f = roce_frames.Frame(kind=self.kind, dmac=self.mac, smac=mac_of(self.station), sgid=self.station,
                                  dgid=self.gid, qpn=self.qpn, psn=(first + i) & MASK, rkey=self.key)
            f.ack = i == len(packets) - 1
            for name, value in packet.items():
                setattr(f, name, value)
            f.va += self.memory
            self.wire.send(roce_frames.make(f))
        self.psn = (self.psn + takes) & MASK
        self.msn += bool(takes) if counts is None else counts
        self.wire.settimeout(TIME_LIMIT)
        frames = self.listen(len(answers))
        expect(len(frames) == len(answers), f"{what}: {len(frames)} answers of {len(answers)}")
        for data, (operation, distance, syndrome, *members) in zip(frames, answers):
            self.look_at(what, data, dict(operation=operation, psn=(first + distance) & MASK, syndrome=syndrome,
                                          msn=self.msn if syndrome is not None else 0, **dict(*members)))
        self.heard += [(what, data) for data in frames]

    def look_at(self, what, data, wanted):
        """All that a frame says."""
        got = roce_frames.take(data)
        wanted["syndrome"] = wanted["syndrome"] or 0
        f = roce_frames.Frame(kind=self.kind, dmac=mac_of(self.station), smac=self.mac, sgid=self.gid,
                              dgid=self.station, qpn=QPN, sport=self.sport or roce_frames.Frame.sport, **wanted)
        expect(got == f, f"{what}: {got}\nand not {f}")
        expect(roce_frames.make(got) == data, f"{what}: made anew it differs: {data.hex()}")


def read_answers(offset, size):
    """A read's answers have numbers of their own, and those in the middle say nothing of how it went."""
    parts = [filled(offset, size)[i:i + MTU] for i in range(0, size, MTU)] or [b""]
    if len(parts) == 1:
        return [("READ_ONLY", 0, ACK, dict(payload=parts[0]))]
    names = ["FIRST", *["MIDDLE"] * (len(parts) - 2), "LAST"]
    return [(f"READ_{name}", i, None if name == "MIDDLE" else ACK, dict(payload=part))
            for i, (name, part) in enumerate(zip(names, parts))]


def acknowledged(distance=0):
    return [("ACK", distance, ACK)]


def original(value):
    return [("ATOMIC_ACK", 0, ACK, dict(original=value))]


def good_requests(t):
    data = bytes(range(256)) * 12
    for size in (0, 1, 1024, 1025, 3000):
        packets = message("WRITE", data[:size], va=WRITTEN, length=size)
        t.ask(f"write of {size}", packets, acknowledged(len(packets) - 1), takes=len(packets))
    for offset, size in ((0, 4000), (5, 1024), (1, 1025), (7, 0), (3, 2)):
        answers = read_answers(offset, size)
        read = dict(operation="READ_REQUEST", va=offset, length=size)
        t.ask(f"read of {size}", [read], answers, takes=len(answers))
        t.ask(f"read of {size}, doubled", [read], answers, away=-len(answers))
    t.ask("what was written", [dict(operation="READ_REQUEST", va=WRITTEN, length=100)],
          [("READ_ONLY", 0, ACK, dict(payload=data[:100]))], takes=1)
    add = dict(operation="ADD", va=WORD, swap_add=0x1122334455667788)
    t.ask("add", [add], original(0), takes=1)
    t.ask("add, doubled", [add], original(0), away=-1)
    t.ask("swap", [dict(operation="SWAP", va=WORD, swap_add=9, compare=0x1122334455667788)],
          original(0x1122334455667788), takes=1)
    t.ask("swap of another value", [dict(operation="SWAP", va=WORD, swap_add=5, compare=8)], original(9), takes=1)
    t.ask("add behind them", [dict(operation="ADD", va=WORD, swap_add=1)], original(9), takes=1)


def receives(t):
    """Whoever has no receive says so, and takes the same packet when there is one."""
    data = bytes(range(255, -1, -1)) * 10
    sends = (("send of 1", message("SEND", data[:1])), ("send of 2500", message("SEND", data[:2500])),
             ("send with a word of 1024", message("SEND", data[:1024], IMM)),
             ("send with a word of 1100", message("SEND", data[:1100], IMM)),
             ("write with a word", message("WRITE", data[:10], IMM, va=WRITTEN, length=10)))
    for what, packets in sends:
        only = len(packets) == 1
        if only:
            t.ask(f"{what} without a receive", packets, [("ACK", 0, NOT_READY)])
        t.order(f"recv 1 {RECEIVED} 4096 4096")
        last = len(packets) - 1
        t.ask(what, packets, acknowledged(last), takes=len(packets))
        t.ask(f"{what}, its last packet doubled", packets[-1:], acknowledged(), away=-1)
    first = message("SEND", data[:1500])
    t.ask("the first packet without a receive", first[:1], [("ACK", 0, NOT_READY)])
    t.order(f"recv 1 {RECEIVED} 4096 4096")
    t.ask("the first packet alone", first[:1], acknowledged(), takes=1, counts=0)
    t.ask("the last packet too early", first[1:], [("ACK", -2, SEQUENCE)], away=2)
    t.ask("the last packet", first[1:], acknowledged(), takes=1)
    t.ask("what was received", [dict(operation="READ_REQUEST", va=RECEIVED, length=1000)],
          [("READ_ONLY", 0, ACK, dict(payload=data[:1000]))], takes=1)


def refused(packets, syndrome):
    """A queue pair that refuses something has failed, so each script of these ends with it."""
    def run(t):
        t.order(f"recv 1 {RECEIVED} 16 16")
        t.ask("a write before it", message("WRITE", b"x", va=WRITTEN, length=1), acknowledged(), takes=1)
        own = [dict(packet, **({"rkey": t.key ^ 0x5a00} if packet.get("rkey") else {})) for packet in packets]
        t.ask("what is refused", own, [("ACK", 0, syndrome)])
    return run


WRONG = dict(rkey=True)
SCRIPTS = {
    "good requests": good_requests,
    "receives": receives,
    "a write with a wrong key": refused(message("WRITE", b"1234", va=WRITTEN, length=4, **WRONG), ACCESS),
    "a read with a wrong key": refused([dict(operation="READ_REQUEST", va=0, length=2000, **WRONG)], ACCESS),
    "an add with a wrong key": refused([dict(operation="ADD", va=WORD, swap_add=1, **WRONG)], ACCESS),
    "a swap with a wrong key": refused([dict(operation="SWAP", va=WORD, swap_add=1, **WRONG)], ACCESS),
    "a write in front of the memory": refused(message("WRITE", b"1234", va=-1, length=4), ACCESS),
    "a read in front of the memory": refused([dict(operation="READ_REQUEST", va=-4, length=8)], ACCESS),
    "a send that is too long": refused(message("SEND", bytes(17)), INVALID),
    "an add across words": refused([dict(operation="ADD", va=WORD + 4, swap_add=1)], INVALID),
    "a packet in the middle of nothing": refused([dict(operation="SEND_MIDDLE", payload=bytes(MTU))], INVALID),
    "a read that is too long": refused([dict(operation="READ_REQUEST", va=0, length=1 << 24)], ACCESS),
    "a write of more than it says": refused(message("WRITE", b"12345678", va=WRITTEN, length=4), INVALID),
}
SHORT = dict(list(SCRIPTS.items())[:3])
GENERATIONS = ("host", "later")  # of device code, by the programs' names


def compare(what, ours, theirs):
    for (step, our), (_, their) in zip(ours, theirs):
        expect(our == their, f"{what}: {step}: the DPA answers {our.hex()}\nand verbs {their.hex()}")
    expect(len(ours) == len(theirs), f"{what}: {len(ours)} of the DPA, {len(theirs)} of verbs")


def asked(session, wire, kind, script, program):
    target = Target(session, wire, kind, program)
    script(target)
    return target.end()


def answers(session, place):
    with ties.fabric(session):
        ties.tie(session, "mlx5_0", f"tap={TAP}")
        ties.is_state(session, "ACTIVE")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as wire:
            wire.bind((TAP, 0))
            for kind, scripts in (("ipv6", SCRIPTS), ("v1", SHORT), ("ipv4", SHORT)):
                for what, script in scripts.items():
                    theirs = asked(session, wire, kind, script, (place / "peer", "eth", "rc"))
                    for generation in GENERATIONS:
                        ours = asked(session, wire, kind, script, (place / generation, "script_rc"))
                        compare(f"{generation}, {kind}, {what}", ours, theirs)


def main():
    session = Session(pathlib.Path(sys.argv[1]))
    try:
        answers(session, pathlib.Path(sys.argv[2]))
        session.expect_clean()
    finally:
        session.close()
    print("done")


main()
