# SPDX-License-Identifier: BSD-2-Clause
"""What SOFTHCA_TRACE tells of two processes, of which mostly one's request fails; and that each
trace point is told of by one of these tests."""
import fnmatch
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile

from harness import Skip, all_ended_well, expect, free_port, story_of, wait_listening, within
from ports import fabric, set_port
import ucx

LINE = re.compile(r"softhca\[(\d+)/(\d+)\]: (\d+\.\d{9}) ([a-z]+\.[a-z]+)((?: [a-z_]+=(?:\"[^\"]*\"|\S+))+)$")

SOURCE = pathlib.Path(__file__).resolve().parents[2]

seen = {}  # trace points, each with the test that was told of it first
done = set()  # tests that have run to their end
current = None  # the test that runs


class Told:
    """The trace lines of one process."""

    def __init__(self, text):
        self.text = text
        self.lines = [m for m in map(LINE.match, text.splitlines()) if m]
        for line in self.lines:
            seen.setdefault(line[4], current)

    def expect(self, point, **values):
        """A line of this point has these values; says which if not."""
        for line in self.lines:
            told = dict(re.findall(r'([a-z_]+)=("[^"]*"|\S+)', line[5]))
            if line[4] == point and all(told.get(k) == v for k, v in values.items()):
                return told
        expect(False, f"no {point} with {values} in\n{self.text[-4000:]}")


def both_told(session, sender, listener, status=0):
    """What the listener and the sender have told; the listener ends as its case wants."""
    results = session.finish_all({"sender": sender, "listener": listener}, good=range(-64, 256))
    expect(results["sender"].status == status, story_of(results))
    return Told(results["listener"].text()), Told(results["sender"].text())


def wait_told(process, point):
    """Until that process has told of that point; the lines up to there are not kept."""
    for line in process.stderr:
        match = LINE.match(line)
        if match:
            seen.setdefault(match[4], current)
            if match[4] == point:
                return
    expect(False, f"the process ends without {point}")


def failing_pair(session, case, patterns, between=None):
    """What both processes of tests/robust/failing.c tell: the listener, the one that fails."""
    program = str(session.build / "tests" / "robust" / "failing")
    port = str(free_port())
    options = ["--trace", patterns]
    listener = session.background(program, "mlx5_0", "listen", port, case, run_options=options)
    wait_listening(int(port), listener)
    sender = session.background(program, "mlx5_0", "connect", port, case, run_options=options)
    if between:
        between(listener, sender)
    return both_told(session, sender, listener)


def wrong_key(session):
    listener, sender = failing_pair(session, "key", "*")
    told = listener.expect("access.remote", right="REMOTE_WRITE", verdict="NO_KEY", bytes="64")
    qpn = told["qpn"]
    listener.expect("packet.refused", qpn=qpn, why="remote-access-error", op="WRITE_ONLY")
    listener.expect("nak.sent", qpn=qpn, syndrome="REMOTE_ACCESS")
    listener.expect("qp.event", qpn=qpn, event="QP_ACCESS_ERR")
    listener.expect("qp.state", qpn=qpn, to="ERR", why="REMOTE_ACCESS")
    sender.expect("bypass.left", peer=qpn, opcode="RDMA_WRITE")
    sender.expect("nak.received", peer=qpn, syndrome="REMOTE_ACCESS")
    sender.expect("send.error", peer=qpn, opcode="RDMA_WRITE", syndrome="REM_ACCESS")
    sender.expect("qp.state", to="ERR", why="REM_ACCESS")
    for told in (listener, sender):
        told.expect("fabric.joined")
        told.expect("channel.open")
        told.expect("qp.state", **{"from": "INIT", "to": "RTR", "why": "modify"})


def wrong_local_key(session):
    _, sender = failing_pair(session, "local", "access.*,send.*")
    sender.expect("access.key", right="LOCAL_READ", verdict="NO_KEY", bytes="64")
    sender.expect("access.local", what="SEND", verdict="NO_KEY", bytes="64")
    sender.expect("send.error", opcode="SEND", syndrome="LOCAL_PROT")


