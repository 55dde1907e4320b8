# SPDX-License-Identifier: BSD-2-Clause
"""A libpcap with the sniffer for RDMA devices (configure --enable-rdma), if the directory has one that is built
(libpcap/libpcap.so.0.8): the system's tcpdump with it."""
import contextlib
import pathlib
import signal
import tempfile
import time

import captures
import connections
from harness import Skip, expect, within

DEVICE = "mlx5_1"
WAIT = 20
FILTERED = "udp[8] == 0x11"  # acknowledgements of RC: the first octet behind the UDP header is the BTH's opcode


def place_of(directory):
    place = directory / "libpcap"
    return place if (place / "libpcap.so.0.8").exists() else None


def tcpdump(session, place, *arguments):
    """Of host2."""
    connections.needs("tcpdump")
    return session.background("env", f"LD_LIBRARY_PATH={place}", "tcpdump", *arguments, run_options=("--host", "host2"))


def lists(place):
    def test(session):
        result = session.finish(tcpdump(session, place, "-D"))
        expect(result.status == 0 and all(f".{name} (RDMA sniffer)" in result.out for name in ("mlx5_0", DEVICE)),
               result.text())
    return test


@contextlib.contextmanager
def dumping(session, place, directory, *arguments):
    """Yields what holds, at the end, how many packets tcpdump has written."""
    file = directory / "tcpdump.pcap"
    result = {"file": file}
    process = tcpdump(session, place, "-n", "-U", "-Z", "root", "-i", DEVICE, "-w", str(file), *arguments)
    try:
        expect(within(WAIT, lambda: file.exists() and file.stat().st_size), "tcpdump does not begin")
        yield result
        time.sleep(0.5)  # it reads what has come
        process.send_signal(signal.SIGINT)
        ended = session.finish(process)
        expect(ended.status == 0 and "\n0 packets dropped by kernel" in ended.text(), ended.text())
        result["packets"] = int(ended.err.split(" packets captured")[0].split()[-1])
    finally:
        connections.end(process)


def traffic(session):
    argv = ("ib_send_bw", "-d", DEVICE, "-x", "3", "-F", "-n", "50", "-s", "3000", "-m", "1024")
    results = session.pair(argv, argv, client_options=("--host", "host2"))
    expect(all(result.status == 0 for result in results), "\n".join(result.text() for result in results))


def counted(place):
    """Each packet of the port once, and tshark decodes each."""
    def test(session):
        with captures.fabric(session, "--hosts", "2"), tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            before = captures.counters(session)[f"host2/{DEVICE}"]
            with dumping(session, place, directory) as dump:
                traffic(session)
            after = captures.counters(session)[f"host2/{DEVICE}"]
            expect(dump["packets"] == sum(after) - sum(before) > 150, f"{dump['packets']} of {before} to {after}")
            text = captures.tshark(session, dump["file"])
            expect(text.count("RRoCE") == dump["packets"] and "alformed" not in text, text[-1000:])
    return test


def filtered(place):
    def test(session):
        with captures.fabric(session, "--hosts", "2"), tempfile.TemporaryDirectory() as directory:
            with dumping(session, place, pathlib.Path(directory), FILTERED) as dump:
                traffic(session)
            text = captures.tshark(session, dump["file"])
            expect(dump["packets"] and text.count("RC Acknowledge") == dump["packets"], text[-1000:])
    return test


def cases(directory):
    place = place_of(directory)
    if not place:
        def absent(_):
            raise Skip("the directory has no libpcap/libpcap.so.0.8")
        yield "libpcap: tcpdump of an RDMA device", absent
        return
    yield "libpcap: tcpdump lists the devices", lists(place)
    yield "libpcap: tcpdump counts what the port counts", counted(place)
    yield "libpcap: tcpdump with a filter", filtered(place)
