# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, which is the device, a driver, or both in one process."""
import pathlib
import signal
import subprocess

from harness import expect, settled, within
from hosts import HostProgram

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("host.c", "host_driver.c")

CASES = (
    ("facts", "what capabilities, commands and objects say of the function"),
    ("arming", "a doorbell fires once when it is armed, is kept when it is not, and by force P290"),
    ("both", "driver and device in one process"),
    ("odd_bells", "bells of contexts that there are not do nothing"),
    ("refused", "functions, queues and completion queues that cannot be"),
)
DRIVERS = (
    ("echo", "a doorbell reaches device code, and its interrupt the driver"),
    ("waits", "a driver waits by poll, epoll or not at all, by several descriptors"),
    ("driver_refused", "what userspace I/O refuses"),
    ("interrupted", "signals, cancelled threads and children of a driver"),
)
PROGRAMS = HostProgram(HERE, SOURCES)


def case(name):
    def run(session):
        session.run_ok(str(PROGRAMS.host(session)), name, env=session.env)
    return run


class Device:
    """The program with the contexts, in a process of its own."""
    def __init__(self, session):
        self.session = session
        self.process = session.background(str(PROGRAMS.host(session)), "device", stdin=subprocess.PIPE)
        line = self.process.stdout.readline()
        expect(line == "begun\n", f"the device says {line!r}")

    def taken(self, queue):
        self.process.stdin.write(f"{queue}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def waits_for(self, taken, queue=0):
        left = settled(lambda: taken - self.taken(queue), 0)
        expect(left <= 0, f"of {taken} doorbells {left} were not heard")

    def is_quiet(self):
        """Waits until it has heard of all doorbells: for long, nothing more comes while it answers us."""
        heard = []

        def quiet():
            heard.append(self.taken(0) + self.taken(1))
            return len(heard) > 50 and heard[-1] == heard[-51]

        expect(within(60, quiet), "doorbells of nobody")

    def end(self):
        self.process.stdin.close()
        self.process.stdin = None
        result = self.session.finish(self.process)
        expect(result.status == 0, f"the device: status {result.status}\n{result.text()}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.session.finish(self.process)


def driver(name):
    def run(session):
        device = Device(session)
        result = session.run_ok(str(PROGRAMS.host(session)), name, env=session.env)
        if name == "echo":
            taken = device.taken(0) + device.taken(1)
            expect(taken == int(result.out), f"{taken} were heard of, {result.out} answered")
        device.end()
    return run


def killed_driver(session):
    """In the middle of its stores; the next one is heard."""
    device = Device(session)
    for _ in range(4):
        storm = session.background(str(PROGRAMS.host(session)), "storm")
        expect(storm.stdout.readline() == "begun\n", "the driver does not begin")
        before = device.taken(0)
        device.waits_for(before + 10)
        storm.send_signal(signal.SIGKILL)
        session.finish(storm)
    device.is_quiet()
    session.run_ok(str(PROGRAMS.host(session)), "echo", env=session.env)
    device.end()


def killed_at_once(session):
    """What it has rung last is heard, and no other driver is there to look."""
    device = Device(session)
    for number in range(20):
        result = session.run(str(PROGRAMS.host(session)), "ring_and_die", env=session.env)
        expect(result.status in (-signal.SIGKILL, 128 + signal.SIGKILL), f"status {result.status}\n{result.text()}")
        device.waits_for(number + 1, 1)
    device.end()


def killed_device(session):
    """Its queues are free for the next one, which hears what was rung meanwhile."""
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        for _ in range(3):
            Device(session).kill()
            session.run_ok(str(PROGRAMS.host(session)), "ring_once", env=session.env)
            device = Device(session)
            device.waits_for(1)
            device.end()
    finally:
        session.tool("fabric", "down")


def short_drivers(session):
    """They ring and are gone, with their file closed, or not, or before they ring; each is heard."""
    device = Device(session)
    for number in range(6):
        how = ("ring_once", "ring_and_end", "ring_closed")[number % 3]
        session.run_ok(str(PROGRAMS.host(session)), how, env=session.env)
        device.waits_for(number + 1)
    device.end()


def stopped_device(session):
    """A driver neither waits for it nor loses a doorbell."""
    device = Device(session)
    device.process.send_signal(signal.SIGSTOP)
    session.run_ok(str(PROGRAMS.host(session)), "ring_once", env=session.env)
    device.process.send_signal(signal.SIGCONT)
    device.waits_for(1)
    device.end()


def cases():
    yield from ((f"emulation: {title}", case(name)) for name, title in CASES)
    yield from ((f"emulation: {title}", driver(name)) for name, title in DRIVERS)
    yield "emulation: drivers that end at once", short_drivers
    yield "emulation: drivers that are killed", killed_driver
    yield "emulation: drivers that are killed at once", killed_at_once
    yield "emulation: devices that are killed", killed_device
    yield "emulation: a device that is stopped", stopped_device
