# SPDX-License-Identifier: BSD-2-Clause
"""Faults of links on demand (softhca fabric impair), under programs that know nothing of them."""
import json
import os
import re
import signal
import subprocess

from harness import expect
from pairs import both_ended_well

DEVICES = {"ib": "mlx5_0", "roce": "mlx5_1"}
MESSAGES = 1000
CAME = re.compile(r"(\d+) came, (\d+) missing, (\d+) again\n$")


def impair(session, *words, status=0):
    result = session.tool("fabric", "impair", *words)
    expect(result.status == status, result.text())
    return result


def rules(session):
    return json.loads(impair(session, "--json").out)


class impaired:
    """A fabric that stays, with these faults for data."""

    def __init__(self, session, *words):
        self.session, self.words = session, words

    def __enter__(self):
        expect(self.session.tool("fabric", "up").status == 0, "no fabric")
        try:
            impair(self.session, *self.words, "what=data")
        except BaseException:
            self.session.tool("fabric", "down")
            raise
        return self.session

    def __exit__(self, *_):
        self.session.tool("fabric", "down")


def messages(session, device, transport, number=MESSAGES):
    """How many messages of tests/clients/lossy.c came, were missing, came twice or late."""
    result = session.run(str(session.build / "tests/clients/lossy"), DEVICES[device], transport, str(number))
    match = CAME.search(result.out)
    expect(result.status == 0 and match, result.text())
    return tuple(map(int, match.groups()))


def reliable(device, *words):
    """Whatever is lost, doubled or late on the way: each message comes, once and in order."""
    def case(session):
        with impaired(session, *words, "seed=3"):
            number = 200 if "loss=20" in words else MESSAGES
            expect(messages(session, device, "rc", number) == (number, 0, 0), "messages")
            rule = rules(session)[0]
            expect(rule["impaired"] > 0, rule)
    return case


def datagrams(device):
    """Each packet that is lost is a datagram that is missing, and no other one is."""
    def case(session):
        with impaired(session, "loss=10", "seed=4"):
            came, missing, again = messages(session, device, "ud")
            rule = rules(session)[0]
            expect((rule["packets"], rule["impaired"], again) == (MESSAGES, missing, 0), (rule, came, missing))
            # Six standard deviations.
            expect(43 < missing < 157, missing)
            impair(session, "duplicate=10", "seed=4", "what=data")
            came, missing, again = messages(session, device, "ud")
            expect(not missing and again == rules(session)[0]["impaired"] > 0, (came, missing, again))
            impair(session, "reorder=10", "seed=4", "what=data")
            came, missing, again = messages(session, device, "ud")
            expect(not missing and again > 0, (came, missing, again))
    return case


def unreliable(device):
    """A message of UC is there with all of its packets, or not at all."""
    def case(session):
        with impaired(session, "loss=2", "seed=5"):
            came, missing, again = messages(session, device, "uc")
            rule = rules(session)[0]
            expect(0 < missing <= rule["impaired"] <= 5 * missing and not again, (rule, came, missing))
    return case


def repeated(session):
    """The same seed loses the same packets; another one others."""
    def lost(seed):
        with impaired(session, "loss=5", f"seed={seed}"):
            result = session.run(str(session.build / "tests/clients/lossy"), "mlx5_0", "ud", str(MESSAGES),
                                 run_options=("--trace", "packet.fault"))
            expect(result.status == 0, result.text())
            return [int(psn, 16) for psn in re.findall(r"packet\.fault .*psn=0x([0-9a-f]+)", result.err)]
    first = lost(11)
    expect(len(first) > 20 and lost(11) == first and lost(12) != first, first)


def counters(session):
    """A packet with a wrong checksum counts where it comes, and one that is lost is sent but not received."""
    for device, name in (("mlx5_0", "counters/port_rcv_errors"), ("mlx5_1", "hw_counters/rx_icrc_encapsulated")):
        with impaired(session, "corrupt=100", "packet=3"):
            path = f"/sys/class/infiniband/{device}/ports/1"
            expect(messages(session, "ib" if device == "mlx5_0" else "roce", "ud")[1] == 1, "one is missing")
            shown = session.run("sh", "-c", f"cat {path}/{name} {path}/counters/port_xmit_packets {path}/counters/port_rcv_packets")
            wrong, sent, received = map(int, shown.out.split())
            expect((wrong, sent, received) == (1, MESSAGES, MESSAGES - 1), shown.text())


