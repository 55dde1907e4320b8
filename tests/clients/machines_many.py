#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many machines, each a fabric in a network namespace of its own on one bridge, and programs that run on all of them.  Run in
a user and network namespace of its own; the arguments say which step, and how many machines."""
import contextlib
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import yaml

from harness import expect, free_port, within
from machines_inside import NAME, PORT, Machine, ip, nothing_bad
import ties

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMORY_MOST = 8 << 20
IDLE_SECONDS = 3
LIMIT = 300


def address(number, network="10.9"):
    return f"{network}.{number // 200}.{number % 200 + 1}"


@contextlib.contextmanager
def bridge(count, network="10.9"):
    """Processes that sleep, each in a namespace whose interface eth0 is on one bridge here."""
    sleepers = []
    try:
        ip("link", "add", "br0", "type", "bridge")
        ip("link", "set", "br0", "up")
        own = os.readlink("/proc/self/ns/net")
        for number in range(count):
            sleepers.append(subprocess.Popen(["unshare", "-n", "sleep", "infinity"]))
            pid = sleepers[-1].pid
            expect(within(30, lambda p=pid: os.readlink(f"/proc/{p}/ns/net") != own), "no other namespace")
            there = ("nsenter", "-t", str(pid), "-n", "--")
            ip("link", "add", f"v{number}", "master", "br0", "type", "veth", "peer", "name", "eth0", "netns", str(pid))
            ip("link", "set", f"v{number}", "up")
            ip("link", "set", "lo", "up", prefix=there)
            ip("addr", "add", f"{address(number, network)}/16", "dev", "eth0", prefix=there)
            ip("link", "set", "eth0", "up", prefix=there)
        neighbours(sleepers, network)
        yield sleepers
    finally:
        for process in sleepers:
            process.kill()
            process.wait()
        ip("link", "del", "br0")


def neighbours(sleepers, network):
    """Each knows the others' MACs: the kernel's table of those that it has asked for is one for all namespaces, and small."""
    macs = [subprocess.run(["nsenter", "-t", str(s.pid), "-n", "ip", "-o", "link", "show", "eth0"], capture_output=True, text=True,
                           check=True).stdout.split("link/ether ")[1].split()[0] for s in sleepers]
    for own, sleeper in enumerate(sleepers):
        lines = "".join(f"neigh replace {address(n, network)} lladdr {mac} dev eth0 nud permanent\n" for n, mac in enumerate(macs) if n != own)
        subprocess.run(["nsenter", "-t", str(sleeper.pid), "-n", "ip", "-batch", "-"], input=lines, text=True, check=True)


@contextlib.contextmanager
def machines_on_bridge(build, count):
    with bridge(count) as sleepers:
        machines = [Machine(build, address(number), ("nsenter", "-t", str(s.pid), "-n", "--")) for number, s in enumerate(sleepers)]
        try:
            for machine in machines:
                result = machine.tool("fabric", "up", "--listen", machine.address)
                expect(result.status == 0, result.text())
            for machine in machines:
                ties.is_state(machine, "ACTIVE", NAME)
            yield machines, sleepers
            for machine in machines:
                machine.down()
        finally:
            for machine in machines:
                machine.close()


def mpi(machines, sleepers, ranks, argv, transport):
    """mpirun of Open MPI on the first machine, which starts ranks on all of them; UCX between them."""
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        directory = pathlib.Path(directory)
        program = directory / "program"
        subprocess.run(["mpicc", "-O2", "-o", str(program), str(argv[0])], check=True)
        for machine, sleeper in zip(machines, sleepers):
            (directory / machine.address).mkdir()
            (directory / f"{machine.address}.env").write_text(
                f"export XDG_RUNTIME_DIR={shlex.quote(str(machine.runtime))} TMPDIR={directory}/{machine.address}\n"
                f"pid={sleeper.pid}\n")
        agent = directory / "agent"
        agent.write_text(f"#!/bin/sh\n. {directory}/$1.env\nshift\nexec nsenter -t $pid -n -- sh -c \"$*\"\n")
        agent.chmod(0o755)
        hosts = ",".join(f"{m.address}:{ranks // len(machines)}" for m in machines)
        mca = {"plm_rsh_agent": agent, "plm_rsh_no_tree_spawn": 1, "pml": "ucx", "oob_tcp_if_include": "eth0",
               "mpi_yield_when_idle": 1}
        # All machines have one name here, so each has a directory of its own.
        command = ["env", f"TMPDIR={directory}/{machines[0].address}", "mpirun", "--allow-run-as-root", "-np", str(ranks), "-host", hosts, "--bind-to", "none", "--oversubscribe",
                   *(w for name, value in mca.items() for w in ("--mca", name, str(value))),
                   "-x", f"UCX_TLS={transport},self", "-x", f"UCX_NET_DEVICES={PORT}:1",
                   machines[0].softhca, "run", "--", str(program), *argv[1:]]
        result = machines[0].finish(machines[0].start(command), LIMIT)
    expect(result.status == 0, f"status {result.status}\n{result.text()}")
    return result.out


def processes(machine):
    """The daemon and the carrier of a fabric."""
    status = machine.tool("fabric", "status").out
    return [int(re.search(pattern, status)[1]) for pattern in (r"softhcad \S+ pid (\d+)", r"by pid (\d+)")]


def memory(pid):
    """Bytes that the process has for itself, and its share of what it has with others."""
    return 1024 * int(re.search(r"^Pss: +(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])


def ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def idle(machines):
    """What fabrics take while nobody uses them."""
    pids = [processes(machine) for machine in machines]
    before = [sum(map(ticks, pair)) for pair in pids]
    time.sleep(IDLE_SECONDS)
    used = [sum(map(ticks, pair)) - was for pair, was in zip(pids, before)]
    sizes = [sum(map(memory, pair)) for pair in pids]
    print(f"{len(machines)} fabrics: at most {max(sizes) / (1 << 20):.1f} MB each, {100 * max(used) / os.sysconf('SC_CLK_TCK') / IDLE_SECONDS:.1f} % "
          "of a processor while idle")
    expect(max(sizes) <= MEMORY_MOST, f"{sizes}")
    expect(max(used) == 0, f"ticks of {IDLE_SECONDS} seconds: {used}")


def alltoall(build, count):
    """Each machine with each other one, every byte compared; what fabrics take, and what they count of each other."""
    count = int(count)
    with machines_on_bridge(build, count) as (machines, sleepers):
        idle(machines)
        out = mpi(machines, sleepers, count, (ROOT / "bench/alltoall.c", "4096", "2", "5"), "ud_verbs")
        expect("alltoall " in out, out)
        rows = [{p["address"]: p for p in m.counts()["peers"]} for m in machines]
        for machine, own in zip(machines, rows):
            others = {m.address for m in machines} - {machine.address}
            expect(set(own) == others and all(p["in"] and p["out"] for p in own.values()), f"{machine.address}: {own}")
        nothing_bad(machines)
        idle(machines)


def ends(machines, server, client, good):
    """A server on the first machine and a client on the second, which is run again until the server is there."""
    one, two = machines
    process = one.background(*server)
    last = []

    def done():
        last[:] = [two.run(*client, limit=60)]
        return good(last[0]) or process.poll() is not None
    try:
        expect(within(60, done) and good(last[0]), f"{client}: {last[0].status}\n{last[0].text()}")
        within(10, lambda: process.poll() is not None)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return out + err


def programs(build):
    """UCX, fio, libfabric, qperf and MPI between two machines."""
    with machines_on_bridge(build, 2) as (machines, sleepers):
        to = machines[0].address
        for transport in ("rc", "ud"):
            for name, size in (("tag_lat", "8"), ("ucp_put_bw", "65536")):
                argv = ("env", f"UCX_TLS={transport},self", f"UCX_NET_DEVICES={PORT}:1", "ucx_perftest", "-p", str(free_port()), "-t", name,
                        "-n", "500", "-s", size)
                if transport.startswith("ud") and name == "ucp_put_bw":
                    continue
                ends(machines, argv, (*argv, to), lambda r: r.status == 0 and "Final:" in r.out)
        words = ("fio", "--thread", "--name=job", "--ioengine=rdma", "--port=7480", "--bs=64k", "--size=16m")
        for verb in ("write", "read"):
            ends(machines, (*words, "--rw=read", "--iodepth=256"),
                 (*words, "--rw=write", "--iodepth=16", f"--verb={verb}", f"--hostname={to}"),
                 lambda r: "err= 0" in r.out and "issued rwts: total=0,256,0,0 short=0,0,0,0" in r.out)
        words = ("fi_pingpong", "-p", "verbs;ofi_rxm", "-e", "rdm", "-d", PORT, "-I", "20", "-c")
        ends(machines, words, (*words, to), lambda r: re.search(r"^64k +20 +=20 ", r.out, re.M))
        ends(machines, ("qperf",), ("qperf", "-cm1", "-t", "1", to, "rc_bw", "rc_lat", "ud_bw"),
             lambda r: r.out.count("bw  =") == 3 and "latency" in r.out)
        for transport in ("rc", "ud"):
            out = mpi(machines, sleepers, 4, (ROOT / "bench/alltoall.c", "20000", "5", "20"), transport)
            expect("alltoall " in out, out)
        nothing_bad(machines)


EXAMPLES = ROOT / "examples/machines"


def containers(build, commands):
    """Commands as containers would run them, each in namespaces of its own, with the names that they know each other by, and
    the part of the environment that they are given."""
    with bridge(len(commands), "10.244") as sleepers, tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        machines = [Machine(build, address(number, "10.244"), ("nsenter", "-t", str(s.pid), "-n", "--")) for number, s in enumerate(sleepers)]
        try:
            hosts = pathlib.Path(directory) / "hosts"
            hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{m.address} {' '.join(names)}\n" for m, (names, _) in zip(machines, commands)))
            within(10, lambda: all(subprocess.run([*m.prefix, "ping", "-c", "1", "-W", "1", machines[0].address], check=False,
                                                  capture_output=True).returncode == 0 for m in machines))
            running = {}
            for machine, (names, command) in zip(machines, commands):
                running[names[0]] = machine.start(
                    ["env", f"PATH={build}:{os.environ['PATH']}", f"POD_IP={machine.address}", "unshare", "-mu", "sh", "-c",
                     f"mount --bind {hosts} /etc/hosts && hostname {names[0]} && exec \"$@\"", "sh", *command])
            for name, result in machines[0].finish_all(running).items():
                expect(result.status == 0 and "host1/mlx5_1 is tied to udp=10.244." in result.out, f"{name}: {result.status}\n{result.text()}")
            for machine in machines:
                nothing_bad([machine])
                machine.down()
        finally:
            for machine in machines:
                machine.close()


def examples(build):
    """The files of examples/machines, as far as two namespaces are like containers and pods."""
    services = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())["services"]
    containers(build, [((name,), service["command"]) for name, service in services.items()])
    documents = {d["kind"]: d for d in yaml.safe_load_all((EXAMPLES / "statefulset.yaml").read_text())}
    pods, name = documents["StatefulSet"]["spec"], documents["StatefulSet"]["metadata"]["name"]
    program = pods["template"]["spec"]["containers"][0]
    expect(documents["Service"]["spec"]["clusterIP"] == "None" and pods["serviceName"] == documents["Service"]["metadata"]["name"], "the service")
    containers(build, [((f"{name}-{n}", f"{name}-{n}.{pods['serviceName']}"), program["command"] + program["args"])
                       for n in range(pods["replicas"])])
    for document in yaml.safe_load_all((EXAMPLES / "mpijob.yaml").read_text()):
        expect(document["kind"] == "MPIJob", f"{document['kind']}")


STEPS = {"alltoall": alltoall, "programs": programs, "examples": examples}


def main():
    STEPS[sys.argv[2]](pathlib.Path(sys.argv[1]), *sys.argv[3:])
    print("done")


main()
