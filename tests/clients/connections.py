# SPDX-License-Identifier: BSD-2-Clause
"""Programs that connect by rdma_cm: librdmacm's own, perftest, qperf, libfabric; between two hosts."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from harness import Failure, Skip, expect, story_of, within

SERVER = {"ib": "198.18.0.1", "roce": "198.18.0.2"}  # ports of host1
MOMENT = 1.0  # for what does not say when it is ready
LISTEN_LIMIT = 30
LOSS = 5  # in a hundred


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not there")


def loopback_form(address):
    """TCP connects to this form of an address, too."""
    return address.replace("198.", "127.", 1)


def machine_address():
    """An address of this machine's own interfaces, which means the program's own host."""
    words = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    if not words:
        raise Skip("the machine has no address")
    return words[0]


def listens(session, server):
    """Waits until a program listens by rdma_cm."""
    def found():
        status = session.tool("status", "--json")
        programs = json.loads(status.out)["programs"] if status.status == 0 else ()
        return any(c["state"] == "LISTEN" for p in programs if p["pid"] == server.pid for c in p["connections"])

    expect(within(LISTEN_LIMIT, lambda: server.poll() is not None or found()), f"{server.args} does not listen")


def a_moment(_server):
    """For what nothing shows to be ready; the client asks again if it comes too early."""
    time.sleep(MOMENT)


def end(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def is_good(result, good=(0,)):
    """rping's thread may ask for the next event of a channel that its main thread has just destroyed, and ends the program
    with 255 then, which has done all it should."""
    return result.status in good or (result.status == 255 and "rdma_get_cm_event: Bad file descriptor" in result.text())


def pair(session, server, client, limit=60, good=(0,), server_ends=True, ready=None):
    """A server on host1 and a client on host2; the client's result.  A server that does not end by itself is ended.
    ready: waits for the server, which is given to it; else until it listens by rdma_cm."""
    needs(server[0], client[0])
    first = session.background(*server)
    try:
        if ready:
            ready(first)
        else:
            listens(session, first)
        if first.poll() is not None:
            raise Failure(f"{server[0]} has ended: {session.finish(first).text()}")
        second = session.background(*client, run_options=("--host", "host2"))
        if server_ends:
            results = session.finish_all({"server": first, "client": second}, limit, good)
            expect(all(is_good(r, good) for r in results.values()), story_of(results))
            return results["client"]
        result = session.finish(second, limit)
        expect(is_good(result, good), f"status {result.status}\n{result.text()}")
        return result
    finally:
        end(first)


def rping(address, *options):
    def test(session):
        where = address() if callable(address) else address
        result = pair(session, ("rping", "-s", "-C", "20", "-v", "-a", where, *options),
                      ("rping", "-c", "-C", "20", "-v", "-a", where, *options))
        expect("rdma-ping-19: " in result.out, result.text())
    return test


def rping_any(session):
    """A listener at any address takes what comes to any port of its host."""
    for address in (*SERVER.values(), "127.18.0.2"):
        pair(session, ("rping", "-s", "-C", "5"), ("rping", "-c", "-C", "5", "-a", address))


def rping_here(session):
    """Both programs on one host: loopback, as users type it."""
    first = session.background("rping", "-s", "-C", "5", "-a", "127.0.0.1")
    try:
        listens(session, first)
        result = session.run("rping", "-c", "-C", "5", "-v", "-a", "127.0.0.1")
        expect(is_good(result) and "rdma-ping-4: " in result.out, result.text())
        expect(is_good(session.finish(first)), "the server")
    finally:
        end(first)


def rdmacm(name, server, client, said="", server_ends=True):
    """One of librdmacm's programs, over both links."""
    def test(session):
        for link, address in SERVER.items():
            result = pair(session, server, tuple(w.replace("ADDRESS", address) for w in client),
                          server_ends=server_ends)
            expect(said in result.text(), f"{name} {link}: {result.text()}")
    return test


def perftest(link, program, *options):
    def test(session):
        address = loopback_form(SERVER[link])
        result = pair(session, (program, "-R", "-F", *options), (program, "-R", "-F", *options, address))
        expect(re.search(r"^ *\d+ +\d+ +[\d.]+ ", result.out, re.M), result.text())
    return test


def qperf(session):
    result = pair(session, ("qperf",), ("qperf", "-cm1", "-t", "1", "127.18.0.2", "rc_bw", "rc_lat", "ud_bw"),
                  server_ends=False, ready=a_moment)
    expect(result.out.count("bw  =") == 3 and "latency" in result.out, result.text())


