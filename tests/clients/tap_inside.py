#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The inside of the case of a TAP interface: run in a user and network namespace of its own."""
import os
import pathlib
import signal
import socket
import subprocess
import sys

import ties
from harness import Failure, Session, expect, within

FRAMES = 40
ETH_P_ALL = 3


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def link(name):
    return subprocess.run(["ip", "-o", "link", "show", name], check=True, capture_output=True,
                          text=True).stdout


def is_link_up(name):
    """Waits until the kernel gives frames to the carrier.  Those of before are lost, as on any interface
    without a carrier."""
    expect(within(30, lambda: "LOWER_UP" in link(name) and "NO-CARRIER" not in link(name)), link(name))


def mine(data):
    """Not one of the kernel's own."""
    return data[:6] in (b"\x02\0\0\0\0\x01", b"\x02\0\0\0\0\x02")


def answer_of(session, s, sent, name):
    try:
        back = s.recv(10000)
        while not mine(back) or back == sent:
            back = s.recv(10000)
        return back
    except TimeoutError:
        counts = subprocess.run(["ip", "-s", "link", "show", name], capture_output=True, text=True,
                                check=False).stdout
        raise Failure(f"no answer to {len(sent)} bytes; {ties.port_of(session)}; {counts}") from None


def talk(session, name):
    """What the kernel sends on the interface comes back with swapped addresses."""
    is_link_up(name)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as s, \
            ties.reflector(session):
        s.bind((name, 0))
        s.settimeout(30)
        for i in range(FRAMES):
            sent = ties.frame(i, (60, 64, 777, 1514)[i % 4])
            s.send(sent)
            back = answer_of(session, s, sent, name)
            expect(back == ties.swapped(sent), f"frame {i}: {sent.hex()} gives {back.hex()}")


def tap(session):
    with ties.fabric(session):
        ties.tie(session, "mlx5_0", "tap=soft0")
        expect("LOWER_UP" in link("soft0"), link("soft0"))
        talk(session, "soft0")
        again = ties.tie(session, "mlx5_1", "tap=soft0", status=125)
        expect("another program has it" in again, again)
        expect("not a TAP interface" in ties.tie(session, "mlx5_1", "tap=lo", status=125), "lo")
        ip("link", "set", "soft0", "down")
        ties.is_state(session, "DOWN")
        ip("link", "set", "soft0", "up")
        ties.is_state(session, "ACTIVE")
        session.tool("fabric", "port", "mlx5_0", "down")
        expect(within(30, lambda: "NO-CARRIER" in link("soft0")), link("soft0"))
        session.tool("fabric", "port", "mlx5_0", "up")
        ties.is_state(session, "ACTIVE")
        talk(session, "soft0")
        carrier = ties.port_of(session)["tie"]["pid"]
        ip("link", "del", "soft0")
        ties.is_state(session, "DOWN")
        expect(within(30, lambda: not os.path.exists(f"/proc/{carrier}")), "its carrier ends")
        # One that is there stays, and it is the user's to set it up.
        ip("tuntap", "add", "dev", "kept0", "mode", "tap")
        ties.tie(session, "mlx5_0", "tap=kept0")
        ties.is_state(session, "DOWN")
        ip("link", "set", "kept0", "up")
        ties.is_state(session, "ACTIVE")
        talk(session, "kept0")
        os.kill(ties.port_of(session)["tie"]["pid"], signal.SIGKILL)
        ties.is_state(session, "DOWN")
        expect("kept0" in link("kept0"), "it stays")
        ties.tie(session, "mlx5_0", "tap=kept0")
        talk(session, "kept0")


def main():
    session = Session(pathlib.Path(sys.argv[1]))
    try:
        tap(session)
        session.expect_clean()
    finally:
        session.close()
    print("done")


main()