def chosen(session):
    """One packet of one kind; the requester hears of it and sends again."""
    with impaired(session, "loss=100", "opcode=write", "packet=5"):
        session.tool("fabric", "impair", "loss=100", "opcode=atomic", "to=host1/mlx5_1", "what=data")
        argv = ("ib_write_bw", "-d", "mlx5_0", "-n", "100", "-s", "1024", "-F")
        both_ended_well(session.pair(argv, argv))
        found = rules(session)
        expect([r["impaired"] for r in found] == [1, 0] and found[0]["packets"] > 100 and not found[1]["packets"], found)
        text = impair(session).out
        expect("loss 100% opcode=write packet=5: 1 of " in text and
               "loss 100% to=host1/mlx5_1 opcode=atomic: 0 of 0 packets" in text, text)
        # With nothing to do, a rule goes; and "loss=0" alone takes all away.
        impair(session, "loss=0", "opcode=write", "packet=5")
        expect(len(rules(session)) == 1, rules(session))
        impair(session, "loss=0")
        expect(rules(session) == [], rules(session))


def silence(session):
    """Nothing comes through: the requester gives up as it does on a card, and --explain names the faults."""
    with impaired(session, "loss=100", "opcode=ack"):
        argv = ("ib_write_bw", "-d", "mlx5_0", "-n", "5", "-s", "64", "-u", "8", "-F")
        results = session.pair(argv, argv, client_options=("--explain",))
        text = results[1].text()
        expect(results[1].status and "Failed status 12" in text, text)
        expect("softhca fabric impair" in text, text)


def inject(session, *words, status=0):
    result = session.tool("inject", *words)
    expect(result.status == status, result.text())
    return result


def injected(session):
    return [rule["injected"] for rule in json.loads(inject(session, "--json").out)]


class standing:
    """A fabric that stays."""

    def __init__(self, session, *options):
        self.session, self.options = session, options

    def __enter__(self):
        expect(self.session.tool("fabric", "up", *self.options).status == 0, "no fabric")

    def __exit__(self, *_):
        self.session.tool("fabric", "down")


def status(device):
    """The seventh WRITE completes with that status and vendor_err; the others before it do not."""
    def case(session):
        with standing(session):
            inject(session, "status=IBV_WC_REM_OP_ERR", "vendor_err=0x77", "opcode=write", "number=7")
            argv = ("ib_write_bw", "-d", DEVICES[device], "-n", "20", "-t", "1", "-F")
            result = session.pair(argv, argv, client_options=("--explain", "--trace", "send.injected"))[1]
            expect("Failed status 11" in result.text() and "syndrom 0x77" in result.text() and result.status, result.text())
            expect("IBV_WC_REM_OP_ERR: softhca inject says so" in result.err and "send.injected qpn=" in result.err and
                   "NAK" not in result.err, result.text())
            expect(injected(session) == [1], inject(session).out)
            # It has happened in that process; in another one it happens anew, until it is taken away.
            inject(session, "none")
            both_ended_well(session.pair(argv, argv))
    return case


def status_of_silence(session):
    """A request that seems to have had no answer: nobody says that links lose packets, which they do not."""
    with standing(session):
        inject(session, "status=12", "opcode=write", "number=7")
        argv = ("ib_write_bw", "-d", "mlx5_0", "-n", "20", "-t", "1", "-F")
        result = session.pair(argv, argv, client_options=("--explain",))[1]
        expect("Failed status 12" in result.text() and "softhca inject says so" in result.err and
               "impair" not in result.err and "retry_cnt" not in result.err, result.text())


def status_by_destination(session):
    """Datagrams and frames fail, too; datagrams by where they go."""
    lossy = (str(session.build / "tests/clients/lossy"), "mlx5_0", "ud", "100")
    with standing(session):
        inject(session, "status=4", "number=5", "to=host2")
        expect(session.run(*lossy).status == 0 and injected(session) == [0], inject(session).out)
        inject(session, "status=4", "number=5", "to=host1/mlx5_0")
        result = session.run(*lossy)
        expect(result.status and "local protection error" in result.text(), result.text())
        inject(session, "none")
        inject(session, "status=4", "number=3")
        frames = session.run("raw_ethernet_bw", "--client", "-d", "mlx5_1", "-n", "100", "-F", "-B", "02:00:00:00:00:01",
                             "-E", "02:00:00:00:00:02", limit=60)
        expect(frames.status and "Failed status 4" in frames.text(), frames.text())


