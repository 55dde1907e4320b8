# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 at random moments of a program that does everything with the DPA (host_busy.c).  Nothing may stay behind,
and the fabric goes on: the daemon keeps no descriptor and no slot of the dead.

A fixed sample of the moments in each run; FLEXIO_KILLS in the environment says how many (1000 for all)."""
import os
import pathlib
import random
import signal
import sys
import time

import queues
from harness import expect, settled

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "robust"))

import kills  # noqa: E402

ROUNDS = int(os.environ.get("FLEXIO_KILLS", "30"))
AT_A_TIME = 5
SEED = 12


def victim(session, host, draw):
    program = session.background(str(host), "busy")
    expect(program.stdout.readline() == "begun\n", "it does not begin")
    # Half of them while they come up.
    if draw.random() < 0.5:
        expect(program.stdout.readline() == "busy\n", "it does not get as far as its work")
    return program


def killed(session):
    host = queues.PROGRAMS.host(session)
    draw = random.Random(SEED)
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        session.run_ok("ibv_devices")
        (daemon,) = session.daemons()
        descriptors, slots = kills.fd_count(daemon), kills.slots_used(session)
        for number in range(0, ROUNDS, AT_A_TIME):
            programs = [victim(session, host, draw) for _ in range(AT_A_TIME)]
            for program in programs:
                time.sleep(draw.uniform(0, 0.05))
                program.send_signal(signal.SIGKILL)
            for program in programs:
                result = session.finish(program, 30)
                expect(result.status == -signal.SIGKILL, f"round {number}: status {result.status}\n{result.text()}")
            left = settled(lambda: kills.fd_count(daemon), descriptors)
            expect(left <= descriptors, f"round {number}: the daemon has {left - descriptors} descriptors more")
            left = settled(lambda: kills.slots_used(session), slots)
            expect(left <= slots, f"round {number}: {left - slots} slots are left")
        session.run_ok(str(host), "busy_ends")
    finally:
        session.tool("fabric", "down")


def cases():
    return [(f"queues: a program that does everything is killed {ROUNDS} times", killed)]