def fi_pingpong(link, provider, kind, *options):
    def test(session):
        address = loopback_form(SERVER[link])
        argv = ("fi_pingpong", "-p", provider, "-e", kind, "-I", "20", "-c", *options)
        # The server leaves as soon as it has the last message, often before the client has looked for its completion.
        result = pair(session, argv, (*argv, address), ready=a_moment)
        expect(re.search(r"^64k +20 +=20 ", result.out, re.M), result.text())
    return test


def fio(verb, depth):
    """fio's engine rdma.  Its server gives 0 as the number of RNR retries, so each of the 256 sends needs a receive that
    waits: on a busy machine the server may post no further one in time."""
    def test(session):
        argv = ("fio", "--thread", "--name=job", "--ioengine=rdma", "--port=7480", "--bs=64k", "--size=16m")
        result = pair(session, (*argv, "--rw=read", "--iodepth=256"),
                      (*argv, "--rw=write", f"--iodepth={depth}", f"--verb={verb}", "--hostname=198.18.0.2"))
        expect("err= 0" in result.out and "issued rwts: total=0,256,0,0 short=0,0,0,0" in result.out, result.text())
    return test


def nobody(session):
    """What is not there is said, and soon."""
    for address, said, limit in (("198.18.0.2", "REJECTED, error 8", 5), ("198.18.77.1", "ADDR_ERROR, error -110", 10)):
        begin = time.monotonic()
        result = session.run("rping", "-c", "-a", address)
        expect(result.status != 0 and said in result.text(), f"{address}: {result.text()}")
        expect(time.monotonic() - begin < limit, f"{address}: after {time.monotonic() - begin:.1f} s")


def reject(session):
    """rdma_client's peer is gone before it answers: the id of the listener goes with it."""
    server = session.background("rping", "-s", "-P", "-a", "198.18.0.2")
    try:
        listens(session, server)
        client = session.background("rping", "-c", "-v", "-a", "198.18.0.2", run_options=("--host", "host2"))
        expect(within(20, lambda: "rdma-ping-3" in client.stdout.readline()), "no ping")
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()
        # It goes on pinging, and hears of the disconnection first.
        out, err = client.communicate(timeout=30)
        expect("DISCONNECT" in out + err or client.returncode, out[-500:] + err)
    except subprocess.TimeoutExpired:
        raise Failure("the client does not hear of its peer's death")
    finally:
        end(server)
        end(client)


def stopped(session):
    """A listener that is stopped keeps its own clients waiting, and nobody else's."""
    server = session.background("rping", "-s", "-C", "5", "-a", SERVER["roce"])
    client = None
    try:
        listens(session, server)
        os.kill(server.pid, signal.SIGSTOP)
        client = session.background("rping", "-c", "-C", "5", "-a", SERVER["roce"], run_options=("--host", "host2"))
        for link in SERVER:
            pair(session, ("rping", "-s", "-p", "7175", "-C", "5", "-a", SERVER[link]),
                 ("rping", "-c", "-p", "7175", "-C", "5", "-a", SERVER[link]))
        expect(client.poll() is None, "the client has not waited")
        os.kill(server.pid, signal.SIGCONT)
        results = session.finish_all({"server": server, "client": client})
        expect(all(is_good(r) for r in results.values()), story_of(results))
    finally:
        for one in (server, client):
            if one:
                end(one)


def many(session):
    """500 connections, one after the other by commands, all at once by the wire.  Later versions of cmtime keep in step by a
    TCP connection to the same address."""
    result = pair(session, ("cmtime", "-c", "500"), ("cmtime", "-s", "127.18.0.2", "-c", "500"), server_ends=False)
    expect("connect" in result.out and "destroy" in result.out, result.text())


def lossy(session):
    """Messages that are lost on the links are sent again."""
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        expect(session.tool("fabric", "impair", f"loss={LOSS}", "what=mads").status == 0, "fabric impair")
        for _ in range(3):
            pair(session, ("rping", "-s", "-C", "5", "-a", "198.18.0.1"),
                 ("rping", "-c", "-C", "5", "-a", "198.18.0.1"), limit=120)
    finally:
        session.tool("fabric", "down")


def calls(session):
    """Sizes and errors of bare calls, as the kernel's."""
    for address in SERVER.values():
        session.run_ok(str(session.build / "tests/clients/ucma"), address)


