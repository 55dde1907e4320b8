# SPDX-License-Identifier: BSD-2-Clause
"""Data of verbs on switches: what their ports have carried."""
import os
import pathlib
import re
import shutil
import subprocess

import nets
from checklist import path_of
from harness import Skip, expect, within
from life import end_well, failure_of, pingpong
from records import ask
from subnet import NAME, Subnet

HERE = pathlib.Path(__file__).resolve().parent
SWITCHES = 3
PERFTEST = ("-d", "mlx5_0", "-F", "-s", "65536", "-n", "1000")
# What carries how much at least, in octets: from H1, and to it.
TRAFFIC = (
    (("ibv_rc_pingpong", "-d", "mlx5_0", "-s", str(1 << 20), "-n", "512"), 512 << 20, 512 << 20),
    (("ib_write_bw", *PERFTEST), 65536000, 0),
    (("ib_read_bw", *PERFTEST), 0, 65536000),
    (("ib_send_bw", "-c", "UD", "-d", "mlx5_0", "-F", "-s", "1024", "-n", "1000"), 1024000, 0),
)
COUNTERS = ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts")


def ports_on_the_way():
    """Each link's two ends, from H1 to H2."""
    yield ("H1", 1), ("S1", 1)
    for n in range(1, SWITCHES):
        yield (f"S{n}", 8), (f"S{n + 1}", 7)
    yield (f"S{SWITCHES}", 1), ("H2", 1)


def lids(subnet):
    found = {name: int(lid) for name, lid in re.findall(
        r'"(S\d+)" base port 0 lid (\d+)', subnet.ok("H1", "ibswitches"))}
    for host in ("H1", "H2"):
        found[host] = int(subnet.ok(
            host, "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid"), 0)
    return found


def counted(subnet, lid):
    """What all ports say, asked in the same order each time."""
    ports = [port for link in ports_on_the_way() for port in link]
    found = {}
    for node, port in ports:
        out = subnet.ok("H1", "perfquery", "-x", str(lid[node]), str(port))
        found[node, port] = [int(re.search(name + r":\.*(\d+)", out)[1]) for name in COUNTERS]
    return found


def less(a, b):
    return {port: [x - y for x, y in zip(a[port], b[port])] for port in a}


def agree(what, data):
    """Both ends of each link have counted the same words and packets, and each link as the first."""
    first = data["H1", 1]
    for near, far in ports_on_the_way():
        expect(data[near] == first, f"{what}: {near}: {data[near]}, H1: {first}")
        there = [data[far][i] for i in (1, 0, 3, 2)]
        expect(there == first, f"{what}: {far}: {data[far]}, H1: {first}")


def every_port_counts(session):
    """1 GiB over three switches, and some by RDMA.  The questions are MADs and count too, the same in
    each round."""
    with Subnet(session, nets.chain(SWITCHES)) as subnet:
        lid = lids(subnet)
        before = counted(subnet, lid)
        now = counted(subnet, lid)
        asking = less(now, before)
        for command, sent, received in TRAFFIC:
            before = now
            end_well(subnet, command[0], *command)
            now = counted(subnet, lid)
            data = less(less(now, before), asking)
            words = data["H1", 1]
            expect(words[0] * 4 >= sent and words[1] * 4 >= received, f"{command[0]}: H1 has {words}")
            agree(command[0], data)


def links_have_mtus(session):
    """Links of ibsim's files take 2,048 bytes: larger packets are lost."""
    with Subnet(session, nets.chain(2)) as subnet:
        end_well(subnet, "a path MTU of 2048", *pingpong("-m", "2048"))
        expect(failure_of(subnet, *pingpong("-m", "4096")), "a path MTU of 4096")


def groups_reach_those_who_join(session):
    """Both ends join a group at OpenSM's SA; its tree carries the data, and its links count it."""
    with Subnet(session, nets.chain(2), "external") as subnet:
        subnet.opensm_resident("H1")
        end_well(subnet, "data of the group", "ib_send_bw", "-c", "UD", "-g", "-d", "mlx5_0", "-F",
                 "-s", "1024", "-n", "1000")
        out = subnet.ok("H1", "perfquery", "-x", str(lids(subnet)["S2"]), "7")
        packets = re.search(r"PortMulticastRcvPkts:\.*(\d+)", out)
        expect(packets and int(packets[1]) >= 1000, out)


