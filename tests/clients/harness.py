# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs under `softhca run`, alone or as server and client, and sees that nothing stays.

Each session of tests has a run-time directory of its own.  Its name is in the environment of every
process started here, so processes and files left behind are found whatever they are called.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

TIME_LIMIT = 180  # seconds for one program: two that poll in turns may have to share a processor with others
LEAVE_LIMIT = 30  # seconds for a daemon to leave after its last client, which takes milliseconds
TRAFFIC_LIMIT = 60  # seconds until two programs must have met
REST_LIMIT = 30  # seconds for a program whose peer has failed: what it waits for may never come
NAP = 0.02
NAPS = 10


class Failure(Exception):
    """What the test expected did not happen."""


class Skip(Exception):
    """The test cannot run here; the message says why."""


def only_long(test):
    """A test that runs in the long form, and where its name is asked for."""
    test.only_long = True
    return test


def expect(condition, message):
    if not condition:
        raise Failure(message)


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def text(self):
        return self.out + self.err


def story_of(results):
    """Status and text of each of several programs, by name: what one says is often the reason of what another says."""
    return "; ".join(f"{name}: status {result.status}" for name, result in results.items()) + "".join(
        f"\n{name}:\n{result.text()[-3000:]}" for name, result in results.items())


def all_ended_well(results, good=(0,)):
    expect(all(result.status in good for result in results.values()), story_of(results))


@contextlib.contextmanager
def public_copy(build, *names):
    """What another user runs of a build directory, in a directory that every user can enter, wherever the tree lies: the
    tool, its daemon and its library, and the named programs and folders of programs."""
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        for name in ("softhca", "softhcad", "libsofthca-preload.so", *names):
            for path in (build / name).iterdir() if (build / name).is_dir() else [build / name]:
                if path.is_file() and os.access(path, os.X_OK):
                    copy = pathlib.Path(directory) / path.relative_to(build)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, copy)
                    copy.chmod(0o755)
        for folder, _, _ in os.walk(directory):
            os.chmod(folder, 0o755)
        yield pathlib.Path(directory)


