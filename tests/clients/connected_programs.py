# SPDX-License-Identifier: BSD-2-Clause
"""Larger programs that connect by rdma_cm, between two hosts: UCX, DAPL, MPI, sockets, storage, virtual machines."""
import contextlib
import glob
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile

from connections import SERVER, a_moment, end, listens, loopback_form, needs, pair
from harness import Failure, Skip, expect, free_port, only_long, wait_listening, within

HOSTS = ("host1", "host2")
PINGPONG = pathlib.Path(__file__).resolve().parents[2] / "bench/pingpong.c"
UCX_EXAMPLE = "/usr/share/doc/libucx-dev/examples/ucp_client_server.c"
KIB = 1024


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        yield pathlib.Path(directory)


def compiled(directory, *argv):
    """A program from the source of others, made by this compiler with these arguments."""
    program = str(directory / "program")
    made = subprocess.run([argv[0], "-O1", "-o", program, *argv[1:]], capture_output=True, text=True, check=False)
    expect(made.returncode == 0, made.stderr)
    return program


# ---- UCX ----

def ucp(kind, link, size, *options):
    """UCX's own example of a listener: messages by the API of that kind, of which each side prints what it gets."""
    def test(session):
        needs("gcc")
        if not os.path.exists(UCX_EXAMPLE):
            raise Skip(f"{UCX_EXAMPLE} is not there")
        # Its server answers the last message. The client of 1.18 is ready for that too late, and follows a null pointer.
        if kind == "am" and "register_am_recv_callback(ucp_worker)" in pathlib.Path(UCX_EXAMPLE).read_text():
            raise Skip("UCX's example registers the client's handler after the message that the server answers")
        with scratch() as directory:
            program = compiled(directory, "gcc", UCX_EXAMPLE, "-lucp", "-lucs")
            argv = ("env", "UCX_SOCKADDR_TLS_PRIORITY=rdmacm", "UCX_TLS=rc_v,ud_v", *options, "stdbuf", "-oL", program,
                    "-c", kind, "-s", str(size), "-i", "4")
            # In the last round the server sends, and then closes without asking: the client may have an error of that.
            result = pair(session, (*argv, "-l", SERVER[link]), (*argv, "-a", SERVER[link]), server_ends=False)
            text = "".join(chr(ord("A") + i % 26) for i in range(size - 1))
            last = result.out.partition("Client: iteration #4")[2]
            expect(text in last, f"{len(last)} characters: {result.text()[-500:]}")
    return test


# ---- DAPL ----

ADAPTER = "softhca"


@contextlib.contextmanager
def dat_registries(link):
    """The name of an adapter in files like /etc/dat.conf, one for each host; how a program gets that of host1 and host2."""
    with scratch() as directory:
        for host in (0, 1):
            address = loopback_form(SERVER[link]).replace(".0.", f".{host}.", 1)
            (directory / f"{host}").write_text(f'{ADAPTER} u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "{address} 0" ""\n')
        yield [("env", f"DAT_OVERRIDE={directory}/{host}") for host in (0, 1)]


def dapl(program, link, options, said, **keywords):
    """One of DAPL's test programs."""
    def test(session):
        needs(program)
        with dat_registries(link) as (first, second):
            result = pair(session, (*first, program, "-P", ADAPTER, *options),
                          (*second, program, "-P", ADAPTER, *options, "-h", loopback_form(SERVER[link])), **keywords)
        expect(said in result.out and "FAILED" not in result.out, result.text())
    return test


DTEST_PORT = 15828  # TCP, by which the server tells its address


def dapltest(session):
    """Threads with several endpoints, which check what they get."""
    needs("dapltest")
    with dat_registries("roce") as (first, second):
        result = pair(session, (*first, "dapltest", "-T", "S", "-D", ADAPTER),
                      (*second, "dapltest", "-T", "T", "-D", ADAPTER, "-s", "127.18.0.2", "-V", "-i", "20", "-t", "2", "-w", "2",
                       *"client RW 4096 2 server RR 2048 2 client SR 1024 2 server SR 256 2".split()),
                      server_ends=False)
    expect("2 threads, 2 EPs" in result.out and "rror" not in result.text(), result.text())


# ---- MPI ----