def tshark(session):
    """Wireshark's dissector reads the messages of many connections, lost ones among them."""
    if not shutil.which("tshark"):
        raise Skip("tshark is not there")
    with tempfile.TemporaryDirectory() as place:
        result = session.call(str(session.build / "tests/clients/cm_messages"), f"{place}/cm.pcap")
        expect(result.status == 0, result.text())

        def fields(shown, *names):
            result = session.call("tshark", "-r", f"{place}/cm.pcap", "-Y", shown, "-T", "fields",
                                  *(word for name in names for word in ("-e", f"infiniband.{name}")))
            expect(result.status == 0, result.text())
            return result.out.splitlines()
        expect(not fields("_ws.malformed", "lrh"), "malformed messages")
        requests = fields("infiniband.cm.req", "cm.req.serviceid.dport", "cm.req.ip_cm.sip4", "cm.req.ip_cm.dip4",
                          "cm.req.localqpn", "cm.req.responderres", "cm.req.initdepth")
        expect(len(requests) > 20 and set(requests) == {"0x1c06\t198.18.0.1\t198.18.1.1\t0x000111\t0x03\t0x05"}, requests[:3])
        kinds = set(fields("infiniband.lrh", "mad.attributeid"))
        expect({f"0x{n:04x}" for n in range(0x10, 0x19)} <= kinds, kinds)


def opensm(session):
    """Paths and groups are those of whoever manages the subnet, here OpenSM."""
    expect(session.tool("fabric", "up", "--sm", "external").status == 0, "no fabric")
    place = tempfile.mkdtemp(prefix="opensm-")
    manager = None
    try:
        # Its ports are down, so there is no path yet, and nobody to ask for one.
        result = session.run("rping", "-c", "-a", "198.18.1.1")
        expect(result.status != 0, result.text())
        manager = session.background("opensm", "-d", "2", "-f", f"{place}/log", env={
            **session.env, "OSM_TMP_DIR": place, "OSM_CACHE_DIR": place})
        log = pathlib.Path(place, "log")
        expect(within(30, lambda: log.exists() and "SUBNET UP" in log.read_text(errors="replace")), "no SUBNET UP")
        session.run_ok(str(session.build / "tests/clients/ucma"), "198.18.0.1")
        pair(session, ("rping", "-s", "-C", "5", "-a", "198.18.0.1"), ("rping", "-c", "-C", "5", "-a", "198.18.0.1"))
    finally:
        if manager and manager.poll() is None:
            os.killpg(manager.pid, signal.SIGKILL)
            manager.communicate()
        session.tool("fabric", "down")
        shutil.rmtree(place, ignore_errors=True)


def lost(session):
    """Who has joined a group hears that its membership is worth nothing since the port's link was down."""
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    member = session.background(str(session.build / "tests/clients/ucma"), "198.18.0.1", "member")
    try:
        expect(member.stdout.readline() == "joined\n", "not joined")
        expect(session.tool("fabric", "port", "host1/mlx5_0", "down").status == 0, "fabric port")
        result = session.finish(member)
        expect(result.status == 0, result.text())
    finally:
        if member.poll() is None:
            os.killpg(member.pid, signal.SIGKILL)
            member.communicate()
        session.tool("fabric", "down")


def explained(session):
    """softhca devices shows the addresses, and --explain says what one was taken for."""
    shown = json.loads(session.tool("devices", "--json").out)
    expect([d["addresses"] for d in shown] == [[f"{first}.18.{host}.{port}" for first in (198, 127)]
                                               for host in (0, 1) for port in (1, 2)], shown)
    text = session.tool("devices").out
    expect(all(address in text for d in shown for address in d["addresses"]), text)
    for address, said in ((machine_address(), r"is port 198\.18\.0\.2 \(mlx5_1\): an address of the machine"),
                          ("127.18.1.1", r"is port 198\.18\.1\.1 \(mlx5_0\): .* from 198\.18\.0\.1 \(mlx5_0\)"),
                          ("198.18.77.1", "is no port's address")):
        result = session.call(session.softhca, "run", "--explain", "--", "rping", "-c", "-a", address)
        expect(result.status != 0 and re.search(f"rdma_cm: {address} {said}", result.err), result.text())


