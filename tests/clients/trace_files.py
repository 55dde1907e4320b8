# SPDX-License-Identifier: BSD-2-Clause
"""softhca trace: its files beside what programs say that they have posted, and beside the format of trace events; programs
and readers that stop or die."""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile

from harness import Skip, expect, free_port, wait_listening, within
from ports import fabric

SECONDS = 30
PHASES = {"M", "X", "b", "e", "s", "f"}


class Trace:
    """A file, checked against the Trace Event Format: what each phase must have, what belongs together, and that times go on."""

    def __init__(self, text):
        self.events = json.loads(text)
        self.slices = {"send": [], "receive": []}  # (begin, end) events
        self.names, self.threads = {}, {}
        expect(isinstance(self.events, list), "not an array of events")
        for event in self.events:
            self.form(event)
        self.times()
        self.asynchronous()
        self.arrows = self.flows()

    def form(self, event):
        phase = event.get("ph")
        expect(phase in PHASES and isinstance(event.get("name"), str) and isinstance(event.get("pid"), int), f"no event: {event}")
        if phase == "M":
            if event["name"] == "process_name":
                self.names[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                self.threads[event["tid"]] = event["args"]["name"]
            else:
                expect(event["name"] == "thread_sort_index", f"unknown metadata: {event}")
            return
        expect(isinstance(event.get("ts"), (int, float)) and event["ts"] >= 0 and event.get("cat"), f"no time or category: {event}")
        expect(event["pid"] in self.names and event.get("tid") in self.threads, f"of no named process and thread: {event}")
        expect(phase != "X" or event.get("dur", -1) >= 0, f"a slice without a length: {event}")
        expect(phase not in "besf" or event.get("id"), f"no id: {event}")

    def times(self):
        last = collections.defaultdict(float)
        for event in (e for e in self.events if e["ph"] == "X"):
            expect(event["ts"] >= last[event["tid"]], f"a time goes back to before {last[event['tid']]}: {event}")
            last[event["tid"]] = event["ts"]

    def asynchronous(self):
        begun = {}
        for event in self.events:
            key = (event.get("cat"), event.get("id"))
            if event["ph"] == "b":
                expect(key not in begun, f"begins twice: {event}")
                begun[key] = event
            elif event["ph"] == "e":
                begin = begun.pop(key, None)
                expect(begin and begin["name"] == event["name"] and begin["ts"] <= event["ts"], f"ends what has not begun: {event}")
                self.slices[event["cat"]].append((begin, event))
        expect(not begun, f"do not end: {list(begun.values())[:3]}")

    def flows(self):
        """Arrows as (category, event they begin at, event they end at); each end lies on a slice of its thread."""
        at = {(e["tid"], e["ts"]) for e in self.events if e["ph"] == "X"}
        begun, found = {}, []
        for event in (e for e in self.events if e["ph"] in "sf"):
            expect((event["tid"], event["ts"]) in at, f"an arrow that touches no slice: {event}")
            key = (event["cat"], event["id"])
            if event["ph"] == "s":
                expect(key not in begun, f"begins twice: {event}")
                begun[key] = event
            else:
                expect(key in begun and begun[key]["ts"] <= event["ts"], f"an arrow back in time: {event} {begun.get(key)}")
                found.append((event["cat"], begun.pop(key), event))
        expect(not begun, f"arrows without an end: {list(begun.values())[:3]}")
        return found

    def program(self, name):
        """The process IDs of programs of that name."""
        return [pid for pid, text in self.names.items() if re.fullmatch(rf"{re.escape(name)} \(\d+\)", text)]

    def requests(self, kind, **arguments):
        return [begin for begin, _end in self.slices[kind]
                if all(str(begin["args"].get(k)) == v for k, v in arguments.items())]

    def of(self, category):
        return [e for e in self.events if e["ph"] == "X" and e["cat"] == category]


@contextlib.contextmanager
def place():
    with tempfile.TemporaryDirectory(prefix="softhca-trace.") as directory:
        yield str(pathlib.Path(directory) / "x.json")


def traced(session, *argv, options=(), status=0):
    """Runs a program under softhca trace; the trace, what was said."""
    with place() as file:
        result = session.tool("trace", "-w", file, *options, "--", *argv)
        expect(result.status == status, f"status {result.status}\n{result.text()[-3000:]}")
        return Trace(pathlib.Path(file).read_text()), result


def both(session, program, device, *arguments, host="host1"):
    """A shell line that runs server and client of perftest, the second on that host."""
    port = free_port()
    line = f"{program} -d {device} -p {port} {' '.join(arguments)}"
    wait = f"until grep -q ':{port:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done"
    return "sh", "-c", f"{line} & {wait}; {session.softhca} run --host {host} -- {line} 127.0.0.1 && wait $!"


def of_both(trace, program):
    pids = trace.program(program)
    expect(len(pids) == 2, f"{trace.names}")
    return pids


def whole(session):
    """All kinds of events: 200 WRITEs of two packets each on InfiniBand, from host to host."""
    trace, _ = traced(session, *both(session, "ib_write_bw", "mlx5_0", "-n", "200", "-s", "8192", "-m", "4096", "-Q", "1", host="host2"))
    of_both(trace, "ib_write_bw")
    sent = trace.requests("send", opcode="RDMA_WRITE", status="SUCCESS")
    expect(len(sent) == len(trace.requests("send")) == 200, f"{len(sent)} of {len(trace.requests('send'))} slices")
    expect(all(s["args"]["bytes"] == 8192 and "wr_id" in s["args"] for s in sent), f"{sent[:2]}")
    kinds = collections.Counter(category for category, _, _ in trace.arrows)
    packets = trace.of("packet")
    writes = [p for p in packets if "WRITE" in p["name"]]
    received = [p for p in packets if p["name"].startswith("receive ")]
    # As sent and as received, and on a busy machine some again; what is received has an arrow from where it was sent.
    expect(len(writes) >= 800, f"{collections.Counter(p['name'] for p in packets)}")
    expect(kinds["completion"] == 200 and kinds["packet"] == len(received), f"{kinds} {len(received)}")
    expect(all(a["pid"] != b["pid"] for category, a, b in trace.arrows if category == "packet"), "an arrow to itself")
    expect({"host1/mlx5_0", "host2/mlx5_0"} <= set(trace.threads.values()), f"{trace.threads}")
    expect(trace.of("doorbell") and trace.of("decision"), "no doorbell, or no decision")


def without_packets(session):
    """Only requests: those that the library's calls make, some without a completion of their own."""
    for program, opcode, *arguments in (("ib_send_bw", "SEND", "-l", "10", "-Q", "10"), ("ib_send_bw", "SEND", "--use_old_post_send", "-Q", "1"),
                                        ("ib_read_bw", "RDMA_READ", "-Q", "5"), ("ib_write_bw", "RDMA_WRITE", "-l", "10", "-Q", "10"),
                                        ("ib_write_bw", "RDMA_WRITE", "--use_old_post_send", "-s", "8", "-Q", "50")):
        trace, _ = traced(session, *both(session, program, "mlx5_1", "-n", "500", *arguments), options=("-e", "wqe"))
        of_both(trace, program)
        sent = trace.requests("send", opcode=opcode, status="SUCCESS")
        expect(len(sent) == 500, f"{program} {arguments}: {len(sent)} slices")
        expect(not trace.of("packet") and not trace.of("decision"), f"{program}: what was not wanted")
        completed = [s for s in sent if "cqn" in s["args"]]
        expect(len(completed) == 500 / int(arguments[-1]), f"{program} {arguments}: {len(completed)} completions")
        known = sent if "--use_old_post_send" in arguments else completed
        expect(all("wr_id" in s["args"] for s in known), f"{program} {arguments}: no wr_id")
        received = trace.requests("receive", status="SUCCESS")
        expect(len(received) == (500 if opcode == "SEND" else 0), f"{program}: {len(received)} receives")


def shared_receives(session):
    """Receives of a shared queue that many queue pairs take from belong to the queue pair that has taken them."""
    trace, _ = traced(session, *both(session, "ib_send_bw", "mlx5_0", "-n", "300", "-q", "4", "-r", "64", "--use-srq"),
                      options=("-e", "wqe"))
    of_both(trace, "ib_send_bw")
    received = trace.requests("receive", status="SUCCESS")
    expect(len(received) == 1200 and all("wr_id" in r["args"] and "cqn" in r["args"] for r in received),
           f"{len(received)} receives: {received[:2]}")
    of_queue = collections.Counter(r["args"]["qpn"] for r in received)
    expect(sorted(of_queue.values()) == [300] * 4, f"{of_queue}")
    begun = sorted(e["ts"] for e in trace.of("post") if trace.threads[e["tid"]].startswith("SRQ "))
    expect(begun == sorted(r["ts"] for r in received), "slices do not begin with the posts")


def connected(session):
    """rping between hosts: what it posts five times over, its connection's MADs, and packets from one process to the other."""
    server = f"rping -s -a 198.18.0.1 -C 5 & sleep 1; {session.softhca} run --host host2 -- rping -c -a 198.18.0.1 -C 5; wait"
    trace, _ = traced(session, "sh", "-c", server)
    of_both(trace, "rping")
    ok = {opcode: len(trace.requests("send", opcode=opcode, status="SUCCESS")) for opcode in ("SEND", "RDMA_READ", "RDMA_WRITE")}
    expect(ok == {"SEND": 20, "RDMA_READ": 5, "RDMA_WRITE": 5}, f"{ok}")
    expect(len(trace.requests("receive", opcode="RECV", status="SUCCESS")) == 20, f"{len(trace.slices['receive'])} receives")
    expect(any("class 0x7 " in m["name"] for m in trace.of("mad")), "no MAD of the communication manager")
    expect(all(name.startswith("softhcad ") for pid, name in trace.names.items()
               if any(m["pid"] == pid for m in trace.of("mad"))), f"{trace.names}")


def refused_requests(session):
    """Requests that fail, and posts that the library refuses."""
    program = str(session.build / "tests/tools/mistakes")
    trace, _ = traced(session, program, "behind_region", options=("-e", "wqe"))
    expect(len(trace.requests("send", status="REM_ACCESS")) == 1, f"{trace.slices}")
    trace, result = traced(session, program, "send_queue_full", options=("-e", "wqe"))
    refused = [e for e in trace.of("post") if e["name"] == "post refused"]
    posted = [e for e in trace.of("post") if e["name"] == "post send"]
    lost = sum(e["args"]["requests"] for e in refused)
    expect(lost and len(trace.requests("send")) == len(posted) - lost, f"{len(posted)} {lost} {len(trace.slices['send'])}")
    expect(f"{len(posted) - lost} send requests, " in result.err, result.err)


def device_code(session):
    """A Flex IO program: its calls of device code are slices of a thread of the DPA."""
    example = session.build / "examples/flexio/flexio-rpc"
    if not example.exists():
        raise Skip("dpacc is not built (see the configuration's message about the DPA)")
    trace, _ = traced(session, str(example))
    runs = trace.of("dpa")
    expect(runs and all(r["args"]["outcome"] == "returned" and r["dur"] > 0 for r in runs), f"{runs}")
    expect(all(trace.threads[r["tid"]].startswith("DPA thread ") for r in runs), f"{trace.threads}")


@contextlib.contextmanager
def running(session, *argv):
    """A trace in the background; it ends by itself, or is killed."""
    process = session.start([session.softhca, "trace", *argv])
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def endless(session, *options):
    """A pair of ib_write_bw that goes on; the caller ends both."""
    port = str(free_port())
    argv = ("ib_write_bw", "-d", "mlx5_1", "-p", port, "--run_infinitely", "-D", "100")
    server = session.background(*argv)
    wait_listening(int(port), server)
    return server, session.background(*argv, "127.0.0.1")


def interrupted(session):
    """A trace of all programs of a fabric, also of one that began before it, until SIGINT."""
    with place() as file, fabric(session):
        server, client = endless(session)
        try:
            with running(session, "-w", file, "-e", "wqe") as trace:
                expect("end it with Ctrl-C" in trace.stderr.readline(), "it does not begin")
                expect(within(SECONDS, lambda: os.path.getsize(file) > 100000), "nothing is written")
                session.run_ok("ibv_devinfo")
                trace.send_signal(signal.SIGINT)
                result = session.finish(trace, SECONDS)
            expect(result.status == 0, result.text())
            found = Trace(pathlib.Path(file).read_text())
            sent = found.requests("send", opcode="RDMA_WRITE", status="SUCCESS")
            expect(len(sent) > 100 and client.poll() is None, f"{len(sent)} slices")
        finally:
            for process in (client, server):
                process.kill()
                process.communicate()


def killed(session):
    """A traced program is killed: what it has done is there, what it had posted ends with it."""
    with place() as file, fabric(session):
        port = str(free_port())
        argv = ("ib_write_bw", "-d", "mlx5_0", "-p", port, "--run_infinitely", "-D", "100")
        server = session.background(*argv)
        wait_listening(int(port), server)
        with running(session, "-w", file, "-e", "wqe", "--", *argv, "127.0.0.1") as trace:
            expect(within(SECONDS, lambda: os.path.exists(file) and os.path.getsize(file) > 100000), "nothing is written")
            (child,) = [int(p) for p in pathlib.Path(f"/proc/{trace.pid}/task/{trace.pid}/children").read_text().split()]
            os.kill(child, signal.SIGKILL)
            result = session.finish(trace, SECONDS)
        server.kill()
        server.communicate()
        expect(result.status == 128 + signal.SIGKILL, f"status {result.status} {result.text()}")
        found = Trace(pathlib.Path(file).read_text())
        expect(child in found.program("ib_write_bw"), f"{found.names}")
        expect(len(found.requests("send", status="SUCCESS")) > 100, f"{len(found.slices['send'])} slices")


def told_to_end(session):
    """A signal to the trace goes on to the program, with whose end it ends; its exit status is the program's."""
    with place() as file:
        with running(session, "-w", file, "--", "sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done") as trace:
            expect(trace.stdout.readline() == "ready\n", "no program")
            trace.send_signal(signal.SIGTERM)
            result = session.finish(trace, SECONDS)
        expect(result.status == 7, f"status {result.status} {result.text()}")
        Trace(pathlib.Path(file).read_text())
    traced(session, "false", status=1)


def stopped_reader(session):
    """A pipe that nobody empties: programs go on, and what is lost is counted."""
    with fabric(session):
        with running(session, "-w", "-", "-B", "1") as trace:
            expect("end it with Ctrl-C" in trace.stderr.readline(), "it does not begin")
            argv = ("ib_write_bw", "-d", "mlx5_0", "-n", "5000", "-s", "65536")
            results = session.pair(argv, argv)
            expect(all(r.status == 0 for r in results), results[1].text())
            trace.send_signal(signal.SIGINT)
            result = session.finish(trace, SECONDS)
        dropped = re.search(r"^(\d+) records dropped: ", result.err, re.MULTILINE)
        expect(result.status == 0 and dropped and int(dropped[1]) > 1000, result.err)
        json.loads(result.out)


def hostile_names(session):
    """The name of a program is any bytes, and says nothing in the file but a name."""
    with tempfile.TemporaryDirectory(prefix="softhca-trace.") as directory:
        for name in (b'"},{"ph":"X', b"a\\\xff\xc3\n<b>"):
            program = os.path.join(os.fsencode(directory), name)
            shutil.copyfile(shutil.which("ibv_devinfo"), program)
            os.chmod(program, 0o755)
            with place() as file:
                result = session.call(session.softhca, "trace", "-w", file, "--", program)
                expect(result.status == 0, result.text())
                trace = Trace(pathlib.Path(file).read_text())
                expect(len(trace.names) == 2, f"{trace.names}")


def refused(session):
    """Each mistake is one line."""
    def line(wanted, status, *argv):
        result = session.tool("trace", *argv)
        expect(result.status == status and result.err.count("\n") == 1 and wanted in result.err and not result.out,
               f"{argv}: status {result.status} {result.text()}")

    line("-w FILE is missing", 2)
    line("-w FILE is missing", 2, "--", "true")
    line("/nowhere/x.json: No such file or directory", 125, "-w", "/nowhere/x.json", "--", "true")
    line("no events are called 'wqes'", 2, "-w", "/dev/null", "-e", "wqe,wqes", "true")
    line("no events are called ''", 2, "-w", "/dev/null", "-e", "wqe,", "true")
    line("-B takes a number from 1 to 1024", 2, "-w", "/dev/null", "-B", "0", "true")
    line("the option needs a value", 2, "-w")
    line("bad option: --count", 2, "-w", "/dev/null", "--count", "true")
    line("standard output is the program's", 2, "-w", "-", "true")
    with place() as file:
        result = session.tool("trace", "-w", file, "--", "no-such-program")
        expect(result.status == 127 and result.err == "softhca trace: no-such-program: no such program\n", result.text())
        Trace(pathlib.Path(file).read_text())
    full = session.tool("trace", "-w", "/dev/full", "--", "ibv_devinfo")
    expect(full.status == 125 and "softhca trace: /dev/full: No space left on device\n" in full.err, full.text())


def cases():
    return [(f"trace file: {name}", row) for name, row in (
        ("a transfer", whole), ("without packets", without_packets), ("shared receive queues", shared_receives), ("a connection", connected),
        ("requests that fail", refused_requests), ("device code", device_code), ("until SIGINT", interrupted),
        ("a program that is killed", killed), ("a program that is told to end", told_to_end),
        ("a reader that stops", stopped_reader), ("hostile names", hostile_names), ("what is refused", refused))]