def mpi_over_libfabric(session):
    """Open MPI by libfabric, whose addresses are those of the machine: both hosts have the same."""
    needs("mpicc", "mpirun", "ompi_info")
    if "mtl: ofi" not in subprocess.run(["ompi_info"], capture_output=True, text=True, check=True).stdout:
        raise Skip("this Open MPI has no libfabric")
    if not subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split():
        raise Skip("the machine has no address")
    with scratch() as directory:
        program = compiled(directory, "mpicc", str(PINGPONG))
        # Not an own command for each rank (with ":" between them): of that, mpirun of Open MPI 5.0.7 dies, whatever the commands.
        rank = 'exec "$0" run --host host$((OMPI_COMM_WORLD_RANK + 1)) -- "$@"'
        result = session.call("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "cm", "--mca", "mtl", "ofi",
                              "--mca", "btl", "self", "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm", "-np", str(len(HOSTS)),
                              "sh", "-c", rank, session.softhca, program, "65536", "20",
                              env=session.env | {"FI_VERBS_DEVICE_NAME": "mlx5_1"}, limit=60)
    expect(result.status == 0 and "pingpong_mean" in result.out, f"status {result.status}\n{result.text()}")


# ---- sockets of librdmacm ----

def rcopy(session):
    """A file is copied, and is the same."""
    with scratch() as directory:
        (directory / "from").write_bytes(random.Random(1).randbytes(3_000_001))
        for address in SERVER.values():
            pair(session, ("rcopy",), ("rcopy", str(directory / "from"), f"{address}:{directory}/to"), server_ends=False)
            expect((directory / "to").read_bytes() == (directory / "from").read_bytes(), "the copy is another")
            (directory / "to").unlink()


def iperf(session):
    """Sockets of TCP that librspreload turns into those of librdmacm."""
    needs("iperf")
    found = glob.glob("/usr/lib/*/rsocket/librspreload.so")
    if not found:
        raise Skip("librspreload.so is not there")
    argv = ("env", f"LD_PRELOAD={found[0]}", "iperf")
    result = pair(session, (*argv, "-s", "-B", SERVER["roce"]), (*argv, "-c", SERVER["roce"], "-n", "16M"), server_ends=False)
    expect(re.search(r" 16\.0 MBytes ", result.out), result.text())


# ---- storage ----

INITIATOR, TARGET = "iqn.2026-11.softhca:initiator", "iqn.2026-11.softhca:disk"


@contextlib.contextmanager
def iser_target(session, directory):
    """A disk of tgt's on host1, by iSER at its port 3260, which the program takes from no option."""
    env = session.env | {"TGT_IPC_SOCKET": f"{directory}/socket"}
    server = session.background("tgtd", "-f", "--iscsi", f"portal=127.18.0.2:{free_port()}", env=env)

    def admin(*words):
        result = session.call("tgtadm", "--lld", "iser", *words, "--tid", "1", env=env)
        expect(result.status == 0, result.text())

    try:
        listens(session, server)
        expect(within(30, lambda: session.call("tgtadm", "--op", "show", "--mode", "sys", env=env).status == 0), "tgtd does not answer")
        admin("--op", "new", "--mode", "target", "-T", TARGET)
        admin("--op", "new", "--mode", "logicalunit", "--lun", "1", "-b", f"{directory}/disk")
        admin("--op", "bind", "--mode", "target", "-I", "ALL")
        admin("--op", "bind", "--mode", "target", "-Q", INITIATOR)
        yield
    finally:
        end(server)


def iser(session):
    """tgt's target and libiscsi's initiators: what QEMU's writes is in the file behind the disk."""
    needs("tgtd", "tgtadm", "iscsi-inq", "qemu-io")
    if not glob.glob("/usr/lib/*/qemu/block-iscsi.so"):
        raise Skip("QEMU's block-iscsi.so is not there")
    with scratch() as directory:
        (directory / "disk").write_bytes(bytes(4 << 20))
        with iser_target(session, directory):
            result = session.run("iscsi-inq", "-i", INITIATOR, f"iser://127.18.0.2:3260/{TARGET}/1",
                                 run_options=("--host", "host2"))
            expect(result.status == 0 and "VIRTUAL-DISK" in result.out, result.text())
            result = session.run("qemu-io", "--image-opts", "-c", "write -P 0x5a 4k 256k", "-c", "write -P 0xa5 64k 4k",
                                 "-c", "read -P 0x5a 4k 60k", "-c", "read -P 0xa5 64k 4k", "-c", "read -P 0 512k 128k",
                                 f"driver=iscsi,transport=iser,portal=127.18.0.2:3260,target={TARGET},lun=1,"
                                 f"initiator-name={INITIATOR}", run_options=("--host", "host2"))
            expect(result.status == 0 and result.out.count("read ") == 3, result.text())
        disk = bytearray(4 << 20)
        disk[4 * KIB:260 * KIB] = b"\x5a" * (256 * KIB)
        disk[64 * KIB:68 * KIB] = b"\xa5" * (4 * KIB)
        expect((directory / "disk").read_bytes() == disk, "the file behind the disk is another")


