# SPDX-License-Identifier: BSD-2-Clause
"""What SOFTHCA_TRACE tells of two processes of which one's request fails."""
import re

from harness import expect, free_port, wait_listening

LINE = re.compile(r"softhca\[(\d+)/(\d+)\]: (\d+\.\d{9}) ([a-z]+\.[a-z]+)((?: [a-z_]+=(?:\"[^\"]*\"|\S+))+)$")


class Told:
    """The trace lines of one process."""

    def __init__(self, result):
        self.text = result.text()
        self.lines = [m for m in map(LINE.match, result.err.splitlines()) if m]

    def expect(self, point, **values):
        """A line of this point has these values; says which if not."""
        for line in self.lines:
            told = dict(re.findall(r'([a-z_]+)=("[^"]*"|\S+)', line[5]))
            if line[4] == point and all(told.get(k) == v for k, v in values.items()):
                return told
        expect(False, f"no {point} with {values} in\n{self.text}")


def failing_pair(session, case, patterns, kill=False):
    """What both processes of tests/robust/failing.c tell: the listener, the one that fails."""
    program = str(session.build / "tests" / "robust" / "failing")
    port = str(free_port())
    options = ["--trace", patterns]
    listener = session.background(program, "mlx5_0", "listen", port, case, run_options=options)
    wait_listening(int(port), listener)
    sender = session.background(program, "mlx5_0", "connect", port, case, run_options=options)
    if kill:
        expect(sender.stdout.readline() == "going\n", "the pair does not begin")
        listener.kill()
    results = [session.finish(process) for process in (sender, listener)]
    expect(results[0].status == 0, results[0].text())
    return Told(results[1]), Told(results[0])


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
    listener, sender = failing_pair(session, "receive", "rnr.*,retry.*,send.error")
    listener.expect("rnr.sent", delay_us="10")
    sender.expect("rnr.received", delay_us="10", left="1")
    sender.expect("rnr.received", left="0")
    sender.expect("retry.begin", why="rnr-timer")
    sender.expect("retry.exhausted", why="receiver-not-ready")
    sender.expect("send.error", opcode="SEND", syndrome="RNR_RETRY_EXC")
    others = {line[4] for line in sender.lines} - {"rnr.received", "retry.begin", "retry.exhausted",
                                                   "send.error"}
    expect(not others, f"points that no pattern matches: {others}")


def killed_peer(session):
    _, sender = failing_pair(session, "killed", "channel.*,packet.*,retry.*,send.*,qp.*",
                             kill=True)
    sender.expect("channel.gone")
    sender.expect("packet.lost")
    sender.expect("retry.begin", why="timeout")
    sender.expect("retry.exhausted", why="timeout")
    sender.expect("send.error", opcode="RDMA_WRITE", syndrome="RETRY_EXC")
    sender.expect("qp.state", to="ERR", why="RETRY_EXC")


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


def cases():
    return [(f"trace: {test.__name__.replace('_', ' ')}", test) for test in (
        wrong_key, wrong_local_key, no_receive, killed_peer, help_and_unknown, env_has_it)]
