# SPDX-License-Identifier: BSD-2-Clause
"""What `softhca fabric status` says of the ways to programs' memory."""
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time

import refused
from harness import Skip, expect, free_port, wait_listening


def clients_shown(session, ready):
    """The clients of the fabric, as soon as they are as wanted."""
    end = time.monotonic() + 30
    while True:
        clients = json.loads(session.tool("fabric", "status", "--json").out).get("clients", [])
        if ready(clients):
            return clients
        expect(time.monotonic() < end, f"status shows {clients}")
        time.sleep(0.1)


FILE_BYTES = 1 << 20


@contextlib.contextmanager
def buffers(shared):
    """What says to two programs of perftest that their buffers are files of shared memory; or nothing."""
    if not shared:
        yield (), ()
        return
    with tempfile.TemporaryDirectory(prefix="softhca-test.", dir="/dev/shm") as files:
        paths = [f"{files}/{role}" for role in ("server", "client")]
        for path in paths:
            with open(path, "wb") as file:
                file.truncate(FILE_BYTES)
        yield [(f"--mmap={path}",) for path in paths]


@contextlib.contextmanager
def writing_programs(session, memory, server=None, client=None, client_by=(), shared=False):
    """Two programs that write to each other for a while; options of Popen for each of them, by which
    other program the client starts, and whether their buffers are shared memory.  The ways to their
    memory are one name, or one each."""
    memory = (memory, memory) if isinstance(memory, str) else memory
    if not shutil.which("ib_write_bw"):
        raise Skip("ib_write_bw is not there (package perftest)")
    port = free_port()
    argv = ["ib_write_bw", "-d", "mlx5_0", "-F", "-b", "-s", "4096", "-D", "50", "-p", str(port)]
    with buffers(shared) as (servers, clients):
        programs = [session.background(*argv, *servers, run_options=("--memory", memory[0]),
                                       **server or {})]
        try:
            wait_listening(port, programs[0])
            programs.append(session.background(*client_by, *argv, *clients, "127.0.0.1",
                                               run_options=("--memory", memory[1]),
                                               **client or {}))
            yield [program.pid for program in programs]
        finally:
            for program in programs:
                os.killpg(program.pid, signal.SIGKILL)
                program.communicate()


def queue_pairs_shown(session, pids, wanted):
    """The clients of the fabric, when the only queue pair of each goes the way that is wanted."""
    return clients_shown(session, lambda clients: len(clients) == len(pids) and {
        c["pid"]: [(q["way"], q["why"]) for q in c.get("queue_pairs", [])] for c in clients} ==
        {pid: [way] for pid, way in zip(pids, wanted)})


def what_forbids(session):
    """Where a process may not copy by itself, the status says so, if the keys need it."""
    own_keys = ("one-sided", "each request goes the way of its key")
    no_rseq = ("packets", "the process has no restartable sequences")
    without = {"env": dict(session.env, GLIBC_TUNABLES="glibc.pthread.rseq=0")}
    for shared in (False, True):
        with writing_programs(session, "auto", client=without, shared=shared) as pids:
            queue_pairs_shown(session, pids, [own_keys, no_rseq])
    confined = {"preexec_fn": forbid_process_vm}
    forbidden = ("packets", "the system forbids process_vm_readv and writev")
    with writing_programs(session, "auto", server=confined) as pids:
        queue_pairs_shown(session, pids, [forbidden, own_keys])
    with writing_programs(session, "auto", confined, confined, shared=True) as pids:
        # what the system forbids is found out when something is tried that needs it
        some_keys = (own_keys, ("one-sided", "mapped memory alone: the system forbids "
                                             "process_vm_readv and writev"))
        clients_shown(session, lambda clients: len(clients) == len(pids) and all(
            [(q["way"], q["why"]) in some_keys for q in c.get("queue_pairs", [])] == [True]
            for c in clients))


def forbid_process_vm():
    refused.forbid("process_vm_readv", "process_vm_writev")


def the_way(session):
    """Which way RDMA of two programs goes, and why."""
    for memory, shared, way, why in (("auto", False, "kernel", "private memory"),
                                     ("auto", True, "mapped", "memory that is shared already"),
                                     ("packets", False, None, None)):
        with writing_programs(session, memory, shared=shared):
            if not way:
                clients_shown(session, lambda clients: len(clients) == 2 and
                              not any(c.get("exposes", True) for c in clients))
                text = session.tool("fabric", "status").out
                expect("all data goes by packets" in text, text)
                continue
            clients = clients_shown(session, lambda clients: len(clients) == 2 and all(
                [q["way"] for q in c.get("queue_pairs", [])] == ["one-sided"] and c["keys"]
                for c in clients))
            found = {(k["way"], k["why"]) for c in clients for k in c["keys"]}
            expect(found == {(way, why)}, f"keys go {found}")
            numbers = [[c["queue_pairs"][0][n] for n in ("qpn", "peer_qpn")] for c in clients]
            expect(numbers[0] == numbers[1][::-1], f"queue pairs {numbers}")
            text = session.tool("fabric", "status").out
            expect("1 one-sided, 0 by packets" in text, text)


def names_told(program, end):
    names = {}
    for line in iter(program.stdout.readline, end):
        expect(line, "kinds ends too early")
        number, name = line.split()
        names[int(number)] = name
    return names


@contextlib.contextmanager
def all_kinds(session, memory, device="mlx5_0"):
    """A program with a key of each kind; the names of these and of its queue pairs."""
    program = session.background(str(session.build / "tests/clients/kinds"), device,
                                 run_options=("--memory", memory))
    try:
        yield names_told(program, "keys\n"), names_told(program, "done\n")
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