def no_receive(session):
    patterns = "rnr.*", "retry.*", "send.error"
    listener, sender = failing_pair(session, "receive", ",".join(patterns))
    listener.expect("rnr.sent", delay_us="10")
    sender.expect("rnr.received", delay_us="10", left="1")
    sender.expect("rnr.received", left="0")
    sender.expect("retry.begin", why="rnr-timer")
    sender.expect("retry.exhausted", why="receiver-not-ready")
    sender.expect("send.error", opcode="SEND", syndrome="RNR_RETRY_EXC")
    others = {line[4] for line in sender.lines
              if not any(fnmatch.fnmatch(line[4], pattern) for pattern in patterns)}
    expect(not others, f"points that no pattern matches: {others}")


def killed_peer(session):
    def kill(listener, sender):
        expect(sender.stdout.readline() == "going\n", "the pair does not begin")
        listener.kill()
        # A process that is killed may need longer to go than the retries of the other last.
        wait_told(sender, "channel.gone")
        sender.send_signal(signal.SIGUSR1)

    _, sender = failing_pair(session, "killed", "channel.*,packet.*,retry.*,send.*,qp.*", kill)
    sender.expect("packet.lost")
    sender.expect("retry.begin", why="timeout")
    sender.expect("retry.exhausted", why="timeout")
    sender.expect("send.error", opcode="SEND", syndrome="RETRY_EXC")
    sender.expect("qp.state", to="ERR", why="RETRY_EXC")


# ---- a pair that waits twice ----

