# SPDX-License-Identifier: BSD-2-Clause
"""RDMA netlink: `rdma` of iproute2 beside what `softhca status`, sysfs and the kernel's rules say."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import time

import objects
import status
from harness import Failure, Skip, expect

MOMENT = 1.0  # for a program that does not say when it is ready


def rdma(session, *words, host="host1", **options):
    """What `rdma -j` prints, and that it says nothing else."""
    if not shutil.which("rdma"):
        raise Skip("rdma is not there (package iproute2)")
    result = session.tool("run", "--host", host, "--", "rdma", "-j", "-d", *words, **options)
    expect(result.status == 0 and not result.err, f"rdma {' '.join(words)}: {result.status}\n{result.text()}")
    try:
        return json.loads(result.out) if result.out.strip() else []
    except ValueError:
        raise Failure(f"rdma {' '.join(words)} prints {result.out!r}")


def sysfs(session, path):
    return session.run("cat", f"/sys/class/infiniband/{path}").out.strip()


def number_of_guid(text):
    return int(text.replace(":", ""), 16)


@contextlib.contextmanager
def kept(session):
    """A fabric that stays between programs."""
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        yield
    finally:
        session.tool("fabric", "down")


def devices(session):
    """Each device with the numbers that sysfs has."""
    shown = rdma(session, "dev")
    expect([d["ifname"] for d in shown] == ["mlx5_0", "mlx5_1"], shown)
    for index, device in enumerate(shown):
        name = device["ifname"]
        expect(device["ifindex"] == index and device["node_type"] == "ca", device)
        expect(device["fw"] == sysfs(session, f"{name}/fw_ver"), device)
        for key, file in (("node_guid", "node_guid"), ("sys_image_guid", "sys_image_guid")):
            expect(number_of_guid(device[key]) == number_of_guid(sysfs(session, f"{name}/{file}")), device)
        said = session.run("ibv_devinfo", "-v", "-d", name).out
        flags = int(said.split("device_cap_flags:")[1].split()[0], 16)
        expect(("XRC" in device["caps"]) == bool(flags & 1 << 20), f"{device['caps']} beside {flags:#x}")
        expect(("RAW_IP_CSUM" in device["caps"]) == bool(flags & 1 << 26), f"{device['caps']} beside {flags:#x}")
    one = rdma(session, "dev", "show", "mlx5_1")
    expect([d["ifname"] for d in one] == ["mlx5_1"], one)


def links(session):
    """Each port with its state and addresses; a netdev only where the machine has it."""
    shown = {f"{p['ifname']}/{p['port']}": p for p in rdma(session, "link")}
    expect(sorted(shown) == ["mlx5_0/1", "mlx5_1/1"], shown)
    ib, roce = shown["mlx5_0/1"], shown["mlx5_1/1"]
    port = "mlx5_0/ports/1"
    expect(ib["lid"] == int(sysfs(session, f"{port}/lid"), 16), ib)
    expect(ib["sm_lid"] == int(sysfs(session, f"{port}/sm_lid"), 16), ib)
    expect(ib["lmc"] == 0 and ib["subnet_prefix"] == "fe80:0000:0000:0000", ib)
    mask = int(sysfs(session, f"{port}/cap_mask"), 16)
    expect(("SM" in ib["caps"]) == bool(mask & 2), f"{ib['caps']} beside {mask:#x}")
    for one in (ib, roce):
        expect(one["state"] == "ACTIVE" and one["physical_state"] == "LINK_UP", one)
    netdev = sysfs(session, "mlx5_1/ports/1/gid_attrs/ndevs/0")
    here = pathlib.Path(f"/sys/class/net/{netdev}/ifindex") if netdev else None
    expect(roce.get("netdev") == (netdev if here and here.exists() else None), f"{roce} beside {netdev!r}")
    if roce.get("netdev"):
        expect(roce["netdev_index"] == int(here.read_text()), roce)
    expect("netdev" not in ib, ib)
    with kept(session):
        session.tool("fabric", "port", "mlx5_0", "down")
        down = {p["ifname"]: p for p in rdma(session, "link")}
        expect(down["mlx5_0"]["state"] == "DOWN", down)


def other_host(session):
    """A program sees the devices of its own host."""
    mine, other = (rdma(session, "dev", host=host) for host in ("host1", "host2"))
    expect([d["ifname"] for d in mine] == [d["ifname"] for d in other], f"{mine}\n{other}")
    expect({d["node_guid"] for d in mine}.isdisjoint(d["node_guid"] for d in other), f"{mine}\n{other}")


def system(session):
    """rdma prints no JSON here; that of iproute2 6.15 says that there are notifications."""
    words = session.run_ok("rdma", "system").out.split()
    said = dict(zip(words[::2], words[1::2]))
    expect(said.pop("monitor", "on") == "on", words)
    expect(said == {"netns": "shared", "copy-on-fork": "on"}, words)


def monitored(session, *program):
    """A program that waits for notifications hears nothing while links go and come, as on Linux, and ends by SIGINT."""
    process = session.background(*program)
    try:
        time.sleep(MOMENT)
        for state in ("down", "up"):
            for port in ("mlx5_0", "mlx5_1"):
                result = session.tool("fabric", "port", port, state)
                expect(result.status == 0, result.text())
        rdma(session, "link")
        if process.poll() is not None:
            raise Failure(f"{' '.join(program)} has ended: {session.finish(process).text()}")
        os.killpg(process.pid, signal.SIGINT)
        return session.finish(process, 20)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def monitor(session):
    with kept(session):
        result = monitored(session, str(session.build / "tests/clients/netlink"), "monitor")
        expect(result.status == 0 and result.out == "listening\n", result.text())
        # That of iproute2 6.15 and newer.
        if "monitor" in session.run("rdma", "help").text():
            result = monitored(session, "rdma", "monitor")
            expect(result.status == -signal.SIGINT and not result.text(), result.text())


def refused_changes(session):
    """What changes a device is for the administrator, and is not offered to that one either."""
    for words in (("dev", "set", "mlx5_0", "name", "mine"), ("system", "set", "netns", "exclusive")):
        result = session.run("rdma", *words)
        wanted = "Operation not supported" if os.geteuid() == 0 else "Operation not permitted"
        expect(result.status != 0 and wanted in result.text(), f"rdma {' '.join(words)}: {result.text()}")
    result = session.run("rdma", "dev", "show", "mlx5_7")
    expect(result.status != 0 and "Wrong device name" in result.text(), result.text())


def counters(session):
    """The counters of a port, after traffic, as sysfs has them."""
    with kept(session):
        session.pair(("ib_write_bw", "-d", "mlx5_0", "-F", "-n", "100"),
                     ("ib_write_bw", "-d", "mlx5_0", "-F", "-n", "100"))
        shown = {f"{p['ifname']}/{p['port']}": p for p in rdma(session, "statistic", "show")}
        port = shown["mlx5_0/1"]
        files = session.run("sh", "-c", "cd /sys/class/infiniband/mlx5_0/ports/1/hw_counters; grep -H . *").out
        read = dict(line.split(":") for line in files.split())
        read.pop("lifespan", None)
        said = {name: str(value) for name, value in port.items() if name not in ("ifname", "port", "ifindex")}
        expect(said == read, f"{said}\n{read}")
        expect(int(read["rx_write_requests"]) > 0, read)


@contextlib.contextmanager
def two_programs(session):
    with status.writing_programs(session, "auto") as pids:
        status.clients_shown(session, lambda clients: len(clients) == 2 and
                             all(c.get("queue_pairs") for c in clients))
        yield pids


def programs_shown(session):
    return json.loads(session.tool("status", "--json").out)["programs"]


def resources(session):
    """The lists of objects as `softhca status` has them, by number; what is only here adds up."""
    with two_programs(session) as pids:
        told = {p["pid"]: p for p in programs_shown(session)}
        qps = rdma(session, "res", "show", "qp")
        expect(sorted(q["lqpn"] for q in qps) == sorted(q["qpn"] for p in told.values() for q in p["queue_pairs"]), qps)
        for shown in qps:
            same = next(q for q in told[shown["pid"]]["queue_pairs"] if q["qpn"] == shown["lqpn"])
            expect(shown["type"] == "RC" == same["transport"] and shown["state"] == same["state"] == "RTS", shown)
            expect(shown["rqpn"] == same["peer"]["qpn"] and shown["path-mig-state"] == "MIGRATED", shown)
            expect(shown["ifname"] == "mlx5_0" and shown["port"] == 1, shown)
            expect(shown["comm"] == "ib_write_bw", shown)
        cqs = rdma(session, "res", "show", "cq")
        expect(sorted((c["pid"], c["cqe"] + 1) for c in cqs) ==
               sorted((pid, c["capacity"]) for pid, p in told.items() for c in p["completion_queues"]), cqs)
        regions = rdma(session, "res", "show", "mr")
        expect(sorted((m["pid"], m["mrn"], m["mrlen"]) for m in regions) ==
               sorted((pid, k["key"] >> 8, k["length"]) for pid, p in told.items() for k in p["keys"]), regions)
        domains, contexts = (rdma(session, "res", "show", kind) for kind in ("pd", "ctx"))
        expect({d["pid"] for d in domains} == {c["pid"] for c in contexts} == set(pids), f"{domains}\n{contexts}")
        numbers = {c["ctxn"] for c in contexts}
        expect(all(c["ctxn"] in numbers for c in cqs + domains), f"{cqs}\n{domains}\n{contexts}")
        for domain in domains:
            users = sum(o["pdn"] == domain["pdn"] for o in qps + regions)
            expect(domain["users"] == users > 0, f"{domain}, used by {users}")
        expect(all(c["users"] == 2 for c in cqs if c["users"]), cqs)
        whole = {d["ifname"]: d for d in rdma(session, "res")}
        expect({k: whole["mlx5_0"][k] for k in ("pd", "cq", "qp", "cm_id", "mr", "ctx", "srq")} ==
               {"pd": len(domains), "cq": len(cqs), "qp": 2, "cm_id": 0, "mr": len(regions), "ctx": 2, "srq": 0}, whole)
        expect(all(whole["mlx5_1"][k] == 0 for k in ("pd", "cq", "qp", "mr", "ctx")), whole)
        filtered = rdma(session, "res", "show", "qp", "link", "mlx5_0/1", "lqpn", str(qps[0]["lqpn"]))
        expect([q["lqpn"] for q in filtered] == [qps[0]["lqpn"]], filtered)
        expect(rdma(session, "res", "show", "qp", "link", "mlx5_1/1") == [], "queue pairs of another device")
        other = rdma(session, "res", host="host2")
        expect(all(d["qp"] == 0 for d in other), other)


def of_all_kinds(session):
    """Queue pairs of every type, shared receive queues with theirs."""
    with objects.all_kinds(session, "auto"):
        (told,) = programs_shown(session)
        shown = {q["lqpn"]: q for q in rdma(session, "res", "show", "qp")}
        types = {"DC": {"DRIVER"}, "XRC": {"XRC_INI", "XRC_TGT"}}
        expect(sorted(shown) == sorted(q["qpn"] for q in told["queue_pairs"]), shown)
        expect(all(shown[q["qpn"]]["type"] in types.get(q["transport"], {q["transport"]})
                   for q in told["queue_pairs"]), f"{shown}\n{told['queue_pairs']}")
        queues = {s["srqn"]: s for s in rdma(session, "res", "show", "srq")}
        expect(sorted(queues) == sorted(s["srqn"] for s in told["shared_receive_queues"]), queues)
        for same in told["shared_receive_queues"]:
            expect(queues[same["srqn"]]["type"] == ("XRC" if "cq" in same else "BASIC"), queues)
            users = sorted(q["qpn"] for q in told["queue_pairs"] if q.get("srq") == same["srqn"])
            said = queues[same["srqn"]].get("lqpn", [])
            listed = []
            for part in said:
                first, _, last = str(part).partition("-")
                listed += range(int(first), int(last or first) + 1)
            expect(sorted(listed) == users, f"{queues} beside {users}")


def many(session):
    """A dump of many datagrams: three programs of many queue pairs."""
    program = str(session.build / "tests/clients/netlink")
    started = [session.background(program, "hold", "200") for _ in range(3)]
    try:
        for one in started:
            expect(one.stdout.readline().startswith("held"), "the queue pairs are not there")
        shown = rdma(session, "res", "show", "qp")
        expect(len({q["lqpn"] for q in shown}) == len(shown) == 600, f"{len(shown)} queue pairs")
        expect({q["pid"] for q in shown} == {one.pid for one in started}, "of other programs")
    finally:
        for one in started:
            os.killpg(one.pid, signal.SIGKILL)
            one.communicate()


def of_a_stopped(session):
    """A stopped program is read like any; one that holds up who reads its memory costs its time limit."""
    with two_programs(session) as pids:
        os.kill(pids[0], signal.SIGSTOP)
        shown = rdma(session, "res", "show", "qp")
        expect({q["pid"] for q in shown} == set(pids), shown)
    with objects.lying(session, "waits") as said, objects.all_kinds(session, "auto"):
        if said != "done":
            raise Skip(said)
        shown = rdma(session, "res", "show", "qp", limit=30)
        expect({q["comm"] for q in shown} == {"kinds"}, shown)
        session.run_ok(str(session.build / "tests/clients/netlink"), "children")


def of_a_liar(session):
    """Any number may be in what a program says of itself."""
    with objects.lying(session, "noise") as said:
        expect(said == "done", f"liar says: {said!r}")
        for kind in ("qp", "cq", "mr", "pd", "ctx", "srq"):
            result = session.run("rdma", "-d", "res", "show", kind)
            expect(result.status >= 0 and result.text().isascii(), f"{kind}: status {result.status}")
        rdma(session, "res")


def socket_itself(session):
    """Addresses, options, errors, sizes, threads, fork: what the kernel's sockets of this family do."""
    session.run_ok(str(session.build / "tests/clients/netlink"), "socket")


def device_files(session):
    """Names and numbers of device files, as stat has them."""
    session.run_ok(str(session.build / "tests/clients/netlink"), "files")


def other_families(session):
    """Sockets of other families and of other netlink protocols are the machine's."""
    for words in (("ip", "-j", "addr"), ("ip", "-j", "route"), ("ss", "-x", "-H")):
        if not shutil.which(words[0]):
            raise Skip(f"{words[0]} is not there")
        without = session.call(*words)
        inside = session.run(*words)
        expect(inside.status == without.status and (words[0] == "ss" or inside.out == without.out),
               f"{' '.join(words)}: {inside.text()}\nwithout: {without.text()}")


def cases():
    yield from ((f"netlink: {name}", test) for name, test in (
        ("rdma dev", devices), ("rdma link", links), ("another host", other_host), ("rdma system", system), ("monitor", monitor),
        ("changes", refused_changes), ("rdma statistic", counters), ("rdma res of two programs", resources),
        ("rdma res of all kinds", of_all_kinds), ("rdma res of 600 queue pairs", many),
        ("programs that do not go on", of_a_stopped), ("a program that lies", of_a_liar),
        ("the socket", socket_itself), ("device files", device_files), ("other families", other_families)))