def status_of_datagrams(session):
    """What only an answer of the peer can say is not said of datagrams."""
    with standing(session):
        inject(session, "status=12", "number=1")
        expect(messages(session, "ib", "ud")[:2] == (MESSAGES, 0), "messages")
        inject(session, "status=4", "number=5")
        result = session.run(str(session.build / "tests/clients/lossy"), "mlx5_0", "ud", "100")
        expect(result.status and "local protection error" in result.text(), result.text())
        expect(injected(session) == [0, 1], inject(session).out)


def call(name, error, number, said, device="mlx5_0", transport="ud"):
    def case(session):
        with standing(session):
            inject(session, f"call={name}", f"error={error}", f"number={number}")
            result = session.run(str(session.build / "tests/clients/lossy"), device, transport, "10")
            expect(result.status and said in result.text(), result.text())
            expect(injected(session) == [1], inject(session).out)
            # A call of another device or host does not fail.
            inject(session, "none")
            inject(session, f"call={name}", f"error={error}", f"number={number}", "from=host1/" + (
                "mlx5_1" if device == "mlx5_0" else "mlx5_0"))
            expect(session.run(str(session.build / "tests/clients/lossy"), device, transport, "10").status == 0, "it fails")
            expect(injected(session) == [0], inject(session).out)
    return case


def call_of_child(session):
    """A child counts its own calls, whatever its parent has met."""
    with standing(session):
        inject(session, "call=alloc_pd", "error=ENOMEM", "number=2")
        lossy = (str(session.build / "tests/clients/lossy"), "mlx5_0", "ud", "10", "fork")
        expect(session.run(*lossy).status == 0 and injected(session) == [0], inject(session).out)
        inject(session, "none")
        inject(session, "call=create_cq", "error=ENOMEM", "number=2")
        result = session.run(*lossy)
        expect(result.status and "no device" in result.text() and injected(session) == [1], result.text())