class Pair:
    """The cases "later" and "blocked" of tests/robust/failing.c; what else the environment says."""

    def __init__(self, session, patterns, case="later", **said):
        program = str(session.build / "tests" / "robust" / "failing")
        port = str(free_port())
        options = ["--trace", patterns]
        env = {**session.env, **said}
        self.session, self.before = session, {}
        self.listener = session.background(program, "mlx5_0", "listen", port, case,
                                           run_options=options, env=env)
        wait_listening(int(port), self.listener)
        self.sender = session.background(program, "mlx5_0", "connect", port, case,
                                         run_options=options, env=env)
        self.wait("open")

    def wait(self, word):
        """Until the sender says so."""
        expect(self.sender.stdout.readline() == word + "\n", f"the sender does not say '{word}'")

    def go_on(self):
        self.sender.send_signal(signal.SIGUSR1)

    def stop_listener(self):
        self.listener.send_signal(signal.SIGSTOP)
        stat = pathlib.Path(f"/proc/{self.listener.pid}/stat")
        expect(within(30, lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T"),
               "the listener does not stop")

    def leave_unanswered(self):
        """The listener is stopped with a request under way, until the sender has sent it again."""
        self.go_on()
        self.wait("going")
        self.stop_listener()
        self.go_on()
        wait_told(self.sender, "retry.begin")

    def ended(self, status=0):
        """What the listener and the sender have told."""
        return both_told(self.session, self.sender, self.listener, status)


def bypass_by_way(name, way, **said):
    """Which way a WRITE goes, and why a SEND takes none."""
    def test(session):
        pair = Pair(session, "bypass.*,peer.*", **said)
        pair.go_on()
        pair.wait("going")
        pair.go_on()
        listener, sender = pair.ended()
        if way == "packets":
            sender.expect("bypass.left", opcode="RDMA_WRITE", bytes="64", why="not-exposed")
        else:
            sender.expect("bypass.taken", opcode="RDMA_WRITE", requests="1", bytes="64", way=way)
            listener.expect("bypass.revoked")
            sender.expect("peer.exposed", way="mapped")
        sender.expect("bypass.left", opcode="SEND", bytes="64", why="opcode")
    test.__name__ = f"the way to {name}"
    return test


def duplicates(session):
    """A receiver is stopped until its peer has sent again: it gets the SEND twice, takes it once."""
    pair = Pair(session, "retry.*,packet.duplicate")
    pair.leave_unanswered()
    pair.listener.send_signal(signal.SIGCONT)
    listener, _ = pair.ended()
    listener.expect("packet.duplicate", op="SEND_ONLY")


def deferred(session):
    """A receiver that is not stopped, and has not come to its packets, is waited for."""
    pair = Pair(session, "retry.*,engine.*", case="blocked")
    pair.go_on()
    pair.wait("going")
    word = pair.listener.stdout.readline()
    if not word:
        raise Skip(session.finish(pair.listener).text().splitlines()[-1])
    pair.go_on()
    wait_told(pair.sender, "retry.deferred")
    pair.listener.send_signal(signal.SIGUSR1)
    listener, _ = pair.ended()
    listener.expect("engine.sleep")
    listener.expect("engine.wake")


def flooded(session):
    """Frames that leave few receives make the engine nap, so that the program can post some, but not without end."""
    if os.geteuid():
        raise Skip("raw packet queues need root")
    program = str(session.build / "tests/clients/flooded")
    listener = session.background(program, "mlx5_1", run_options=["--trace", "engine.*"], stdin=subprocess.PIPE)
    line = listener.stdout.readline()
    expect(line == "ready\n", line)
    session.run_ok(program, "mlx5_1", "6400")
    # the line on standard input comes with its end
    result = session.finish(listener)
    expect(result.status == 0 and "128\n" in result.out, result.text()[-4000:])
    told = Told(result.err)
    naps = [int(re.search(r"timer_us=(\d+)", line[5])[1]) for line in told.lines
            if line[4] == "engine.sleep" and "how=few-receives" in line[5]]
    expect(naps and naps[0] == 50, f"naps of {naps} us")
    told.expect("engine.wake", **{"from": "few-receives"})
    # A batch that leaves enough begins anew, so a nap is twice as long as the one before, or the first again.
    expect(all(nap in (50, min(2 * before, 1000)) for before, nap in zip(naps, naps[1:])), f"naps of {naps} us")
    # Nobody posts any: after sixteen naps the engine takes the frames, and drops them.
    begins = [i for i, nap in enumerate(naps) if nap == 50] + [len(naps)]
    expect(all(end - begin <= 16 for begin, end in zip(begins, begins[1:])), f"naps of {naps} us")


def broken_channel(session):
    """A receiver that finds nonsense in the channel uses it no more."""
    pair = Pair(session, "retry.*,channel.*")
    pair.leave_unanswered()
    maps = pathlib.Path(f"/proc/{pair.listener.pid}/maps").read_text()
    found = re.findall(r"^(\w+)-(\w+) rw.*softhca-channel", maps, re.MULTILINE)
    expect(found, maps)
    with open(f"/proc/{pair.listener.pid}/mem", "r+b", buffering=0) as memory:
        for first, end in found:
            memory.seek(int(first, 16))
            memory.write(b"\xff" * (int(end, 16) - int(first, 16)))
    pair.listener.send_signal(signal.SIGCONT)
    wait_told(pair.listener, "channel.broken")
    for process in (pair.sender, pair.listener):
        process.kill()
        process.communicate()


def refused_and_lost(session):
    """A daemon that has no descriptor to spare refuses the channel; then it dies."""
    with fabric(session):
        pair = Pair(session, "fabric.*,channel.refused")
        (daemon,) = session.daemons()
        before = resource.prlimit(daemon, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon, resource.RLIMIT_NOFILE, (3, before[1]))
        pair.go_on()
        wait_told(pair.sender, "channel.refused")
        resource.prlimit(daemon, resource.RLIMIT_NOFILE, before)
        pair.wait("going")
        os.kill(daemon, signal.SIGKILL)
        wait_told(pair.sender, "fabric.lost")
        pair.go_on()
        listener, _ = pair.ended()
    listener.expect("fabric.lost")
    expect("fabric.refused" in seen, "no fabric.refused")


# ---- programs of other suites ----

def told_by(session, patterns, *argv):
    """What the trace says in its file: some programs keep standard error to themselves."""
    with tempfile.NamedTemporaryFile(mode="r", errors="replace") as log:
        env = {**session.env, "SOFTHCA_LOG_FILE": log.name}
        result = session.call(session.softhca, "run", "--trace", patterns, "--", *argv, env=env)
        expect(result.status == 0, result.text()[-4000:])
        return Told(log.read())


def abuse(session):
    """Refusals of the boundary say what was refused."""
    patterns = "*.refused,uverbs.unknown"
    robust = session.build / "tests" / "robust"
    told = told_by(session, patterns, str(robust / "abuse"), "/dev/infiniband/uverbs0")
    told.expect("uverbs.refused", method="REG_MR", error="EINVAL")
    told.expect("uverbs.unknown")
    others = {line[4] for line in told.lines if not fnmatch.fnmatch(line[4], "*.refused")}
    expect(others == {"uverbs.unknown"}, f"points that no pattern matches: {others}")


def devx(session):
    """Commands are refused, and a path migrates."""
    told = told_by(session, "devx.*,prm.*,path.*", str(session.build / "tests/traffic/devx"), "-d",
                   "mlx5_0")
    told.expect("prm.refused")
    told.expect("devx.refused")
    for to, why in ("REARM", "modify"), ("ARMED", "peer-armed"), ("MIGRATED", "alternate-path"):
        told.expect("path.state", to=to, why=why)


def memory_taken_away(session):
    """Peers do not reach a file by mapping it after the program has put other memory in its place."""
    told = told_by(session, "share.*", str(session.build / "tests/memory/host"), "mlx5_0",
                   "a file's memory replaced")
    told.expect("share.refused", why='"unmapped since"')


def error_statuses(session):
    told = told_by(session, "cq.*,qp.*,recv.*,send.*,packet.*,doorbell.*",
                   str(session.build / "tests/traffic/errors"), "mlx5_0")
    told.expect("cq.overrun")
    told.expect("recv.error", syndrome="LOCAL_LENGTH")
    told.expect("recv.flush")
    told.expect("send.flush")
    told.expect("packet.dropped")
    told.expect("doorbell.noticed", how="hook", queue="SQ")


def drained(session):
    told = told_by(session, "sq.*", str(session.build / "tests/signature/conform"), "-d", "mlx5_0",
                   "flushed-by-the-error-state")
    told.expect("sq.drain")
    told.expect("sq.drained")


def lists(session):
    told = told_by(session, "access.list", str(session.build / "tests/signature/conform"), "-d",
                   "mlx5_0", "T000-list")
    told.expect("access.list", verdict="NO_KEY", depth="0")


def port_down(session):
    with fabric(session):
        pair = Pair(session, "port.*")
        set_port(session, "mlx5_0", "down")
        wait_told(pair.sender, "port.event")
        set_port(session, "mlx5_0", "up")
        pair.go_on()
        pair.wait("going")
        pair.go_on()
        listener, _ = pair.ended()
    listener.expect("port.event", event="PORT_ERR")


def event_queue(session):
    """A queue of a program's own, which the suite of device code's queues builds."""
    flexio = SOURCE / "tests/flexio"
    sys.path[:0] = [str(flexio), str(flexio / "queues")]
    import queues
    told = told_by(session, "eq.*", str(queues.PROGRAMS.host(session)), "event_queue")
    told.expect("eq.fired")


def emulated_function(session):
    """A driver of it and the device code behind it, which the suite of emulated functions builds."""
    flexio = SOURCE / "tests/flexio"
    sys.path[:0] = [str(flexio), str(flexio / "emulation")]
    import emulation
    told = told_by(session, "emulation.*", str(emulation.PROGRAMS.host(session)), "both")
    told.expect("emulation.rung", function="1", queue="0")
    told.expect("emulation.interrupt", function="1")


def controlled_flow(session):
    """A connection whose packets a handler of the DPA gives their times."""
    example = session.build / "examples/flexio/flexio-congestion"
    if not example.exists():
        raise Skip("dpacc is not built (see the configuration's message about the DPA)")
    controller = session.background(str(example), "100", "60")
    try:
        expect(controller.stdout.readline().startswith("the flows of mlx5_1"), "it does not begin")
        argv = ("ib_write_bw", "-d", "mlx5_1", "-n", "20")
        server, client = session.pair(argv, argv, run_options=("--trace", "flow.*"))
        all_ended_well({"server": server, "client": client})
    finally:
        controller.kill()
        controller.communicate()
    Told(client.err).expect("flow.begin")


def faults_on_demand(session):
    """A link loses each third packet or so of a flow of datagrams, and a request fails."""
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        expect(session.tool("fabric", "impair", "loss=30", "what=data").status == 0, "fabric impair")
        told = told_by(session, "packet.fault", str(session.build / "tests/clients/lossy"), "mlx5_0", "ud", "50")
        told.expect("packet.fault", op="SEND_ONLY_IMM", fault="loss")
        expect(session.tool("inject", "status=1", "number=3", "qp=1").status == 0, "inject")
        expect(session.tool("inject", "status=12", "number=9").status == 0, "inject")
        failed = session.run(str(session.build / "tests/clients/lossy"), "mlx5_0", "rc", "50",
                             run_options=("--trace", "send.injected"))
        expect(failed.status != 0, failed.text())
        Told(failed.err).expect("send.injected", opcode="SEND_IMM", syndrome="RETRY_EXC")
        session.tool("inject", "none")
        expect(session.tool("inject", "receive=LOC_LEN_ERR", "number=9").status == 0, "inject")
        failed = session.run(str(session.build / "tests/clients/lossy"), "mlx5_0", "rc", "50",
                             run_options=("--trace", "recv.injected"))
        Told(failed.err).expect("recv.injected", syndrome="LOCAL_LENGTH")
        program = session.background("stdbuf", "-oL", "ibv_asyncwatch", "-d", "mlx5_0", run_options=("--trace", "object.injected"))
        program.stdout.readline()
        expect(session.tool("inject", "event=GID_CHANGE").status == 0, "inject")
        program.stdout.readline()
        os.killpg(program.pid, signal.SIGTERM)
        Told(session.finish(program).err).expect("object.injected", object="port", what="GID_CHANGE")
    finally:
        session.tool("fabric", "down")


def other_rings(session):
    """UCX rings by bare stores, and takes compressed completions apart.  Threads that ring wait where processors are few."""
    few = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    told = Told(ucx.zipped(session, "rc_x", "cq.*,engine.*", "taskset", "-c", few))
    told.expect("cq.compressed")
    told.expect("engine.lingered")


def life_of_requests(session):
    """Posts by both interfaces, requests with and without a completion, receives, polls."""
    patterns = "post.*,wqe.*,cqe.*,cq.polled"
    for more in ("--use_old_post_send",), ("-l", "10", "-Q", "10"):
        argv = ("ib_send_bw", "-d", "mlx5_0", "-n", "20", *more)
        server, client = session.pair(argv, argv, run_options=("--trace", patterns))
        all_ended_well({"server": server, "client": client})
        told = Told(client.err)
        told.expect("wqe.taken", opcode="SEND", wqe="0")
        told.expect("cqe.written", queue="SQ", opcode="SEND", status="SUCCESS")
        told.expect("cq.polled", queue="SQ", status="0")
        if "-l" in more:
            told.expect("wqe.done", status="SUCCESS")
        told = Told(server.err)
        told.expect("post.recv")
        told.expect("cqe.written", queue="RQ", opcode="RECV", status="SUCCESS")
        told.expect("cq.polled", queue="RQ", status="0")
    argv = ("ibv_srq_pingpong", "-g", "0", "-n", "10", "-q", "2")
    server, client = session.pair(argv, argv, run_options=("--trace", "srq.*"))
    all_ended_well({"server": server, "client": client})
    told = Told(client.err)
    told.expect("srq.posted", count="0")
    told.expect("srq.taken", count="0")
    argv = ("ibv_rc_pingpong", "-g", "0", "-n", "10", "-N")
    server, client = session.pair(argv, argv, run_options=("--trace", patterns))
    all_ended_well({"server": server, "client": client})
    Told(client.err).expect("post.built")
    # By ibv_start_poll and ibv_next_poll; pingpong asks for no numbers of queue pairs, so there is nothing to tell.
    verify = str(session.build / "tests/traffic/verify")
    result = session.run(verify, "--device", "mlx5_0", "--extended-cq", "--ops", "100", run_options=("--trace", "cq.polled"))
    expect(result.status == 0, result.text())
    told = Told(result.err)
    for queue in "SQ", "RQ":
        told.expect("cq.polled", queue=queue, status="0")
    argv = ("ibv_rc_pingpong", "-g", "0", "-n", "10", "-t")
    server, client = session.pair(argv, argv, run_options=("--trace", "cq.polled"))
    all_ended_well({"server": server, "client": client})
    expect("cq.polled" not in client.err, client.err)
    mistake = str(session.build / "tests/tools/mistakes")
    Told(session.run(mistake, "send_queue_full", run_options=("--trace", patterns)).err).expect(
        "post.refused", queue="SQ", requests="1")


def device_code(session):
    """A call of the host runs on a thread of the DPA."""
    example = session.build / "examples/flexio/flexio-rpc"
    if not example.exists():
        raise Skip("dpacc is not built (see the configuration's message about the DPA)")
    told = told_by(session, "dpa.*", str(example))
    told.expect("dpa.enter", thread="0")
    told.expect("dpa.leave", thread="0", outcome="returned")


def table_points():
    table = (SOURCE / "src/base/trace_points.h").read_text()
    points = {f"{group}.{name}" for group, name in
              re.findall(r"^TRACE_POINT\((\w+), (\w+),", table, re.MULTILINE)}
    expect(len(points) > 40, f"{len(points)} points in the table")
    return points


def usdt_probes(session):
    """Each point is a probe that tracers find, with a word to switch it on."""
    if "-DHAVE_SDT" not in (session.build / "compile_commands.json").read_text():
        raise Skip("<sys/sdt.h> (systemtap-sdt-dev) was not there when the build was set up")
    notes = session.call("readelf", "-n", str(session.build / "libsofthca-preload.so"))
    expect(notes.status == 0, notes.text())
    probes = re.findall(r"Provider: softhca\n\s+Name: (\w+)\n.*Semaphore: 0x0*([0-9a-f]*)\n",
                        notes.out)
    expect(all(word for _, word in probes), f"a probe without a word: {probes}")
    names = [name.replace("__", ".") for name, _ in probes]
    expect(sorted(names) == sorted(table_points()), f"probes {names}")


def each_point(session):
    """Every row of the table is told of by one of these tests; those that have not run, run now."""
    points = table_points()
    for test in SCENARIOS:
        if test.__name__ not in done:
            noted(test)(session)
    never = points - seen.keys()
    expect(not never, f"never told of: {', '.join(sorted(never))}")
    unknown = seen.keys() - points
    expect(not unknown, f"not in the table: {', '.join(sorted(unknown))}")


def help_and_unknown(session):
    """Both are said once, and the program goes on."""
    told = session.tool("run", "--trace", "help", "--", "ibv_devinfo")
    expect(told.status == 0 and "mlx5_1" in told.out, told.text())
    for point in ("qp.state qpn from to why: ", "rnr.sent ", "share.refused addr bytes why: "):
        expect(told.err.count(f"softhca: trace point {point}") == 1, told.text())
    told = session.tool("run", "--trace", "qp.sate,qp.*", "--", "ibv_devinfo")
    expect(told.status == 0 and "mlx5_1" in told.out, told.text())
    expect(told.err.count("no trace point matches 'qp.sate'") == 1, told.text())
    expect("'qp.*'" not in told.err, told.text())


def env_has_it(session):
    told = session.tool("env", "--trace", "qp.*")
    expect(told.status == 0 and "export SOFTHCA_TRACE='qp.*'" in told.out, told.text())


SCENARIOS = [
    wrong_key, wrong_local_key, no_receive, killed_peer,
    bypass_by_way("private memory", "kernel"),
    bypass_by_way("shared memory", "mapped", TEST_MEMORY="shared"),
    bypass_by_way("shared memory, kernel", "kernel", TEST_MEMORY="shared", SOFTHCA_MEMORY="kernel"),
    bypass_by_way("private memory, packets", "packets", SOFTHCA_MEMORY="packets"),
    duplicates, deferred, flooded, broken_channel, refused_and_lost, abuse, devx,
    memory_taken_away, error_statuses, drained, lists, port_down, event_queue, emulated_function, controlled_flow, faults_on_demand, other_rings,
    life_of_requests, device_code]


def noted(test):
    def run(session):
        global current
        current = test.__name__
        test(session)
        done.add(current)
    run.__name__ = test.__name__
    return run


def cases():
    return [(f"trace: {test.__name__.replace('_', ' ')}", noted(test))
            for test in (*SCENARIOS, each_point, usdt_probes, help_and_unknown, env_has_it)]
