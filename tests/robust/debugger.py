# SPDX-License-Identifier: BSD-2-Clause
"""gdb stops one of two busy processes wherever it is, takes some steps and holds it for a while: the
other does what needs no peer, other programs run, and afterwards both go on."""
import mmap
import shutil
import struct

from harness import Failure, Skip, all_ended_well, expect, free_port, wait_listening, within

LIMIT = 120  # seconds for what takes one where nobody else wants a CPU
NEEDED = 20  # turns that are progress
STEPS = 200  # instructions
# How the two reach each other's memory, and what the environment says for that.
WAYS = {"auto": {}, "shared": {"TEST_MEMORY": "shared"}, "packets": {"SOFTHCA_MEMORY": "packets"}}


class Counts:
    """The numbers that a process writes; see debugged.c."""

    def __init__(self, session, name):
        self.path = session.runtime / name
        self.path.write_bytes(bytes(mmap.PAGESIZE))
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def turns(self):
        return struct.unpack_from("=Q", self.page, 0)[0]

    def looks(self):
        return struct.unpack_from("=Q", self.page, 8)[0]

    def end(self):
        struct.pack_into("=Q", self.page, 16, 1)

    def remove(self):
        self.page.close()
        self.path.unlink()


class Debugger:
    """Holds a process from begin() to end()."""

    def __init__(self, session, pid):
        self.session, self.hold = session, session.runtime / "hold"
        self.process = session.start([
            "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", str(pid),
            "-ex", "handle all nostop noprint pass", "-ex", f"stepi {STEPS}",
            "-ex", f"shell touch {self.hold}; while [ -e {self.hold} ]; do sleep 0.05; done",
            "-ex", "detach"], env={**session.env, "LC_ALL": "C"})

    def holds(self):
        return self.hold.exists() or self.process.poll() is not None

    def begin(self):
        if not within(LIMIT, self.holds):
            raise Failure("gdb does not stop the process")
        if self.process.poll() is not None:
            text = self.session.finish(self.process).text()
            if "Operation not permitted" in text or "ptrace" in text:
                raise Skip(f"gdb may not attach: {text.splitlines()[-1]}")
            raise Failure(f"gdb ended with {self.process.returncode}\n{text}")

    def end(self):
        self.hold.unlink()
        result = self.session.finish(self.process, LIMIT)
        expect(result.status == 0 and "detached" in result.text(),
               f"gdb: status {result.status}\n{result.text()}")


def goes_on(number, what):
    before = number()
    expect(within(LIMIT, lambda: number() >= before + NEEDED),
           f"{what}: {number() - before} turns")


def held(session, victim, other):
    """Each is a process and its counts."""
    goes_on(victim[1].turns, "before the debugger comes")
    debugger = Debugger(session, victim[0].pid)
    debugger.begin()
    stopped = victim[1].looks()
    goes_on(other[1].looks, "beside a process that the debugger holds")
    expect(victim[1].looks() == stopped, "the debugger holds nobody")
    devices = session.run_ok("ibv_devinfo", "-d", "mlx5_0", limit=LIMIT)
    expect("PORT_ACTIVE" in devices.out, devices.text())
    debugger.end()
    for process, counts in (victim, other):
        goes_on(counts.turns, "after the debugger has gone")
        goes_on(counts.looks, "after the debugger has gone")
        expect(process.poll() is None, "a process has ended")


def pair_held(programs, way, device, rounds):
    def test(session):
        if not shutil.which("gdb"):
            raise Skip("gdb is not there (package gdb)")
        port = str(free_port())
        env = {**session.env, **WAYS[way]}
        sides = []
        for how in ("listen", "connect"):
            counts = Counts(session, how)
            process = session.background(str(programs / "debugged"), device, how, port,
                                         str(counts.path), env=env)
            sides.append((process, counts))
            if how == "listen":
                wait_listening(int(port), process)
        try:
            for _ in range(rounds):
                held(session, sides[0], sides[1])
                held(session, sides[1], sides[0])
        except Failure as failure:
            stories = [told(session, *side) for side in sides]
            raise Failure("\n".join([str(failure), *stories]))
        for _, counts in sides:
            counts.end()
        results = session.finish_all({"listen": sides[0][0], "connect": sides[1][0]}, LIMIT)
        for _, counts in sides:
            counts.remove()
        all_ended_well(results)
        return ", ".join(result.out.strip() for result in results.values())
    return test


def told(session, process, counts):
    """What became of a side whose test has failed."""
    story = f"{counts.turns()} turns, {counts.looks()} looks, status {process.poll()}"
    process.kill()
    return story + "\n" + session.finish(process).text()


def cases(programs, rounds):
    return [(f"a debugger, {way} {device}", pair_held(programs, way, device, rounds))
            for way, device in (("auto", "mlx5_0"), ("shared", "mlx5_1"), ("packets", "mlx5_0"))]