class watched:
    """tests/clients/injected.c, which says what happens to its queues."""

    def __init__(self, session, device, *trace):
        self.session = session
        self.process = session.background(str(session.build / "tests/clients/injected"), device, stdin=subprocess.PIPE,
                                          run_options=("--explain", "--trace", "object.*,recv.injected"))

    def __enter__(self):
        numbers = re.match("qps (0x[0-9a-f]+) (0x[0-9a-f]+)\n", self.process.stdout.readline())
        expect(numbers, "it does not begin")
        self.qps = numbers.groups()
        return self

    def lines(self, *wanted):
        got = [self.process.stdout.readline().rstrip("\n") for _ in wanted]
        expect(got == list(wanted), (got, wanted))

    def message(self, *wanted):
        """What the ends of a message complete with."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.lines(*(f"{end}: {status}" for end, status in zip(("send", "receive"), wanted)))

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        self.process.stdin = None
        self.result = self.session.finish(self.process)
        expect(kind or not self.result.status, self.result.text())


FLUSHED = "Work Request Flushed Error"
RTS, ERR = 3, 6


def event(device, words, *lines, after=None, number=1):
    """The event comes, with what leads to it on a card; and nothing else does."""
    def case(session):
        with standing(session):
            with watched(session, DEVICES[device]) as program:
                inject(session, *(word.format(*program.qps) for word in words))
                program.lines(*lines)
                if after:
                    program.message(*after)
            expect(injected(session) == [number], inject(session).out)
            traced = re.findall(r"object\.injected", program.result.err)
            explained = re.findall(r"explain: .*(?:IBV_EVENT_\w+|the error state), because softhca inject says so",
                                   program.result.err)
            expect(len(traced) == len(explained) == number, program.result.err)
            # A program that comes later meets nothing.
            with watched(session, DEVICES[device]) as program:
                program.message("success", "success")
            expect(injected(session) == [number], inject(session).out)
    return case


def events_of_one_host(session):
    """Objects of another host or device are left alone, as are those that cannot have the event."""
    with standing(session):
        with watched(session, "mlx5_0") as program:
            for words in (("event=QP_FATAL", "from=host2"), ("event=QP_FATAL", "from=host1/mlx5_1"),
                          ("event=DEVICE_FATAL", "from=host1/mlx5_1"), ("event=CQ_ERR", "cq=0xfffff0"),
                          ("event=COMM_EST",), ("event=SRQ_LIMIT_REACHED", "srq=0xfffff0"), ("state=error", "qp=7")):
                inject(session, *words)
            inject(session, "event=SM_CHANGE", "from=host1/mlx5_0")
            program.lines("SM change port", f"states {RTS} {RTS}")
            program.message("success", "success")
        # The program does not have the other device open.
        expect(sum(injected(session)) == 1, inject(session).out)


def receive_status(device, name, sender, receiver):
    """A receive fails with the second message; the sender hears of it as from a card."""
    def case(session):
        with standing(session):
            inject(session, f"receive={name}", "number=2", "opcode=send")
            with watched(session, DEVICES[device]) as program:
                program.message("success", "success")
                program.message(sender, receiver)
                program.lines("last WQE reached qp 1", f"states {ERR} {ERR}")
            text = program.result.err
            expect(f"completes with IBV_WC_{name}, because softhca inject says so" in text and "too short" not in text and
                   "recv.injected qpn=" in text, text)
            expect(injected(session) == [1], inject(session).out)
            expect(f"receive completes with IBV_WC_{name} opcode=send number=2: 1 of 2 receives\n" == inject(session).out,
                   inject(session).out)
    return case


def events_of_bystanders(session):
    """A process that is stopped does not delay the others; it hears when it goes on."""
    with standing(session):
        with watched(session, "mlx5_0") as stopped, watched(session, "mlx5_0") as program:
            os.killpg(stopped.process.pid, signal.SIGSTOP)
            inject(session, "event=GID_CHANGE", "from=host1/mlx5_0")
            program.lines("GID table change port", f"states {RTS} {RTS}")
            os.killpg(stopped.process.pid, signal.SIGCONT)
            stopped.lines("GID table change port", f"states {RTS} {RTS}")


def inject_refusals(session):
    with standing(session):
        for words, said in ((("status=5",), "a card completes no send request with IBV_WC_WR_FLUSH_ERR"),
                            (("status=fine",), "'fine' is no status of a completion"),
                            (("call=reg_mr",), "go together"),
                            (("error=EIO",), "it takes one of"),
                            (("status=12", "call=reg_mr", "error=EIO"), "it takes one of"),
                            (("receive=12",), "only with IBV_WC_LOC_LEN_ERR"),
                            (("event=SQ_DRAINED",), "there are QP_FATAL, QP_REQ_ERR"),
                            (("event=LID_CHANGE", "from=host1/mlx5_1"), "an Ethernet port of a card raises no"),
                            (("event=PORT_ERR", "qp=5"), "not one of a queue pair"),
                            (("event=QP_FATAL", "cq=5"), "cq= goes with event=CQ_ERR"),
                            (("event=QP_FATAL", "to=host1"), "has no opcode or destination"),
                            (("state=ready",), "'state=ready' has no value that is allowed: error"),
                            (("event=QP_FATAL", "vendor_err=1"), "only a status= has a vendor_err"),
                            (("call=reg_mr", "error=EFUN"), "'error=EFUN' has no value"),
                            (("call=reg_mr", "error=EIO", "qp=5"), "a call has no opcode"),
                            (("status=12", "packet=3"), "nothing that can be injected"),
                            (("status=12", "percent=0"), "'percent=0' has no value")):
            result = inject(session, *words, status=2)
            expect(said in result.err and result.err.count("\n") == 1, result.text())
        inject(session, "status=12", "percent=5", "seed=3", "to=host1")
        impair(session, "loss=1", "qp=77")
        expect(inject(session).out == "request completes with IBV_WC_RETRY_EXC_ERR percent=5% seed=3 to=host1: 0 of 0 requests\n",
               inject(session).out)
        # Each command lists and ends its own.
        impair(session, "loss=0")
        expect(rules(session) == [] and injected(session) == [0], inject(session).out)
        inject(session, "none")
        expect(injected(session) == [], inject(session).out)


def refusals(session):
    """What is wrong with a word is said in one line."""
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        for words, said in ((("loss=101",), "'loss=101' has no value that is allowed"),
                            (("loss=nan",), "'loss=nan' has no value that is allowed"),
                            (("rate=x",), "'rate=x' has no value"),
                            (("lost=1",), "'lost=1' is no fault of a link"),
                            (("loss=1", "opcode=jump"), "'opcode=jump' has no value"),
                            (("loss=1", "opcode=send,"), "'opcode=send,' has no value"),
                            (("loss=1", "packet=3-2"), "'packet=3-2' has no value"),
                            (("loss=1", "qp=0x1000000"), "'qp=0x1000000' has no value"),
                            (("corrupt=1", "what=mads"), "say what=data"),
                            (("loss=1", "to=nobody"), "nobody"),
                            (("loss=1", "host1"), "a node and a port or neither")):
            result = impair(session, *words, status=2)
            expect(said in result.err and result.err.count("\n") == 1, result.text())
        result = impair(session, "loss=1", "nowhere", "1", status=125)
        expect("no node 'nowhere'" in result.err, result.text())
        for n in range(1, 33):
            impair(session, "loss=1", f"packet={n}", "what=data")
        result = impair(session, "loss=1", "packet=33", "what=data", status=125)
        expect("32 rules already" in result.err, result.text())
        impair(session, "loss=2", "packet=7", "what=data")
        expect(len(rules(session)) == 32, "rules")
        impair(session, "loss=0")
        expect(rules(session) == [], "rules after the end")
    finally:
        session.tool("fabric", "down")


def cases():
    for device in DEVICES:
        for words in (("loss=1",), ("loss=5",), ("loss=20",), ("duplicate=20",), ("reorder=20",), ("corrupt=5",),
                      ("delay=50", "jitter=300"), ("loss=2", "duplicate=5", "reorder=5", "jitter=50")):
            yield f"faults: rc {device} {' '.join(words)}", reliable(device, *words)
        yield f"faults: ud {device}", datagrams(device)
        yield f"faults: uc {device}", unreliable(device)
    yield "faults: the same seed", repeated
    yield "faults: counters", counters
    yield "faults: one packet", chosen
    yield "faults: no answer", silence
    yield "faults: refusals", refusals
    for device in DEVICES:
        yield f"inject: status {device}", status(device)
    yield "inject: status of silence", status_of_silence
    yield "inject: status of datagrams", status_of_datagrams
    yield "inject: status by destination", status_by_destination
    yield "inject: reg_mr", call("reg_mr", "ENOMEM", 1, "Cannot allocate memory")
    yield "inject: create_qp", call("create_qp", "ENOMEM", 2, "ibv_create_qp: Cannot allocate memory")
    yield "inject: create_cq", call("create_cq", "EINVAL", 2, "Invalid argument")
    yield "inject: modify_qp", call("modify_qp", "EIO", 3, "", transport="rc")
    yield "inject: create_ah", call("create_ah", "ETIMEDOUT", 1, "ibv_create_ah: ", device="mlx5_1")
    yield "inject: calls of a child", call_of_child
    for device in DEVICES:
        yield f"inject: QP fatal {device}", event(
            device, ("event=IBV_EVENT_QP_FATAL", "qp={0}"), "local work queue catastrophic error qp 0", f"states {ERR} {RTS}",
            after=(FLUSHED, "nothing"))
        yield f"inject: CQ overrun {device}", event(
            device, ("event=CQ_ERR", "number=1"), "CQ error cq 0", f"states {RTS} {RTS}", after=("nothing", "success"))
        yield f"inject: SRQ limit {device}", event(
            device, ("event=srq_limit_reached",), "SRQ limit reached srq", f"states {RTS} {RTS}", after=("success", "success"))
        yield f"inject: SRQ error {device}", event(
            device, ("event=SRQ_ERR",), "SRQ catastrophic error srq", f"states {RTS} {RTS}",
            after=("remote operation error", "nothing"))
        yield f"inject: error state {device}", event(
            device, ("state=error", "qp={1}"), "last WQE reached qp 1", f"states {RTS} {ERR}",
            after=("transport retry counter exceeded", "nothing"))
        yield f"inject: port error {device}", event(
            device, ("event=PORT_ERR", f"from=host1/{DEVICES[device]}"), "port error port", f"states {RTS} {RTS}",
            after=("success", "success"))
        for name, sender, receiver in (("LOC_LEN_ERR", "remote invalid request error", "local length error"),
                                       ("LOC_PROT_ERR", "remote operation error", "local protection error")):
            yield f"inject: receive {name} {device}", receive_status(device, name, sender, receiver)
    yield "inject: device fatal", event(
        "ib", ("event=DEVICE_FATAL", "from=host1/mlx5_0"), "last WQE reached qp 1", f"states {ERR} {ERR}",
        "local catastrophic error device", f"states {ERR} {ERR}", after=(FLUSHED, "nothing"))
    yield "inject: events of one host", events_of_one_host
    yield "inject: events of bystanders", events_of_bystanders
    yield "inject: refusals", inject_refusals
