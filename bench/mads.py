# SPDX-License-Identifier: BSD-2-Clause
"""Rows of subnets, and how they are set up; beside ibsim with its preload library: 648 hosts below 54 switches."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import Failure, within
from table import Missing, Row

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "umad"))

import nets  # noqa: E402

LIBRARIES = ("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so",
             "/usr/lib/umad2sim/libumad2sim.so")
HOST = "H0_0"
LIMIT = 120


@contextlib.contextmanager
def workplace(topology):
    where = pathlib.Path(tempfile.mkdtemp(prefix="softhca-bench."))
    (where / "net").write_text(topology)
    try:
        yield where
    finally:
        shutil.rmtree(where, ignore_errors=True)


def timed(argv, **options):
    """Output and seconds of a program that must succeed."""
    begin = time.monotonic()
    result = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            stdin=subprocess.DEVNULL, timeout=LIMIT, **options)
    if result.returncode:
        raise Failure(f"status {result.returncode} of {' '.join(argv)}: {result.stdout[-300:]}")
    return result.stdout, time.monotonic() - begin


def log_seconds(text, words):
    """Of the day, when OpenSM's log says so for the first time."""
    stamp = re.search(rf"^\w+ +\d+ (\d+):(\d+):(\d+) (\d+) .*{words}", text, re.M)
    if not stamp:
        raise Failure(f"opensm does not say '{words}'")
    hours, minutes, seconds, microseconds = map(int, stamp.groups())
    return (hours * 60 + minutes) * 60 + seconds + microseconds * 1e-6


def sweep(prefix, where, env, name, routing=True):
    """Milliseconds of OpenSM from its start to its end; without its routing, they are less what its
    log says that this took, the first tables' way to the switches included."""
    env = {**env, "OSM_CACHE_DIR": str(where), "OSM_TMP_DIR": str(where)}
    log = where / f"{name}.log"
    level = [] if routing else ["-D", "0x07"]
    _, seconds = timed([*prefix, "opensm", "-o", "-g", "0", "-f", str(log), *level], env=env,
                       cwd=where)
    text = log.read_text(errors="replace")
    if "SUBNET UP" not in text:
        raise Failure("opensm does not say SUBNET UP")
    if not routing:
        seconds -= (log_seconds(text, "tables configured on all switches") -
                    log_seconds(text, "building routing with")) % 86400
    return seconds * 1e3


def figures(prefix, where, env, _):
    """What is measured, on whatever stands behind the device files."""
    found = {"discover": timed([*prefix, "ibnetdiscover"], env=env, cwd=where)[1] * 1e3}
    for name in ("sweep", "again"):
        found[name] = sweep(prefix, where, env, name)
    return found


def ours(bench, topology, measure):
    """What measure(prefix, where, environment, server) finds behind softhca's files."""
    tool = str(bench.build / "softhca")
    fabric = ["--fabric", "mads"]
    for needed in ("opensm", "ibnetdiscover"):
        if not shutil.which(needed, path=bench.session.env["PATH"]):
            raise Missing(f"{needed} is not there")
    with workplace(topology) as where:
        timed([tool, "fabric", "up", *fabric, "--topology", str(where / "net"), "--sm",
               "external"], env=bench.session.env)
        status = json.loads(timed([tool, "fabric", "status", *fabric, "--json"],
                                  env=bench.session.env)[0])
        try:
            return measure([tool, "run", *fabric, "--host", HOST, "--"], where, bench.session.env,
                           status["pid"])
        finally:
            timed([tool, "fabric", "down", *fabric], env=bench.session.env)


def ibsim_library():
    library = next((name for name in LIBRARIES if os.path.exists(name)), None)
    if not library or not shutil.which("ibsim"):
        raise Missing("ibsim is not there (packages ibsim-utils, libumad2sim0)")
    return library


def ibsim(bench, topology, measure):
    """The same behind ibsim's."""
    library = ibsim_library()
    with workplace(topology) as where:
        env = {**bench.session.env, "SIM_HOST": HOST, "IBSIM_SOCKNAME": where.name}
        with open(where / "log", "w") as log:
            server = subprocess.Popen(["ibsim", "-s", "-n", "-N", "15000", "-S", "300", "-P", "200000",
                                       "-L", "49152", str(where / "net")], cwd=where, env=env,
                                      stdin=subprocess.DEVNULL, stdout=log,
                                      stderr=subprocess.STDOUT, start_new_session=True)
        try:
            if not within(30, lambda: f"@{env['IBSIM_SOCKNAME']}:ctl" in
                          pathlib.Path("/proc/net/unix").read_text()):
                raise Failure("ibsim does not listen: " + (where / "log").read_text()[-200:])
            return measure(["env", f"LD_PRELOAD={library}"], where, env, server.pid)
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def subnet(bench):
    def of(name):
        return (lambda: bench.once("mads", lambda: ours(bench, nets.fat_tree(), figures))[name],
                lambda: bench.once("mads-ibsim",
                                   lambda: ibsim(bench, nets.fat_tree(), figures))[name])

    def row(key, what, name):
        mine, peer = of(name)
        return Row(key, what, "ms", mine, "ibsim", peer, ("<=", 1.0), rounds=3)
    return [row("discover-648", "ibnetdiscover, 648 hosts", "discover"),
            row("sweep-648", "OpenSM's first sweep, 648 hosts", "sweep"),
            row("sweep-648-again", "the same again", "again")]
