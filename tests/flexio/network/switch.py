# SPDX-License-Identifier: BSD-2-Clause
"""The switch between the host's port and the uplink, seen from outside: by another host, and in the file of a tie."""
import contextlib
import os
import subprocess

import ties
from harness import Failure, Skip, expect
from network import PROGRAMS

DPA, PEER, OTHERS = (bytes.fromhex(mac) for mac in ("021122334455", "02427e7feb02", "02427e7feb03"))
BYTES, EDITED = 200, 0xe5
# As host_switch.c has them.
UPLINK, HOST, NOWHERE, NO_RULE, NO_TABLE, END = range(0x11, 0x17)
ORDER = (HOST, UPLINK, NOWHERE, NO_RULE, NO_TABLE, HOST, UPLINK, NOWHERE, NO_RULE, END)
LEAVE = (UPLINK, NO_TABLE, END)       # of what the host sends
ENTER = (HOST, NO_RULE, NO_TABLE)     # of what comes


def frame(way, source, kind):
    first = DPA[0] ^ (0x80 if way == NO_TABLE else 0)
    length = (BYTES - 14).to_bytes(2, "big")
    head = bytes((first,)) + DPA[1:5] + bytes((way,)) + source + b"\x08\x00\x45" + bytes((kind,)) + length
    return head + bytes((kind,)) * (BYTES - len(head))


def answer(data):
    """What device code sends back."""
    return data[6:12] + data[:6] + data[12:-1] + bytes((EDITED,))


def said(data):
    """The line of a program that hears it."""
    return f"{data[5]:02x} {data[20]:02x} {data[-1]:02x}\n"


@contextlib.contextmanager
def program(session, name, host="host1", ready=True):
    process = session.background(str(PROGRAMS.host(session)), name, stdin=subprocess.PIPE, run_options=("--host", host))
    try:
        if ready and process.stdout.readline() != "up\n":
            raise Failure(f"{name} does not come up\n{session.finish(process).text()}")
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def ended(session, process):
    result = session.finish(process)
    expect(result.status == 0, f"status {result.status}\n{result.text()}")
    return result.out


@contextlib.contextmanager
def fabric(session):
    if os.geteuid() != 0:
        raise Skip("raw packet queues need root")
    PROGRAMS.host(session)
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        yield
    finally:
        session.tool("fabric", "down")


def sent_to_host(session):
    """Another host hears what a rule sends to the uplink and what no rule takes; not what goes to the host's port."""
    with fabric(session), program(session, "outside_listens", "host2") as other:
        with program(session, "switch_sends", ready=False) as sender:
            ended(session, sender)
        wanted = "".join(said(frame(way, OTHERS, i)) for i, way in enumerate(ORDER) if way in LEAVE)
        heard = ended(session, other)
        expect(heard == wanted, f"it hears\n{heard}and not\n{wanted}")


def sent_to_file(session):
    """The same frames, and no others, are in the file of a tie, byte by byte."""
    out = session.runtime / "out.pcap"
    with fabric(session):
        ties.tie(session, "mlx5_1", f"out={out}")
        with program(session, "switch_sends", ready=False) as sender:
            ended(session, sender)
        wanted = [frame(way, OTHERS, i) for i, way in enumerate(ORDER) if way in LEAVE]
        ties.counted(session, "host1/mlx5_1", out=len(wanted))
        expect(session.tool("fabric", "untie", "mlx5_1").status == 0, "untie")
        found = ties.frames_of(out)
        expect(found == wanted, f"in the file: {''.join(map(said, found))}")
    out.unlink()


def from_outside():
    """What comes by the uplink, and what device code sends back.  No rule leads back to the uplink: libmlx5 makes such
    a rule drop from version 50 on."""
    sent = [(frame(way, PEER, i), way) for i, way in enumerate(ORDER) if way not in (UPLINK, END)]
    return [f for f, _ in sent], [answer(f) for f, way in sent if way in ENTER]


def seen(session, receiver):
    """How many frames device code has seen."""
    receiver.stdin.close()
    receiver.stdin = None
    return int(ended(session, receiver))


def received_from_host(session):
    """The switch's rules are for frames of another host, too: device code sees those that they let in."""
    with fabric(session), program(session, "switch_receives") as receiver:
        with program(session, "outside_sends", "host2") as other:
            heard = sorted(ended(session, other).splitlines(True))
        _, back = from_outside()
        wanted = sorted(map(said, back))
        expect(heard == wanted, f"it hears\n{''.join(heard)}and not\n{''.join(wanted)}")
        count = seen(session, receiver)
        expect(count == len(back), f"device code has seen {count} frames")


def received_from_file(session):
    """And for those of a tie."""
    into, out = session.runtime / "in.pcap", session.runtime / "out.pcap"
    frames, back = from_outside()
    into.write_bytes(ties.pcap(frames))
    with fabric(session), program(session, "switch_receives") as receiver:
        ties.tie(session, "mlx5_1", f"in={into}", f"out={out}")
        ties.counted(session, "host1/mlx5_1", out=len(back), **{"in": len(frames)})
        count = seen(session, receiver)
        expect(count == len(back), f"device code has seen {count} frames")
        expect(session.tool("fabric", "untie", "mlx5_1").status == 0, "untie")
        found = ties.frames_of(out)
        expect(sorted(found) == sorted(back), f"in the file: {''.join(map(said, found))}")
    into.unlink()
    out.unlink()


def cases():
    return [(f"network: {title}", test) for title, test in (
        ("the switch sends to the uplink what another host hears", sent_to_host),
        ("the switch sends to the uplink what a tie's file has", sent_to_file),
        ("the switch lets in frames of another host, to device code", received_from_host),
        ("the switch lets in frames of a tie's file, to device code", received_from_file))]