def listed(session):
    """The tool and rdma list the ids of both programs; none is left when they have ended."""
    server = session.background("rping", "-s", "-P", "-a", "198.18.0.2")
    client = None
    try:
        listens(session, server)
        client = session.background("rping", "-c", "-v", "-a", "198.18.0.2", run_options=("--host", "host2"))
        expect(within(20, lambda: "rdma-ping-3" in client.stdout.readline()), "no ping")
        shown = {p["pid"]: p["connections"] for p in json.loads(session.tool("status", "--json").out)["programs"]}
        states = sorted((c["state"], c["source"].split(":")[0]) for c in shown[server.pid])
        expect(states == [("CONNECT", "198.18.0.2"), ("LISTEN", "198.18.0.2")], shown)
        (one,) = shown[client.pid]
        expect(one["state"] == "CONNECT" and one["destination"] == "198.18.0.2:7174" and one["qpn"], shown)
        text = session.run_ok("rdma", "res", "show", "cm_id").out
        expect(f"pid {server.pid}" in text and "state LISTEN ps TCP" in text and "src-addr 198.18.0.2:7174" in text, text)
    finally:
        for program in (server, client):
            if program and program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
                program.communicate()


def listed_without_device(session):
    """A program that listens at any address is listed before it opens a device."""
    server = session.background("rcopy")
    try:
        listens(session, server)
        shown = session.tool("status", str(server.pid))
        expect(shown.status == 0 and re.search(r"LISTEN +- +0\.0\.0\.0:\d+", shown.out), shown.text())
        expect(f"pid {server.pid} rcopy, host1, running" in shown.out, shown.text())
    finally:
        end(server)


def cases():
    yield from ((f"rdma_cm: {name}", test) for name, test in (
        ("rping ib", rping(SERVER["ib"])), ("rping roce", rping(SERVER["roce"])),
        ("rping by the loopback form", rping("127.18.0.2")), ("rping by an address of the machine", rping(machine_address)),
        ("rping, any address", rping_any), ("rping on one host", rping_here),
        ("rping IPv6", rping("::ffff:198.18.0.2")),
        ("ucmatose", rdmacm("ucmatose", ("ucmatose", "-c", "20"),
                            ("ucmatose", "-s", "ADDRESS", "-c", "20", "-C", "10", "-S", "65536"), "return status 0")),
        ("udaddy", rdmacm("udaddy", ("udaddy", "-c", "20"), ("udaddy", "-s", "ADDRESS", "-c", "20"), "return status 0")),
        *((f"rdma_xclient {kind}", rdmacm("rdma_xclient", ("rdma_xserver", "-c", kind),
                                          ("rdma_xclient", "-c", kind, "-s", "ADDRESS"), "rdma_xclient: end 0")) for kind in "rx"),
        ("rdma_client", rdmacm("rdma_client", ("rdma_server",), ("rdma_client", "-s", "ADDRESS"), "rdma_client: end 0")),
        ("rstream", rdmacm("rstream", ("rstream", "-S", "4096"), ("rstream", "-s", "ADDRESS", "-S", "4096"), "custom")),
        ("riostream", rdmacm("riostream", ("riostream", "-S", "4096"), ("riostream", "-s", "ADDRESS", "-S", "4096"), "custom")),
        *((f"mckey {link}", lambda session, port=port: pair(session, ("mckey", "-m", "239.1.2.3", "-b", f"198.18.0.{port}"),
                                                            ("mckey", "-m", "239.1.2.3", "-s", "-b", f"198.18.1.{port}"),
                                                            ready=a_moment))
          for link, port in (("ib", 1), ("roce", 2))),
        ("ib_write_bw ib", perftest("ib", "ib_write_bw", "-n", "200")),
        ("ib_send_lat roce", perftest("roce", "ib_send_lat", "-n", "200")),
        ("ib_read_bw roce, 16 queue pairs", perftest("roce", "ib_read_bw", "-n", "100", "-q", "16")),
        ("ib_send_bw roce UD", perftest("roce", "ib_send_bw", "-n", "200", "-c", "UD")),
        ("qperf", qperf), ("fi_pingpong ib msg", fi_pingpong("ib", "verbs", "msg")),
        ("fi_pingpong roce rxm", fi_pingpong("roce", "verbs;ofi_rxm", "rdm", "-d", "mlx5_1")),
        *((f"fio {verb}", fio(verb, depth)) for verb, depth in (("write", 16), ("read", 16), ("send", 1))),
        ("nobody listens", nobody), ("the peer is killed", reject), ("a listener that is stopped", stopped), ("500 connections", many),
        ("lost messages", lossy), ("subnet of OpenSM", opensm), ("messages in tshark", tshark), ("explained addresses", explained), ("a group whose link is lost", lost), ("bare calls", calls), ("ids of programs", listed),
        ("ids without a device", listed_without_device)))