class Session:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.softhca = str(self.build / "softhca")
        self.runtime = pathlib.Path(tempfile.mkdtemp(prefix="softhca-test.", dir=os.environ.get("TEST_RUNTIMES")))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SOFTHCA_")}
        self.env["XDG_RUNTIME_DIR"] = str(self.runtime)
        # Debian keeps ibstat and its kin where an ordinary user's PATH does not lead.
        self.env["PATH"] = self.env.get("PATH", os.defpath) + ":/usr/sbin:/sbin"

    def close(self):
        self.kill_strays()
        shutil.rmtree(self.runtime, ignore_errors=True)

    def fabrics_directory(self):
        """Where the tool keeps this user's fabrics: in a user namespace, the name has both IDs."""
        uid = os.geteuid()
        for line in pathlib.Path("/proc/self/uid_map").read_text().splitlines():
            inside, outside, count = map(int, line.split())
            if inside != outside and inside <= uid < inside + count:
                return self.runtime / f"softhca-{uid}-{outside + uid - inside}"
        return self.runtime / f"softhca-{uid}"

    # ---- starting programs ----

    def start(self, argv, env=None, stdin=subprocess.DEVNULL, **options):
        process = subprocess.Popen(argv, env=env or self.env, stdin=stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=0,
                                   errors="replace", start_new_session=True, **options)
        # A line is read byte by byte.  communicate() would not see what readline() has read ahead.
        process.stdout._CHUNK_SIZE = 1
        return process

    def finish(self, process, limit=TIME_LIMIT):
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failure(f"no end after {limit} s: {' '.join(process.args)}\n{out}{err}")
        return Result(process.returncode, out, err)

    def finish_all(self, processes, limit=TIME_LIMIT, good=(0,)):
        """Results of programs that wait for each other, by the names under which they are given.  When one has ended with
        another status than those, the others have a few seconds left.  One that does not end is a failure."""
        results, late = {}, []

        def finish(name, process):
            out, err = process.communicate()
            results[name] = Result(process.returncode, out, err)

        threads = {name: threading.Thread(target=finish, args=(name, process), daemon=True)
                   for name, process in processes.items()}
        for thread in threads.values():
            thread.start()
        in_time = within(limit, lambda: len(results) == len(threads) or
                         any(result.status not in good for result in list(results.values())))
        for name, thread in threads.items():
            thread.join(REST_LIMIT if in_time else 0)
            if thread.is_alive():
                late.append(name)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(processes[name].pid, signal.SIGKILL)
                thread.join()
        results = {name: results[name] for name in processes}
        expect(not late, f"no end of {' and '.join(late)}" + f" after {limit} s" * (not in_time) +
               f"; {story_of(results)}")
        return results

    def call(self, *argv, limit=TIME_LIMIT, **options):
        return self.finish(self.start(list(argv), **options), limit)

    def tool(self, *arguments, **options):
        return self.call(self.softhca, *arguments, **options)

    def run(self, *program, run_options=(), **options):
        return self.tool("run", *run_options, "--", *program, **options)

    def run_ok(self, *program, **options):
        result = self.run(*program, **options)
        expect(result.status == 0, f"status {result.status} of {' '.join(program)}\n"
               f"{result.text()}")
        return result

    def background(self, *program, run_options=(), **options):
        return self.start([self.softhca, "run", *run_options, "--", *program], **options)

    def pair(self, server, client, limit=TIME_LIMIT, run_options=(), client_options=(), **options):
        """Two separate runs; the client starts when the server listens, with further options of softhca run if there are
        any.  Returns both results."""
        port = free_port()
        first = self.background(*server, "-p", str(port), run_options=run_options, **options)
        try:
            wait_listening(port, first)
            second = self.background(*client, "-p", str(port), "127.0.0.1",
                                     run_options=(*run_options, *client_options), **options)
            results = self.finish_all({"server": first, "client": second}, limit)
        finally:
            if first.poll() is None:
                os.killpg(first.pid, signal.SIGKILL)
                first.communicate()
        return results["server"], results["client"]

    # ---- nothing may stay ----

    def processes(self):
        """Processes of this session, children not yet reaped excepted: {pid: command}."""
        marker = f"XDG_RUNTIME_DIR={self.runtime}".encode()
        found = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if marker in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "comm").read_text().strip()
            except OSError:
                continue  # ended meanwhile, or not ours to see
        found.pop(os.getpid(), None)
        return found

    def daemons(self):
        return [pid for pid, name in self.processes().items() if name.startswith("softhcad")]

    def leftovers(self):
        # os.walk bears with a tree that is being removed while it looks.
        files = [os.path.join(where, name) for where, directories, names in os.walk(self.runtime)
                 for name in directories + names]
        return [f"process {n} ({p})" for p, n in self.processes().items()] + files[:5]

    def expect_clean(self, limit=LEAVE_LIMIT):
        if not within(limit, lambda: not self.leftovers()):
            raise Failure("left behind: " + ", ".join(self.leftovers()))

    def kill_strays(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.05)
        for entry in self.runtime.iterdir():
            shutil.rmtree(entry, ignore_errors=True)


def within(limit, done):
    """Whether done() comes true.  A round counts for NAPS naps at most: where everything stands still for a while, others
    get their time before the last look."""
    waited = 0
    while waited < limit:
        begin = time.monotonic()
        if done():
            return True
        time.sleep(NAP)
        waited += min(time.monotonic() - begin, NAPS * NAP)
    return done()


def data_sent(session, device, host="host1"):
    """What the port has sent, in words of 4 bytes."""
    path = f"/sys/class/infiniband/{device}/ports/1/counters/port_xmit_data"
    result = session.tool("run", "--host", host, "--", "cat", path)
    expect(result.status == 0, result.text())
    return int(result.out)


def data_flows(session, processes, device, hosts=("host1",), limit=TRAFFIC_LIMIT):
    """Waits until data flows over the device of one of the hosts, or one of the processes has ended;
    whether it flows."""
    before = {host: data_sent(session, device, host) for host in hosts}
    flows = []

    def enough():
        flows[:] = [any(data_sent(session, device, host) != before[host] for host in hosts)]
        return flows[0] or any(p.poll() is not None for p in processes)

    expect(within(limit, enough), f"no data within {limit} s")
    return flows[0]


def settled(read, wanted, limit=LEAVE_LIMIT):
    """Waits until read() is at most wanted; returns the last reading."""
    readings = []

    def enough():
        readings[:] = [read()]
        return readings[0] <= wanted

    within(limit, enough)
    return readings[0]


def free_port():
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("", 0))
        return s.getsockname()[1]


def is_listening(port):
    suffix = f":{port:04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = pathlib.Path(name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[1].endswith(suffix) and fields[3] == "0A":  # TCP_LISTEN
                return True
    return False


def wait_listening(port, process, limit=30):
    # If it has ended, its status and output tell the story.
    if not within(limit, lambda: is_listening(port) or process.poll() is not None):
        os.killpg(process.pid, signal.SIGKILL)
        raise Failure(f"the server does not listen: {' '.join(process.args)}\n{''.join(process.communicate())}")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
