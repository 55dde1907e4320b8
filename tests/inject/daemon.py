# SPDX-License-Identifier: BSD-2-Clause
"""Calls of the daemon fail while programs come, are served or refused, and go."""
import os
import pathlib
import signal
import subprocess
import time

from harness import Failure, cpu_seconds, expect, within
import injector
from library import status_text

CLIENT_LIMIT = 400  # seconds; a program waits for its daemon for some seconds, several times
MADS_EVERY = 5      # of the rounds with a daemon that fails for good
REST_LIMIT = 30    # for the daemon to do what is left to be done
FABRIC = "inject"
REFUSED = 125      # softhca's own status


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def wait_for(condition, what):
    if not within(REST_LIMIT, condition):
        raise Failure(what)


class Daemon:
    def __init__(self, session, page, number, last, library, env=None):
        self.directory = session.fabrics_directory() / FABRIC
        self.directory.parent.mkdir(mode=0o700, exist_ok=True)
        switches = injector.environment(page, "softhcad", number, last)
        self.read, write = os.pipe()
        self.process = subprocess.Popen(
            [str(session.build / "softhcad"), "--dir", str(self.directory), "--stay",
             "--ready-fd", str(write)], pass_fds=[write], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**session.env, **switches, "LD_PRELOAD": str(library), **(env or {})})
        os.close(write)

    def serves(self):
        """Waits until it serves or has refused to."""
        with os.fdopen(self.read, "rb") as verdict:
            word = verdict.read(4)
        return word == bytes(4)

    def alive(self):
        return self.process.poll() is None

    def rest(self):
        """It comes to rest: the CPU time stands still."""
        pid = self.process.pid

        def still():
            before = cpu_seconds(pid)
            time.sleep(0.05)
            return cpu_seconds(pid) == before
        wait_for(still, "the daemon does not come to rest")

    def end(self):
        self.process.terminate()
        try:
            self.process.communicate(timeout=REST_LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Failure("the daemon does not leave")
        return self.process.returncode


class Serve:
    """start: first, its own start meets the faults; serving, an innocent pair is connected before."""
    always = 0

    def __init__(self, programs, device, start, mode):
        self.programs, self.device, self.start, self.mode = programs, device, start, mode
        self.name = f"daemon {start} {mode}"
        # The device tree that it writes when it starts is several hundred calls of a few kinds.
        # One that fails for good while it serves takes five seconds of computing for each.
        self.stride = 150 if start == "first" else 60 if mode == "on" else 30

    def walk(self, session, how, env=None):
        argv = [session.softhca, "run", "--fabric", FABRIC, "--", str(self.programs / "walk"),
                self.device, how]
        return session.start(argv, env={**session.env, **(env or {})})

    def innocent(self, session):
        argv = [session.softhca, "run", "--fabric", FABRIC, "--", str(self.programs / "walk"),
                self.device, "innocent"]
        process = subprocess.Popen(argv, env=session.env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        for line in process.stdout:
            if line == "ready\n":
                return process
        raise Failure(f"the innocent pair is not served: {process.communicate()[1]}")

    def faulty_client(self, session, number, last):
        env = {"INJECT_LAST": str(last)}
        if self.mode == "on" and number // self.stride % MADS_EVERY:
            env["INJECT_WITHOUT_MADS"] = "1"
        result = session.finish(self.walk(session, "served", env), CLIENT_LIMIT)
        expect(result.status == 0 or number and result.status == REFUSED,
               f"the client: {status_text(result.status)}\n{result.text()}")

    def run_clients(self, session, page, number, daemon):
        last = number if self.mode == "once" else injector.ENDLESS
        idle = descriptors(daemon.process.pid)
        pair = None
        try:
            if self.start == "serving":
                pair = self.innocent(session)
                page.hold(False)
            self.faulty_client(session, number, last)
            expect(daemon.alive(), "the daemon has gone")
            daemon.rest()
            page.hold(True)
            if pair:
                out, err = pair.communicate("end\n", timeout=CLIENT_LIMIT)
                expect(pair.returncode == 0 and out.endswith("done\n"),
                       f"the innocent pair: {status_text(pair.returncode)}\n{out}{err}")
        finally:
            if pair and pair.poll() is None:
                os.killpg(pair.pid, signal.SIGKILL)
                pair.communicate()
        result = session.finish(self.walk(session, "strict"), CLIENT_LIMIT)
        expect(result.status == 0, f"a client afterwards: {status_text(result.status)}\n"
               f"{result.text()}")
        wait_for(lambda: descriptors(daemon.process.pid) <= idle,
                 "the daemon keeps descriptors")

    def leave_nothing(self, session, page):
        """A daemon that could take no lock, or open no directory to the last, leaves what it made to
        the next one."""
        if self.mode == "on" or "flock" in str(page):
            session.tool("run", "--fabric", FABRIC, "--", "true")
        try:
            session.fabrics_directory().rmdir()
        except OSError:  # a daemon has removed it, or is about to
            pass
        session.expect_clean()

    def scenario(self, session, page, number):
        last = number if self.mode == "once" else injector.ENDLESS
        page.hold(self.start == "serving")
        daemon = Daemon(session, page, number, last, self.programs / "libinject.so")
        try:
            if daemon.serves():
                self.run_clients(session, page, number, daemon)
                expect(daemon.alive(), "the daemon has gone")
                status = daemon.end()
                expect(status == 0, f"the daemon: {status_text(status)}")
            else:
                daemon.process.wait(REST_LIMIT)
                expect(number and daemon.process.returncode == 1,
                       f"the daemon: {status_text(daemon.process.returncode)}")
        except subprocess.TimeoutExpired as late:
            raise Failure(f"no end after {late.timeout} s: {late.cmd}")
        finally:
            if daemon.alive():
                daemon.process.kill()
            daemon.process.communicate()
            page.hold(True)
        self.leave_nothing(session, page)

    def count(self, session):
        with injector.report() as page:
            self.scenario(session, page, 0)
            expect(page.calls > 0, "the injector counts nothing")
            return page.calls

    def run(self, session, number):
        with injector.report() as page:
            try:
                self.scenario(session, page, number)
            except (Failure, OSError) as failure:
                session.kill_strays()
                raise Failure(f"{page}: {failure}")


def kinds(programs):
    return [Serve(programs, "mlx5_0", start, mode) for start in ("first", "serving")
            for mode in ("once", "on")]
