# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, each a run of it under softhca."""
import os
import pathlib

from harness import Skip
from hosts import HostProgram

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("host.c", "host_frame.c", "host_refused.c", "host_pair.c", "raw_peer.c")

CASES = (
    ("reflects", "a handler sends what comes back, ring after ring I163 I164 I165 I166 I168 J183 J192 J194"),
    ("processor", "20 frames of 65 bytes come back with addresses exchanged and another end R314 R315"),
    ("many", "10,000 frames come back R317"),
    ("early", "frames that come before the handler runs are reflected then R318"),
    ("shared_queue", "one completion queue for receives and sends H160"),
    ("completions", "completions by request, one bell for many H140 J181 J182 J191 J195"),
    ("send_error", "a key that there is not fails the send queue H142 J198"),
    ("receive_errors", "frames that do not fit, and keys that there are not I170 I172"),
    ("no_receive", "frames that find no receive are dropped I169"),
    ("host_memory", "frames land in memory of the host I171 I173"),
    ("error_state", "a queue in error takes nothing I174"),
    ("own_domain", "queues and keys of a domain of the program's R319"),
    ("spread", "a table spreads frames over queues I180"),
    ("in_use", "what is in use stays H159 I175"),
    ("refused", "attributes that cannot be I162"),
    ("pool", "receive memory pools are lists I176 I177"),
    ("pair", "queue pairs of the DPA write to each other and to the host K201 K204 K209 K211 K212"),
    ("pair_rights", "rights follow the mask K207"),
    ("pair_states", "states, transitions that there are not, destruction in each K205 K206 K216"),
    ("pair_kinds", "queue pairs without a part, and those that cannot be K202 K203 K215"),
    ("left", "a process goes with all that it has, also with a rule"),
)


PROGRAMS = HostProgram(HERE, SOURCES)


def case(name):
    def run(session):
        if os.geteuid() != 0:
            raise Skip("raw packet queues need root")
        session.run_ok(str(PROGRAMS.host(session)), name, env=session.env)
    return run


def cases():
    return [(f"network: {title}", case(name)) for name, title in CASES]
