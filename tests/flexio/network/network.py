# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, each a run of it under softhca."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from harness import Skip, expect, settled
from hosts import HostProgram

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "robust"))

import kills  # noqa: E402

SOURCES = ("host.c", "host_counters.c", "host_flow.c", "host_frame.c", "host_refused.c", "host_pair.c", "host_rule.c",
           "host_gone.c", "host_outside.c", "host_processor.c", "host_scatter.c", "host_switch.c", "host_tables.c",
           "raw_peer.c")
# How often an end of a flow is killed; FLEXIO_KILLS in the environment says another number.
ROUNDS = int(os.environ.get("FLEXIO_KILLS", "12"))
SEED = 23

CASES = (
    ("reflects", "a handler sends what comes back, ring after ring I163 I164 I165 I166 I168 J183 J192 J194"),
    ("processor", "20 frames of 65 bytes come back with addresses exchanged and another end R314 R315"),
    ("many", "10,000 frames come back R317"),
    ("early", "frames that come before the handler runs are reflected then R318"),
    ("shared_queue", "one completion queue for receives and sends H160"),
    ("completions", "completions by request, one bell for many H140 J181 J182 J191 J195"),
    ("outrun", "more requests than the ring has room for are taken, and a late bell says nothing"),
    ("send_error", "a key that there is not fails the send queue H142 J198"),
    ("receive_errors", "frames that do not fit, and keys that there are not: completions, and the event I170 I172"),
    ("no_receive", "frames that find no receive are dropped, and counted I169"),
    ("host_memory", "frames land in memory of the host I171 I173"),
    ("vlan_tag", "the tag of a VLAN stays in its frame I165"),
    ("scattered", "receives of several segments, over which frames are scattered"),
    ("sound", "which checksums of a frame are right H139"),
    ("outside", "queues with rings and records in memory of the host"),
    ("error_state", "a queue in error takes nothing I174"),
    ("own_domain", "queues and keys of a domain of the program's R319"),
    ("other_device", "queues of another device than the process's M235"),
    ("spread", "a table spreads frames over queues I180"),
    ("in_use", "what is in use stays H159 I175"),
    ("refused", "attributes that cannot be I162"),
    ("too_small", "rings and records that are too small I162"),
    ("short_rings", "rings that are longer than their buffers are named in the log I162"),
    ("pool", "receive memory pools are lists I176 I177"),
    ("pair", "queue pairs of the DPA write to each other and to the host K201 K204 K209 K211 K212"),
    ("pair_outside", "queue pairs and pools with rings and records in memory of the host"),
    ("pair_rights", "rights follow the mask K207"),
    ("pair_states", "states, transitions that there are not, destruction in each K205 K206 K216"),
    ("pair_kinds", "queue pairs without a part, and those that cannot be K202 K203 K215"),
    ("gone", "queues go and come under a handler that posts to them and rings without end"),
    ("freed", "the memory of a queue is freed under it"),
    ("own_rule", "a rule of mlx5dv_create_flow leads to a queue"),
    ("no_destination", "no rule leads to an object that takes no frames"),
    ("emulated_objects", "objects of functions that are not emulated are refused by name"),
    ("left", "a process goes with all that it has, also with a rule"),
)
# What else the log has to say.
SAYS = {"pair_kinds": [f"qp_fattr->transport_type: {number} is not" for number in range(3, 0x12)],
        "emulated_objects": [f"devx: general objects of type {number} are not supported" for number in ("0x14", "0x16")],
        "short_rings": [f"{text}.daddr: the ring of queue 0x" for text in
                        ("flexio_cq_create: fattr->cq_ring_qmem", "flexio_rq_create: fattr->wq_ring_qmem",
                         "flexio_sq_create: fattr->wq_ring_qmem", "flexio_rmp_create: fattr->wq_ring_qmem",
                         "flexio_qp_create: qp_fattr->qp_wq_buff_qmem")]}
# How often it says that a ring has no room: for each of them once and for one without a buffer, and never for others.
SHORT = "buffer of flexio_buf_dev_alloc"


PROGRAMS = HostProgram(HERE, SOURCES)


def case(name):
    def run(session):
        if os.geteuid() != 0:
            raise Skip("raw packet queues need root")
        result = session.run_ok(str(PROGRAMS.host(session)), name, env={**session.env, "SOFTHCA_LOG": "info"} if name in SAYS else None)
        for text in SAYS.get(name, ()):
            expect(text in result.err, f"nothing of {text!r}\n{result.text()}")
        wanted = len(SAYS[name]) + 1 if name == "short_rings" else 0
        expect(result.err.count(SHORT) == wanted, f"{wanted} short rings, but\n{result.text()}")
    return run


class Flow:
    """A program that sends frames, and one whose handler sends them back, each killed and made again by itself."""
    def __init__(self, session):
        self.session, self.host, self.ends = session, str(PROGRAMS.host(session)), {}

    def begin(self, name):
        end = self.ends[name] = self.session.background(self.host, name, stdin=subprocess.PIPE)
        self.hear(name, "begun")

    def hear(self, name, word):
        heard = self.ends[name].stdout.readline()
        expect(heard == f"{word}\n", f"{name}: {heard!r}, not {word}")

    def kill(self, name):
        self.ends[name].send_signal(signal.SIGKILL)
        result = self.session.finish(self.ends.pop(name), 30)
        expect(result.status == -signal.SIGKILL, f"{name}: status {result.status}\n{result.text()}")

    def end(self):
        """All that is left says that all was well."""
        for name in list(self.ends):
            result = self.session.finish(self.ends.pop(name), 60)
            expect(result.status == 0, f"{name}: status {result.status}\n{result.text()}")


def flow_killed(session):
    """kill -9 of either end, while it comes up or while frames flow: the other one stays, nothing of the dead does,
    and frames flow again as soon as there is another in its place."""
    if os.geteuid() != 0:
        raise Skip("raw packet queues need root")
    flow, draw = Flow(session), random.Random(SEED)
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        session.run_ok("ibv_devices")
        (daemon,) = session.daemons()
        descriptors, slots = kills.fd_count(daemon), kills.slots_used(session)
        for number in range(ROUNDS):
            victim, other = draw.sample(("reflecting", "generating"), 2)
            flow.begin(other)
            flow.hear(other, "up")
            flow.begin(victim)
            # A third of them while they come up.
            if draw.random() < 0.67:
                flow.hear(victim, "up")
                flow.hear(victim, "flows")
            time.sleep(draw.uniform(0, 0.03))
            flow.kill(victim)
            flow.begin(victim)
            flow.hear(victim, "up")
            flow.hear(victim, "flows")
            flow.end()
            left = settled(lambda: kills.fd_count(daemon), descriptors)
            expect(left <= descriptors, f"round {number}: the daemon has {left - descriptors} descriptors more")
            left = settled(lambda: kills.slots_used(session), slots)
            expect(left <= slots, f"round {number}: {left - slots} slots are left")
    finally:
        session.tool("fabric", "down")


def cases():
    return [*((f"network: {title}", case(name)) for name, title in CASES),
            (f"network: a program that frames come from or go to is killed {ROUNDS} times", flow_killed)]
