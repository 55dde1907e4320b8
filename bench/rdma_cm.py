# SPDX-License-Identifier: BSD-2-Clause
"""Connections by rdma_cm, beside those of TCP through the loopback interface."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from harness import Failure, within
from table import Missing, Row

CONNECTIONS = 1000
SERVER = "127.18.0.2"  # host1's mlx5_1; later versions of cmtime connect there by TCP, too
STEPS = ("create id", "resolve addr", "resolve route", "create qp", "connect")
START_S = 20


def ended(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def listens(tool, fabric, pid, env):
    shown = subprocess.run([tool, "status", *fabric, "--json"], env=env, capture_output=True, text=True, check=False)
    programs = json.loads(shown.stdout)["programs"] if shown.returncode == 0 else ()
    return any(c["state"] == "LISTEN" for p in programs if p["pid"] == pid for c in p["connections"])


def steps(bench):
    """Milliseconds of each step of cmtime, for all connections: a program on each of two hosts."""
    if not shutil.which("cmtime"):
        raise Missing("cmtime is not there (package rdmacm-utils)")
    env, fabric = bench.session.env, ("--fabric", "connections")
    tool = bench.softhca[0]
    run = [tool, "run", *fabric]
    count = ("-c", str(CONNECTIONS))
    server = subprocess.Popen([*run, "--", "cmtime", *count], env=env, start_new_session=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    try:
        if not within(START_S, lambda: listens(tool, fabric, server.pid, env)):
            raise Failure("cmtime does not listen")
        client = subprocess.run([*run, "--host", "host2", "--", "cmtime", *count, "-s", SERVER], env=env,
                                capture_output=True, text=True, timeout=120, check=False)
    finally:
        ended(server)
    found = dict(re.findall(r"^([a-z ]+?) *: +([\d.]+) ", client.stdout, re.M))
    if client.returncode or not set(STEPS) <= set(found):
        raise Failure(f"cmtime: status {client.returncode} {client.stdout[-300:]}")
    return {name: float(value) for name, value in found.items()}


def tcp():
    """Connections a second of a program to another one that accepts each."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    child = os.fork()
    if not child:
        held = []
        while len(held) < CONNECTIONS:
            held.append(listener.accept()[0])
        os._exit(0)
    begin = time.monotonic()
    held = [socket.create_connection(listener.getsockname()) for _ in range(CONNECTIONS)]
    os.waitpid(child, 0)
    rate = CONNECTIONS / (time.monotonic() - begin)
    for one in (*held, listener):
        one.close()
    return rate


def rows(bench):
    def found():
        return bench.once("cmtime", lambda: steps(bench))

    def shown():
        return ", ".join(f"{name} {found()[name]:.0f}" for name in (*STEPS, "disconnect")) + " ms"
    return [Row("connect-rate", f"{CONNECTIONS} connections by rdma_cm (cmtime), all steps", "1/s",
                lambda: CONNECTIONS / (sum(found()[name] for name in STEPS) / 1e3), "TCP, loopback", tcp,
                None, shown, rounds=3)]
