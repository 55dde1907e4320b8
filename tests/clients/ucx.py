# SPDX-License-Identifier: BSD-2-Clause
"""UCX over the devices: its verbs transports (rc_v, ud_v) and its own, which make their queues by
DEVX and ring doorbells by themselves (rc_x, ud_x, dc_x).

UCX looks at the device's model before it offers the latter, hence --model.  ucx_perftest does not
look at the data; two ranks of MPI do."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import Skip, expect, only_long, story_of

MODEL = ["--model", "connectx-7"]
TRANSPORTS = {"rc_v": "rc_verbs", "ud_v": "ud_verbs", "rc_x": "rc_mlx5", "ud_x": "ud_mlx5",
              "dc_x": "dc_mlx5"}
PORTS = {"ib": "mlx5_0:1", "roce": "mlx5_1:1"}
# These ask for compressed completions: the first up to UCX 1.13, the others, one for each direction, later.
ZIPPING = ("UCX_IB_CQE_ZIPPING_ENABLE=y", "UCX_IB_TX_CQE_ZIP_ENABLE=y", "UCX_IB_RX_CQE_ZIP_ENABLE=y")
# Test, bytes, iterations: short, eager and rendezvous messages, RMA, atomics.
RUNS = [("tag_lat", 8, 200), ("tag_bw", 4096, 500), ("tag_bw", 1 << 20, 20),
        ("ucp_put_lat", 8, 100), ("ucp_get", 65536, 50), ("ucp_fadd", 8, 50)]


def needs_ib(session):
    """Debian's 1.23 of sid has modules for GPUs and none for InfiniBand."""
    modules = re.search(r'#define uct_MODULES\s+"(.*)"', session.call("ucx_info", "-b").out)
    if modules and "ib" not in modules.group(1).split(":"):
        raise Skip(f"this UCX was built without InfiniBand (its modules are {modules.group(1)})")


def offered(session):
    needs_ib(session)
    result = session.tool("run", *MODEL, "--", "ucx_info", "-d")
    expect(result.status == 0, f"status {result.status}\n{result.text()}")
    found = set(re.findall(r"Transport: (\w+)\n#\s+Device: (\S+)", result.out))
    missing = {(t, p) for t in TRANSPORTS.values() for p in PORTS.values()} - found
    expect(not missing, f"not offered: {sorted(missing)}\n{result.text()}")


def perftest_pair(session, argv, run_options):
    """Two of them, each with a terminal as standard input: from 1.18 on ucx_perftest ends without one."""
    needs_ib(session)
    ours, theirs = os.openpty()
    try:
        return session.pair(argv, argv, run_options=run_options, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def good_pair(results):
    expect(all(result.status == 0 and "ERROR" not in result.text() for result in results),
           story_of(dict(zip(("server", "client"), results))))


def transfer(transport, port, name, size, count):
    def test(session):
        argv = ["env", f"UCX_TLS={transport},self", f"UCX_NET_DEVICES={port}", "ucx_perftest",
                "-t", name, "-s", str(size), "-n", str(count), "-w", "5", "-f"]
        results = perftest_pair(session, argv, MODEL)
        good_pair(results)
        rows = re.findall(rf"^\s+{count}\s+[\d.]+\s", results[1].out, re.M)
        expect(rows, f"no row of figures for {count} iterations\n{results[1].text()}")
    return test


def zipped(session, transport, points, *before):
    """What the two of a stream of messages whose completions may be compressed say of these trace points, in a file: a
    pipe that nobody reads would stop them."""
    count = 5000
    with tempfile.NamedTemporaryFile(mode="r", errors="replace") as log:
        argv = ["env", f"SOFTHCA_LOG_FILE={log.name}", f"UCX_TLS={transport},self", f"UCX_NET_DEVICES={PORTS['ib']}",
                *ZIPPING, *before, "ucx_perftest", "-t", "tag_bw", "-s", "8", "-n", str(count),
                "-w", "5", "-f"]
        results = perftest_pair(session, argv, [*MODEL, "--trace", points])
        good_pair(results)
        expect(re.findall(rf"^\s+{count}\s+[\d.]+\s", results[1].out, re.M), results[1].out)
        return log.read()


def compressed(transport):
    """Completions of a stream of messages are compressed, and UCX takes them apart."""
    def test(session):
        version = re.search(r"[Vv]ersion:? (\d+)\.(\d+)", session.call("ucx_info", "-v").out)
        expect(version, "ucx_info -v tells no version")
        if transport == "ud_x" and tuple(map(int, version.groups())) >= (1, 18):
            raise Skip(f"UCX {'.'.join(version.groups())} does not ask for compressed completions of UD")
        expect("compressed" in zipped(session, transport, "cq.compressed"), "no completions were compressed")
    return test


PINGPONG = pathlib.Path(__file__).resolve().parents[2] / "bench/pingpong.c"


def ranks(transport, size, count):
    """Two ranks that talk in turns, and check what they get."""
    def test(session):
        for program in ("mpicc", "mpirun"):
            if not shutil.which(program):
                raise Skip(f"{program} is not there")
        needs_ib(session)
        with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
            program = f"{directory}/pingpong"
            subprocess.run(["mpicc", "-O2", "-o", program, str(PINGPONG)], check=True)
            result = session.tool(
                "run", *MODEL, "--", "mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2",
                "--mca", "pml", "ucx", "-x", f"UCX_TLS={transport},self", "-x",
                f"UCX_NET_DEVICES={PORTS['ib']}", program, str(size), str(count))
        expect(result.status == 0 and "pingpong " in result.out,
               f"status {result.status}\n{result.text()}")
    return test


def cases():
    yield "ucx_info offers its transports", offered
    for transport in ("rc_x", "ud_x", "dc_x"):
        yield f"ucx_perftest {transport} with compressed completions", compressed(transport)
    for transport in TRANSPORTS:
        for link, port in PORTS.items():
            for name, size, count in RUNS:
                yield (f"ucx_perftest {link} {transport} {name} {size}",
                       transfer(transport, port, name, size, count))
    for transport in ("rc_x", "ud_x", "dc_x"):
        test = ranks(transport, 8, 500)
        yield f"MPI over {transport} in turns", test if transport == "rc_x" else only_long(test)
