# SPDX-License-Identifier: BSD-2-Clause
"""Programs of the shape of the SDK's packet processor and of DOCA's reflector: all frames come back, and SIGINT ends
them."""
import signal

from harness import expect
from network import PROGRAMS
from switch import ended, fabric, program

FRAMES = 10000


def reflecting(name):
    def run(session):
        with fabric(session), program(session, name) as reflector:
            session.run_ok(str(PROGRAMS.host(session)), "all_come_back")
            reflector.send_signal(signal.SIGINT)
            told = ended(session, reflector)
            expect(told == f"{FRAMES}\n", f"it tells of {told!r} frames")
    return run


def cases():
    return [(f"network: {FRAMES:,} frames with 16 under way come back {how}, and SIGINT ends it R314 R317",
             reflecting(name)) for name, how in (
                ("processor_switch", "through a rule of the root and the switch"),
                ("processor_tables", "through tables of level 1 in each direction and the switch"),
                ("processor_left", "though the program leaves part of its tables"))]