def why_of_keys(session):
    """Each reason for which a key goes the way that it goes."""
    asked = ("kernel", "--memory asks for it")
    private = ("kernel", "private memory")
    any_way = {"file": ("mapped", "memory that is shared already"),
               "system-v": ("kernel", "shared memory that peers cannot map"),
               "on-demand": ("packets", "on-demand paging"),
               "served": ("packets", "faults may wait for another program"),
               "local": ("packets", "no right for peers to read or write"),
               "window": ("packets", "a memory window"),
               "list": ("packets", "a list of pieces of other keys, or with signatures"),
               "devx": ("packets", "made by a DEVX command")}
    skipped = set()
    for memory, wanted in (
            ("auto", {"private": private}),
            ("kernel", dict.fromkeys(("private", "file", "system-v"), asked))):
        with all_kinds(session, memory) as (names, _):
            keys = clients_shown(session, lambda c: len(c) == 1 and "keys" in c[0])[0]["keys"]
            found = {names[k["key"]]: (k["way"], k["why"]) for k in keys if k["key"] in names}
            expect(set(found) == set(names.values()), f"{memory}: of {names} there are {found}")
            skipped |= set(any_way) - set(found)
            for name, place in found.items():
                place_wanted = wanted.get(name) or any_way[name]
                expect(place == place_wanted, f"{memory}: {name} goes {place}, not {place_wanted}")
    if skipped:
        raise Skip(f"all is as it should be, but not looked at: {', '.join(sorted(skipped))}")


def queue_pairs_found(client, names):
    return {names[q["qpn"]]: (q["transport"], q["way"], q["why"])
            for q in client["queue_pairs"] if q["qpn"] in names}


def queue_pairs(session):
    """Queue pairs that have no other way than packets are listed, too."""
    transports = {"rc": "RC", "uc": "UC", "ud": "UD", "xrc-send": "XRC", "xrc-receive": "XRC",
                  "dc-initiator": "DC", "dc-target": "DC"}
    nothing = "the process lays nothing open: all data goes by packets"
    for device in ("mlx5_0", "mlx5_1"):
        if device == "mlx5_1":
            transports["raw"] = "raw packets"
        wanted = {name: (transport, "packets", "datagrams and frames have no other way than packets")
                  for name, transport in transports.items()}
        for name, transport in (("rc", "RC"), ("xrc-send", "XRC"), ("dc-initiator", "DC")):
            wanted[name] = (transport, "packets", "not connected")
        for name, transport in (("xrc-receive", "XRC"), ("dc-target", "DC")):
            wanted[name] = (transport, "packets", "a target, which sends nothing itself")
        wanted["uc"] = ("UC", "one-sided", "in one process")
        with all_kinds(session, "auto", device=device) as (_, names):
            client = clients_shown(session, lambda c: len(c) == 1 and "keys" in c[0])[0]
            found = queue_pairs_found(client, names)
            expect(found == wanted, f"queue pairs: {found}")
            peers = {names[q["qpn"]]: q["peer_qpn"] for q in client["queue_pairs"]}
            expect(names.get(peers["uc"]) == "uc" and peers["ud"] == 0, f"peers: {peers}")
        with all_kinds(session, "packets", device=device) as (keys, names):
            client = clients_shown(session, lambda c: len(c) == 1 and "keys" in c[0])[0]
            expect(not client["exposes"] and client["why"] == nothing, client)
            found = queue_pairs_found(client, names)
            expect(found == {name: (transport, "packets", nothing)
                             for name, transport in transports.items()}, found)
            found = {keys[k["key"]]: (k["way"], k["why"]) for k in client["keys"]
                     if k["key"] in keys}
            expect(found["private"] == ("packets", "--memory asks for it"), found)


def other_namespaces(session):
    """Of a peer that may not be looked into, or has other numbers, the status says that."""
    wrap = ["unshare", "-Urp", "--fork", "--mount-proc"]
    if session.call(*wrap, "true").status:
        raise Skip("unshare makes no namespaces here")
    with writing_programs(session, "auto", client_by=wrap) as pids:
        clients = clients_shown(session, lambda clients: len(clients) == 2 and all(
            any(q["peer_qpn"] for q in c.get("queue_pairs", [])) for c in clients
            if c["pid"] == pids[0]))
        found = [(q["way"], q["why"]) for c in clients if c["pid"] == pids[0]
                 for q in c["queue_pairs"]]
        expect(found == [("packets", "the peer exposes nothing, may not be mapped, or "
                           "lives in other namespaces")], found)


def peer_in_packets(session):
    """Of a process that lays nothing open, its peer says that."""
    with writing_programs(session, ("auto", "packets")) as pids:
        clients = clients_shown(session, lambda clients: len(clients) == 2 and all(
            c.get("exposes") == (c["pid"] == pids[0]) for c in clients) and
            any(q["peer_qpn"] for c in clients if c.get("exposes") for q in c.get("queue_pairs", [])))
        found = [(q["way"], q["why"]) for c in clients for q in c["queue_pairs"] if c["exposes"]]
        expect(found == [("packets", "the peer exposes nothing, may not be mapped, or "
                           "lives in other namespaces")], found)


def cases():
    return [(f"status: {test.__name__.replace('_', ' ')}", test) for test in (
        the_way, what_forbids, why_of_keys, queue_pairs, peer_in_packets, other_namespaces)]
