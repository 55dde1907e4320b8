# SPDX-License-Identifier: BSD-2-Clause
"""Sniffers (IBV_FLOW_ATTR_SNIFFER): what passes an Ethernet port, also between other processes."""
import collections
import contextlib
import os
import signal

import roce_frames
import ties
from harness import TIME_LIMIT, Failure, Skip, expect, within
from pairs import ROCE, both_ended_well


def needs_raw(session):
    probe = session.run(str(session.build / "tests/clients/sniff"), ROCE, "/nonexistent/file")
    if "Operation not permitted" in probe.text():
        raise Skip("no CAP_NET_RAW")


@contextlib.contextmanager
def sniffer(session, host, name):
    """Yields a list, which has the frames at the end."""
    path, frames = session.runtime / name, []
    process = session.background(str(session.build / "tests/clients/sniff"), ROCE, str(path),
                                 run_options=("--host", host))
    try:
        expect(process.stdout.readline() == "sniffs\n", "the sniffer does not begin")
        yield frames
        process.send_signal(signal.SIGTERM)
        result = session.finish(process)
        expect(result.status == 0, result.text())
        frames += ties.frames_of(path)
        expect(f"{len(frames)} frames\n" in result.out, result.text())
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        path.unlink(missing_ok=True)


def packets_of(frames):
    """Each is as the specification has it."""
    packets = []
    for data in frames:
        expect(roce_frames.is_roce(data), f"no RoCE: {data.hex()}")
        f = roce_frames.take(data)
        expect(roce_frames.make(f) == data, f"made anew it differs: {data.hex()}")
        packets.append(f)
    return packets


def between_hosts(session, *argv):
    argv = (*argv, "-d", ROCE)
    both_ended_well(session.pair(argv, argv, run_options=("--host", "host1"), client_options=("--host", "host2")))


def expect_once(packets):
    """No packet of a connection comes twice, and none of those between the first and the last is missing."""
    numbers = collections.defaultdict(list)
    for f in packets:
        if f.transport in ("rc", "uc") and roce_frames.NUMBERS[f.operation] not in roce_frames.ANSWERS \
                and f.operation != "READ_REQUEST":
            numbers[f.smac, f.qpn].append(f.psn)
    for (_, qpn), psns in numbers.items():
        first = psns[0]
        expect([(psn - first) % (1 << 24) for psn in psns] == list(range(len(psns))), f"to {qpn}: {psns}")


def connected(session):
    """Both ports see the same, whole messages in order, and the answers."""
    needs_raw(session)
    with sniffer(session, "host1", "one") as one, sniffer(session, "host2", "two") as two:
        between_hosts(session, "ibv_rc_pingpong", "-g", "3", "-c", "-n", "20", "-s", "3000", "-m", "1024")
    only = collections.Counter(one) - collections.Counter(two), collections.Counter(two) - collections.Counter(one)
    expect(not any(only), f"{len(one)} frames here and {len(two)} there; only at one of them: "
           f"{[[(f.operation, f.psn) for f in packets_of(side.elements())] for side in only]}")
    packets = packets_of(one)
    expect_once(packets)
    sides = {f.smac for f in packets}
    expect(len(sides) == 2 and sides == {f.dmac for f in packets}, f"stations {sides}")
    for side in sides:
        sent = [f for f in packets if f.smac == side]
        data = [f for f in sent if f.operation.startswith("SEND")]
        expect(len(data) == 60 and sum(len(f.payload) for f in data) == 60000, f"{len(data)} of 60 data packets")
        expect(any(f.operation == "ACK" for f in sent), "no acknowledgement")


KINDS = (
    (("ibv_uc_pingpong", "-g", "3", "-n", "5", "-s", "9000", "-m", "4096"), ("uc", "SEND_MIDDLE")),
    (("ibv_ud_pingpong", "-g", "3", "-n", "5", "-s", "1000"), ("ud", "SEND_ONLY")),
    (("ib_write_bw", "-x", "3", "-n", "5", "-s", "3001", "--mtu", "1024"), ("rc", "WRITE_LAST")),
    (("ib_read_bw", "-x", "1", "-n", "5", "-s", "5001", "--mtu", "1024"), ("rc", "READ_MIDDLE")),
    (("ib_atomic_lat", "-x", "3", "-n", "5", "-A", "CMP_AND_SWAP"), ("rc", "SWAP")),
    (("ibv_xsrq_pingpong", "-g", "3", "-n", "5"), ("xrc", "SEND_LAST")),
)


def all_kinds(session):
    needs_raw(session)
    for argv, wanted in KINDS:
        with sniffer(session, "host2", "frames") as frames:
            between_hosts(session, *argv)
        packets = packets_of(frames)
        expect(wanted in {(f.transport, f.operation) for f in packets}, f"{argv}: no {wanted} in {len(packets)} packets")
        expect_once(packets)


def not_elsewhere(session):
    """What two programs of one port send each other does not pass another port; at that port it comes once."""
    needs_raw(session)
    argv = ("ib_write_bw", "-x", "3", "-n", "5", "-s", "3000", "--mtu", "1024", "-d", ROCE)
    with sniffer(session, "host1", "one") as one, sniffer(session, "host2", "two") as two:
        both_ended_well(session.pair(argv, argv))
    expect(not two, f"{len(two)} frames at another port")
    expect_once(packets_of(one))


def killed(session):
    """Programs go on when a sniffer is killed."""
    needs_raw(session)
    with contextlib.suppress(Failure), sniffer(session, "host1", "frames"):
        session.kill_strays()
    between_hosts(session, "ibv_rc_pingpong", "-g", "3", "-c", "-n", "20", "-s", "3000", "-m", "1024")


def perftest_sniffs(session):
    """raw_ethernet_bw has the option.  Its client does not wait for its server, so it is started until that has enough."""
    needs_raw(session)
    common = ("raw_ethernet_bw", "-d", ROCE, "-n", "100", "-s", "200", "-B", "02:00:00:00:00:01", "-E",
              "02:00:00:00:00:02")
    server = session.background(*common, "--server", "--sniffer", run_options=("--host", "host1"))

    def client():
        result = session.tool("run", "--host", "host2", "--", *common, "--client")
        expect(result.status == 0, result.text())
        return server.poll() is not None

    try:
        expect(within(TIME_LIMIT, client), "the server gets nothing")
        result = session.finish(server)
        expect(result.status == 0, result.text())
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.communicate()


def cases():
    yield "sniffer: packets of a connection", connected
    yield "sniffer: all kinds of packets", all_kinds
    yield "sniffer: what does not pass the port", not_elsewhere
    yield "sniffer: killed", killed
    yield "sniffer: raw_ethernet_bw", perftest_sniffs
