# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, each a run of it under softhca, with a verbs program that it starts."""
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

from harness import Skip, expect, settled

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(ROOT / "tests/robust"))

import kills  # noqa: E402

KILLS = 5
SOURCES = ("host.c", "host_death.c", "host_depth.c", "host_event.c", "host_field.c", "host_frame.c", "host_kind.c",
           "host_local.c", "host_part.c", "host_peer.c", "host_pool.c", "host_script.c")

CASES = (
    ("rc_infiniband", "RC with a verbs program, on InfiniBand: sends, writes, reads, atomics K210"),
    ("rc_roce", "RC with a verbs program, on RoCE K210"),
    ("uc_infiniband", "UC with a verbs program, on InfiniBand"),
    ("uc_roce", "UC with a verbs program, on RoCE"),
    ("ud_infiniband", "UD with a verbs program, on InfiniBand"),
    ("ud_roce", "UD with a verbs program, on RoCE"),
    ("uc_looped", "UC that is looped back to a verbs program at the own port"),
    ("ud_looped", "UD that is looped back to a verbs program at the own port"),
    ("copies", "copies within memory of the DPA, and from and to the host J196"),
    ("matrices", "matrices are transposed J197"),
    ("compressed", "completions that are written together H158"),
    ("waits", "requests that wait for memory and for completions"),
    ("wait_time", "a request waits for a time"),
    ("packed", "receives whose completions are written together are read by device code H158"),
    ("receives_alone", "a queue pair without a send queue takes messages and answers reads K202"),
    ("sends_alone", "a queue pair without receives writes, reads and is written to K203"),
    ("foreign_domain", "a queue pair of another domain has keys of that domain alone"),
    ("slaves", "a master enables sends and receives of another queue pair"),
    ("opcodes", "opcodes that the device has not got"),
    ("completion_modes", "which requests complete H141"),
    ("completion_events", "which completions of a queue pair give an event that nobody asked for H141"),
    ("frame_events", "which completions of a send queue give an event that nobody asked for H141"),
    ("error_modes", "which requests of a queue in error complete H141"),
    ("frame_errors", "which requests of a send queue in error complete H141"),
    ("failed_pairs", "events of queue pairs that fail"),
    ("failed_queue", "events of a send queue that fails"),
    ("path_mtu", "all sizes of packets K213"),
    ("rnr_timer", "how long the peer waits for a receive K208"),
    ("rights", "a right lets its kind of request in, and no other K207"),
    ("rnr_gives_up", "a peer that does not wait for a receive"),
    ("rnr_here", "a request waits for a receive of the peer's"),
    ("retry_count", "retries, of a peer that is not there K213"),
    ("packet_numbers", "packet numbers that do not fit K214"),
    ("global_route", "packets with a global route header"),
    ("looped_back", "packets that come back to the own port"),
    ("other_port", "a port that there is not"),
    ("context", "the UDP port and the lane of its own that are asked for stand in the context"),
    ("reads_answered", "reads and atomics that a peer may have under way here"),
    ("reads_asked", "reads and atomics that are under way to a peer"),
    ("peer_killed", "a peer is killed in the middle of writes and reads"),
    ("pool", "queue pairs receive from one pool, in the order of its list I178"),
    ("pool_limit", "a pool with few receives left tells the channel and the event queue once"),
    ("frames", "what a send queue sends, a raw packet queue of verbs sends byte for byte J187 J188 J200"),
    ("many_frames", "requests of many frames"),
    ("waiting_frames", "a send queue copies and waits"),
    ("inlined", "data in a request, of both generations J189"),
    ("two_queues", "two threads, each with a send queue of its own, send all that is whole, once, in order J193 J199"),
)
# Those of the other generation, too.
RAW = ("frames", "frame_events", "frame_errors", "failed_queue", "many_frames", "waiting_frames", "two_queues")
LATER = ("inlined", "rc_roce", "uc_infiniband", "ud_infiniband", "ud_roce", "waits", "wait_time", "packed")


class Programs:
    """The two programs, built when they are first wanted."""
    def __init__(self):
        self.directory = None

    def place(self, session):
        build = pathlib.Path(session.build).resolve()
        if not (build / "dpacc").exists():
            raise Skip("dpacc is not built (see the configuration's message about the DPA)")
        if not self.directory:
            self.directory = tempfile.TemporaryDirectory(prefix="softhca-remote.")
            self.compile(session, build, pathlib.Path(self.directory.name))
        return pathlib.Path(self.directory.name)

    @staticmethod
    def compile(session, build, place):
        flags = ("-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{ROOT}/include",
                 f"-I{ROOT}/tests/support", f"-I{ROOT}/src")
        for name, source in (("host", "device.c"), ("later", "device_later.c")):
            good(session, build / "dpacc", HERE / source, "-o", place / f"{name}.a", "-hostcc=gcc",
                 f"--devicecc-options=-O1 -g -Wall -Wextra -I{HERE}", "--app-name=remote_app")
            good(session, "gcc", *flags, *(HERE / each for each in SOURCES), place / f"{name}.a",
                 f"-L{build}/src/flexio", f"-Wl,-rpath,{build}/src/flexio", "-lflexio", "-libverbs", "-lmlx5",
                 "-lpthread", "-o", place / name)
        good(session, "gcc", *flags, HERE / "peer.c", "-libverbs", "-lmlx5", "-o", place / "peer")


PROGRAMS = Programs()


def good(session, *argv):
    result = session.call(*map(str, argv))
    expect(result.status == 0, f"status {result.status} of {argv[0]}\n{result.text()}")


def case(name):
    def run(session):
        if name in RAW and os.geteuid() != 0:
            raise Skip("raw packet queues need root")
        place = PROGRAMS.place(session)
        for program in ("host", "later") if name in LATER else ("host",):
            session.run_ok(str(place / program), name, env={**session.env, "REMOTE_PEER": str(place / "peer")})
    return run


def writer_killed(session):
    """kill -9 of the program whose device code writes: the peer ends, and nothing stays behind."""
    place = PROGRAMS.place(session)
    env = {**session.env, "REMOTE_PEER": str(place / "peer")}
    draw = random.Random(7)
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        session.run_ok("ibv_devices")
        slots = kills.slots_used(session)
        for number in range(KILLS):
            program = session.background(str(place / "host"), "flooding", env=env)
            peer = int(program.stdout.readline())
            time.sleep(draw.uniform(0, 0.05))
            program.send_signal(signal.SIGKILL)
            result = session.finish(program, 30)
            expect(result.status == -signal.SIGKILL, f"round {number}: status {result.status}\n{result.text()}")
            left = settled(lambda: kills.slots_used(session), slots)
            expect(left <= slots, f"round {number}: {left - slots} slots are left")
            expect(not running(peer), f"round {number}: the peer is still there")
    finally:
        session.tool("fabric", "down")


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def cases():
    return [*((f"remote: {title}", case(name)) for name, title in CASES),
            ("remote: a program whose device code writes is killed", writer_killed)]