# ---- virtual machines ----

MEMORY = 64 << 20


class Qemu:
    """A virtual machine without an operating system, and its monitor."""
    def __init__(self, session, host, *options):
        self.process = session.background(
            "qemu-system-x86_64", "-accel", "tcg", "-m", f"{MEMORY >> 20}", "-display", "none", "-nodefaults", "-S", "-qmp", "stdio",
            *options, run_options=("--host", host), stdin=subprocess.PIPE)
        self.call("qmp_capabilities")

    def call(self, command, **arguments):
        print(json.dumps({"execute": command, "arguments": arguments}), file=self.process.stdin, flush=True)
        while line := self.process.stdout.readline():
            answer = json.loads(line) if line.startswith("{") else {}  # else it is about RDMA
            expect("error" not in answer, line)
            if "return" in answer:
                return answer["return"]
        raise Failure(f"QEMU has ended: {''.join(self.process.communicate())}")

    def memory(self, path):
        self.call("pmemsave", val=0, size=MEMORY, filename=str(path))
        return path.read_bytes()


def qemu(session):
    """A machine moves to the other host with its memory."""
    needs("qemu-system-x86_64")
    with scratch() as directory:
        data, at = random.Random(2).randbytes(8 << 20), 16 << 20
        (directory / "data").write_bytes(data)
        machines = []
        try:
            machines.append(Qemu(session, "host1", "-incoming", "rdma:198.18.0.2:4444"))
            listens(session, machines[0].process)
            machines.append(Qemu(session, "host2", "-device", f"loader,file={directory}/data,addr={at:#x},force-raw=on"))
            machines[1].call("migrate", uri="rdma:198.18.0.2:4444")
            expect(within(60, lambda: machines[1].call("query-migrate")["status"] in ("completed", "failed")), "it does not end")
            state = machines[1].call("query-migrate")
            expect(state["status"] == "completed", state)
            there, here = (machine.memory(directory / f"memory{i}") for i, machine in enumerate(machines))
            expect(there[at:at + len(data)] == data and there == here, "the memory is another")
        finally:
            for machine in machines:
                end(machine.process)


def cases():
    def listening(port):
        return lambda server: wait_listening(port, server)

    yield from ((f"rdma_cm: {name}", test) for name, test in (
        ("UCX's listener ib tag", ucp("tag", "ib", 16)), ("UCX's listener roce stream", ucp("stream", "roce", 4096)),
        *((f"UCX's listener roce {kind} by rendezvous", ucp(kind, "roce", 8192, "UCX_RNDV_THRESH=1k")) for kind in ("am", "tag")),
        ("dtest ib", dapl("dtest", "ib", ("-b", "4096"), "DAPL Test Complete. PASSED", ready=listening(DTEST_PORT))),
        ("dtest roce", dapl("dtest", "roce", ("-W", "-D", "-b", "4096"), "DAPL Test Complete. PASSED", ready=listening(DTEST_PORT))),
        ("dtestx", dapl("dtestx", "roce", (), "immed/atomic test PASSED", ready=listening(DTEST_PORT))),
        ("dtestsrq", dapl("dtestsrq", "ib", ("-c", "4"), "DAPL RC SRQ Test Complete")),
        ("dtestcm, 50 connections", dapl("dtestcm", "roce", ("-c", "50"), "ALL 50 CONNECTED", ready=listening(DTEST_PORT))),
        ("dapltest", dapltest), ("MPI over libfabric", mpi_over_libfabric),
        ("rcopy", rcopy), ("iperf by librspreload", iperf), ("iSER", iser), ("QEMU", only_long(qemu))))
