# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 at random moments.

    writer <---- writes both ways ----> writer        both under `softhca run`, one daemon

One of the two, both, or the daemon is killed: from before the device is open until the traffic
ends.  The survivor must end by itself, soon, and with the completions that dead hardware gives.
"""
import os
import random
import signal
import time

from harness import expect, free_port, settled, story_of, wait_listening

STREAM_MS = 900
SURVIVOR_LIMIT = 20  # seconds, on a machine that may be busy
ALONE = 3  # status of a writer whose peer went before the connection stood
DEVICES = ("mlx5_0", "mlx5_1")


class Pair:
    """Two writers; each under a `softhca run` of its own, which becomes the program."""

    def __init__(self, session, programs, device, draw):
        self.session = session
        port = free_port()
        argv = [str(programs / "stream"), device]
        tail = [str(port), str(STREAM_MS)]
        self.first = session.background(*argv, "listen", *tail)
        # Now and then the other comes only when the first is ready, else at once.
        if draw.random() < 0.7:
            wait_listening(port, self.first)
        else:
            time.sleep(draw.random() * 0.05)
        self.second = session.background(*argv, "connect", *tail)

    def both(self):
        return self.first, self.second

    def finish(self, good):
        return self.session.finish_all({"listen": self.first, "connect": self.second}, SURVIVOR_LIMIT, good)

    def end(self, killed):
        """Waits for both; the story of each."""
        results = self.finish((0, ALONE, -signal.SIGKILL))
        for process, result in zip(self.both(), results.values()):
            # The victim may have been faster than the signal.
            expect(result.status in (0, ALONE) or process in killed and result.status == -signal.SIGKILL,
                   "a writer ended otherwise: " + story_of(results))
        return story_of(results)


def kill_moment(draw):
    """Mostly in the traffic, sometimes while the two start."""
    time.sleep(draw.uniform(0, 0.15) if draw.random() < 0.3 else draw.uniform(0.15, 0.9))


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def slots_used(session):
    status = session.tool("fabric", "status", "--json")
    return status.out.count('"pid"')


def kill_writers(session, programs, rounds, seed, which):
    """A daemon that stays sees them all come and go and must not grow."""
    draw = random.Random(seed)
    up = session.tool("fabric", "up")
    expect(up.status == 0, up.text())
    (daemon,) = session.daemons()
    lost = 0
    try:
        time.sleep(0.2)
        before = fd_count(daemon)
        slots = slots_used(session)
        for number in range(rounds):
            pair = Pair(session, programs, DEVICES[number % 2], draw)
            kill_moment(draw)
            victims = {"one": [draw.choice(pair.both())], "both": list(pair.both())}[which]
            for victim in victims:
                victim.send_signal(signal.SIGKILL)
            story = pair.end(victims)
            lost += "peer lost" in story
            after = settled(lambda: fd_count(daemon), before)
            expect(after <= before, f"round {number}, seed {seed}: the daemon has {after} "
                   f"descriptors, {before} before; {story}")
            left = settled(lambda: slots_used(session), slots)
            expect(left <= slots, f"round {number}, seed {seed}: {left - slots} slots are left")
        if which == "one" and rounds >= 10:
            expect(lost, f"no survivor of {rounds} rounds ever lost its peer")
    finally:
        session.tool("fabric", "down")
    return f"{rounds} rounds, {lost} in the middle of traffic"


def kill_daemon(session, programs, rounds, seed):
    """Traffic that flows goes on; the next run starts afresh."""
    draw = random.Random(seed)
    for number in range(rounds):
        pair = Pair(session, programs, DEVICES[number % 2], draw)
        kill_moment(draw)
        for daemon in session.daemons():
            os.kill(daemon, signal.SIGKILL)
        # Killed while a writer starts: it may find no fabric (125), no device (2) or no peer.
        good = (0, 2, 125, ALONE)
        results = pair.finish(good)
        expect(all(result.status in good for result in results.values()),
               f"round {number}, seed {seed}: {story_of(results)}")
        devices = session.run_ok("ibv_devices")
        expect("mlx5_0" in devices.out, f"round {number}: no devices afterwards")
        session.expect_clean()
    return f"{rounds} rounds"


def meet_across_daemons(session, programs, rounds):
    """Programs of a daemon that was killed and of its successor, or that one's, cannot reach each other,
    and find nobody else, themselves least of all."""
    for number in range(rounds):
        port = free_port()
        argv = [str(programs / "stream"), DEVICES[number % 2]]
        first = session.background(*argv, "listen", str(port), str(STREAM_MS))
        wait_listening(port, first)
        for daemon in session.daemons():
            os.kill(daemon, signal.SIGKILL)
        if number % 2:
            # A daemon that leaves takes the directory with it.
            for command in ("up", "down"):
                expect(session.tool("fabric", command).status == 0, f"fabric {command}")
        second = session.background(*argv, "connect", str(port), str(STREAM_MS))
        results = session.finish_all({"listen": first, "connect": second}, SURVIVOR_LIMIT)
        expect(all(result.status == 0 and "peer lost: 0 done" in result.text() for result in results.values()),
               f"round {number}: {story_of(results)}")
        session.expect_clean()
    return f"{rounds} rounds"


def cases(programs, rounds, seed):
    share = max(1, rounds // 10)

    def writers(which, count):
        return lambda session: kill_writers(session, programs, count, seed, which)

    return [
        ("kill one writer", writers("one", 5 * share)),
        ("kill both writers", writers("both", 2 * share)),
        ("kill the daemon",
         lambda session: kill_daemon(session, programs, max(1, rounds - 7 * share), seed)),
        ("meet across daemons", lambda session: meet_across_daemons(session, programs, 2 * share)),
    ]