def levels_counted(subnet, lid):
    """Words by service level that left the first port of each link, and that reached the second."""
    found = {}
    for near, far in ports_on_the_way():
        for (node, port), option, name in ((near, "-X", "Xmt"), (far, "-S", "Rcv")):
            out = subnet.ok("H1", "perfquery", option, str(lid[node]), str(port))
            found[node, port] = [int(n) for n in re.findall(name + r"DataSL\d+:\.*(\d+)", out)]
            expect(len(found[node, port]) == 16, out)
    return found


def levels_are_told_apart(session):
    """What goes by service levels 3 and 9 is counted as theirs at every port on the way."""
    with Subnet(session, nets.chain(SWITCHES)) as subnet:
        lid = lids(subnet)
        for level in ("3", "9"):
            end_well(subnet, f"level {level}", "ib_write_bw", *PERFTEST, "-S", level)
        for port, words in levels_counted(subnet, lid).items():
            others = [level for level in range(1, 16) if words[level] and level not in (3, 9)]
            expect(not others and words[3] == words[9] >= 65536000 // 4, f"{port}: {words}")


def two_cables():
    return nets.text(['Hca 1 "H1"', '[1] "S1"[1]', "", 'Hca 1 "H2"', '[1] "S2"[1]', "",
                      'Switch 8 "S1"', '[1] "H1"[1]', '[7] "S2"[7]', '[8] "S2"[8]', "",
                      'Switch 8 "S2"', '[1] "H2"[1]', '[7] "S1"[7]', '[8] "S1"[8]', ""])


def cable_between(subnet, source, target):
    """The port of both switches by which packets from one LID go to the other."""
    out = subnet.ok("H1", "ibtracert", str(source), str(target))
    found = re.findall(r"^\[([78])\] -> switch port", out, re.MULTILINE)
    expect(len(found) == 1, out)
    return found[0]


def cables_of_lids(subnet):
    """The cables to both LIDs of H2 from H1, and back, as OpenSM leads them: each LID has its own."""
    subnet.opensm_once("H1", "-l", "1")
    lid = {host: int(subnet.ok(host, "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid"), 0)
           for host in ("H1", "H2")}
    there = [cable_between(subnet, lid["H1"], lid["H2"] + bits) for bits in (0, 1)]
    back = [cable_between(subnet, lid["H2"], lid["H1"] + bits) for bits in (0, 1)]
    expect(sorted(there) == sorted(back) == ["7", "8"], f"to H2: {there}, to H1: {back}")
    return there, back


def pull(session, subnet, cable):
    """Takes the cable out, and lets the program go on."""
    session.tool("fabric", "link", "--fabric", NAME, "down", "S1", cable)
    (subnet.directory / "broken").touch()


def paths_migrate(session):
    """Two cables, two LIDs for each host by OpenSM: a connection is armed, the cable of its path is pulled,
    nobody makes new routes, and the data goes on by the other."""
    with Subnet(session, two_cables(), "external") as subnet:
        cables, back = cables_of_lids(subnet)
        bits = {"H1": str(back.index(cables[1])), "H2": "1"}
        program = path_of(session, "path_migration")
        port = str(18700 + os.getpid() % 1000)
        listener = subnet.begin("H2", program, "listens", port, bits["H2"], bits["H1"])
        client = None

        def armed():
            nonlocal client
            if client is None or client.poll() == 3:  # nobody listens yet
                client = subnet.begin("H1", program, "connects", port, bits["H1"], bits["H2"])
            return client.poll() not in (None, 3) or (subnet.directory / "armed").exists()

        expect(within(30, armed), "not armed")
        pull(session, subnet, cables[0])
        for process in (client, listener):
            out, err = process.communicate(timeout=60)
            expect(process.returncode == 0, f"status {process.returncode}\n{out}{err}")


OPENIB = (
    "--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_allow_ib", "1",
    "--mca", "btl_openib_if_include", "mlx5_0:1", "--mca", "btl_openib_max_lmc", "0",
    "--mca", "btl_openib_enable_apm_over_lmc", "1", "--mca", "btl_openib_ib_timeout", "12",
    "--mca", "btl_openib_warn_no_device_params_found", "0")


def open_mpi_migrates(session):
    """The same with Open MPI's openib, which loads alternate paths to the other LIDs by itself."""
    for program in ("mpicc", "mpirun", "ompi_info"):
        if not shutil.which(program):
            raise Skip(f"{program} is not there")
    if "btl: openib" not in subprocess.run(["ompi_info"], capture_output=True, text=True, check=True).stdout:
        raise Skip("this Open MPI has no openib")
    with Subnet(session, two_cables(), "external") as subnet:
        cables, back = cables_of_lids(subnet)
        if cables != back:
            raise Skip("the two directions of a pair of LIDs have different cables")
        program = str(subnet.directory / "rounds")
        subprocess.run(["mpicc", "-O1", "-o", program, str(HERE / "mpi_rounds.c")], check=True)
        preload = ":".join((path_of(session, "libalt_port.so"),
                            str(pathlib.Path(session.build).resolve() / "libsofthca-preload.so")))
        ranks = []
        for host in ("H1", "H2"):
            ranks += [":"] if ranks else []
            ranks += ["-np", "1", *subnet.command(host, "env", f"LD_PRELOAD={preload}",
                                                  "SOFTHCA_TRACE=path.state", program)]
        process = session.start(["mpirun", "--allow-run-as-root", "--oversubscribe", *OPENIB, *ranks],
                                env=subnet.environment(), cwd=subnet.directory)
        subnet.programs.append(process)
        expect(within(60, lambda: process.poll() is not None or (subnet.directory / "armed").exists()),
               "the ranks do not talk")
        pull(session, subnet, cables[0])
        out, err = process.communicate(timeout=60)
        expect(process.returncode == 0 and "all rounds" in out, f"status {process.returncode}\n{out}{err}")
        expect(" to=ARMED " in err and " to=MIGRATED " in err, f"nothing migrated\n{err}")


def star():
    return nets.text(['Switch 8 "S1"', '[1] "H1"[1]', '[2] "H2"[1]', '[3] "H3"[1]', ""] +
                     [line for n in (1, 2, 3) for line in (f'Hca 1 "H{n}"', f'[1] "S1"[{n}]', "")])


def one_lid_for_two(session):
    """A third host is given the LID of the second: packets go where the switch's table leads, to the
    second, and there again after the third has another LID."""
    with Subnet(session, star(), "external") as subnet:
        subnet.opensm_once("H1")
        own = {host: subnet.ok(host, "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid").strip()
               for host in ("H2", "H3")}
        for lid in (own["H2"], own["H3"]):
            subnet.ok("H1", "ibportstate", "-D", "0,1,3", "1", "lid", str(int(lid, 0)))
            expect(subnet.ok("H3", "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid").strip() == lid, lid)
            end_well(subnet, f"H3 has LID {lid}, H2 {own['H2']}", *pingpong())


def bad_keys_are_told(session):
    """Datagrams with keys that their receiver has not are lost, counted in its PortInfo, and OpenSM hears
    of it by traps 257 and 258, with who sent them to whom."""
    with Subnet(session, nets.small(), "external") as subnet:
        (subnet.directory / "partitions").write_text("Default=0x7fff: ALL=full;\nOther=0x123: ALL=full;\n")
        subnet.opensm_resident("H1", "-P", str(subnet.directory / "partitions"))
        first, second, receiver = map(int, subnet.ok("H2", path_of(session, "bad_keys"), "7").split())
        info = subnet.ok("H1", "smpquery", "-D", "portinfo", "0,1,2")
        for key in ("Pkey", "Qkey"):
            expect(re.search(rf"^{key}Violations:\.*7$", info, re.MULTILINE), info)
        # OpenSM's other line, which it prints when the trap arrives, has only 16 bits of the first QP number.
        for told in (rf'"Bad Q_Key" from .*, Q_Key 0x2222, SL 0, QP1 0x{first:x}, QP2 0x{receiver:x}, ',
                     rf'"Bad P_Key" from .*, P_Key 0x8123, SL 0, QP1 0x{second:x}, QP2 0x{receiver:x}, '):
            expect(within(30, lambda: re.search(told, subnet.log())), f"{told}\n{subnet.log()}")


def switches_enforce_partitions(session):
    """A MAD of a partition that a switch's port is not in is lost there and counted, and OpenSM hears of it by trap
    259; so do datagrams and a WRITE of such a partition."""
    with Subnet(session, nets.small(), "external") as subnet:
        guid = subnet.ok("H2", "ibstat", "-p").strip()
        (subnet.directory / "partitions").write_text(
            f"Default=0x7fff: ALL=full;\nOther=0x123: {guid}=full;\n")
        subnet.opensm_resident("H1", "-P", str(subnet.directory / "partitions"))
        info, lost = ask(subnet, [{"method": 1, "attribute": 1}, {"method": 1, "attribute": 1, "pkey_index": 1}], "H2")
        expect(info and info["status"] == 0 and lost is None, f"{info}, {lost}")
        switch = re.search("0x[0-9a-f]+", subnet.ok("H1", "ibswitches"))[0]
        counters = [subnet.ok("H1", "perfquery", "-G", switch, port) for port in ("1", "2")]
        # Once and three times again.
        expect(re.search(r"^PortXmitConstraintErrors:\.*4$", counters[0], re.MULTILINE), counters[0])
        expect(re.search(r"^Port...ConstraintErrors:\.*[^0.]", counters[1], re.MULTILINE) is None, counters[1])
        told = r"from switch LID \d+, GUID \w+ port 1 : data_valid 0x003f, LID1 (\d+), LID2 \d+, PKey 0x8123, "
        expect(within(30, lambda: re.search(told, subnet.log())), subnet.log())
        lid = int(subnet.ok("H1", "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid"), 0)
        sender = int(subnet.ok("H2", path_of(session, "bad_keys"), "7", str(lid)))
        # Seven, and the WRITE once and once again.
        out = subnet.ok("H1", "perfquery", "-G", switch, "1")
        expect(re.search(r"^PortXmitConstraintErrors:\.*13$", out, re.MULTILINE), out)
        told = rf"port 1 : data_valid 0x003f, LID1 \d+, LID2 {lid}, PKey 0x8123, SL 0, QP1 0x{sender:x}, "
        expect(within(30, lambda: re.search(told, subnet.log())), f"{told}\n{subnet.log()}")


def limited_members_reach_full_ones(session):
    """The switch's ports, to which OpenSM gives the keys of the ports behind them, let limited members pass; who is
    limited itself does not hear them."""
    with Subnet(session, star(), "external") as subnet:
        (subnet.directory / "partitions").write_text("Default=0x7fff: ALL, SELF=full;\n")
        subnet.opensm_resident("H1", "-P", str(subnet.directory / "partitions"))
        for host, key in ("H1", "0xffff"), ("H2", "0x7fff"), ("H3", "0x7fff"):
            found = subnet.ok(host, "cat", "/sys/class/infiniband/mlx5_0/ports/1/pkeys/0").strip()
            expect(found == key, f"{host} has {found}")
        # OpenSM tells a limited member of itself and of full members.
        found = sorted(re.findall(r"NodeDescription\.*(.*)", subnet.ok("H2", "saquery", "NR")))
        expect(found == ["H1", "H2"], f"the SA tells H2 of {found}")
        lids = [str(int(subnet.ok(host, "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid"), 0)) for host in ("H1", "H3")]
        subnet.ok("H2", "perfquery", lids[0], "1")
        expect(subnet.run("H2", "perfquery", "-t", "200", lids[1], "1").status != 0, "limited members hear each other")
        switch = re.search("0x[0-9a-f]+", subnet.ok("H1", "ibswitches"))[0]
        for port in "123":
            counters = subnet.ok("H1", "perfquery", "-G", switch, port)
            expect(re.search(r"^Port...ConstraintErrors:\.*[^0.]", counters, re.MULTILINE) is None, counters)


def cases():
    return [(f"data: {test.__name__.replace('_', ' ')}", test) for test in (
        every_port_counts, links_have_mtus, groups_reach_those_who_join,
        levels_are_told_apart, one_lid_for_two, bad_keys_are_told,
        switches_enforce_partitions, limited_members_reach_full_ones, paths_migrate,
        open_mpi_migrates)]
