# SPDX-License-Identifier: BSD-2-Clause
"""Fabrics that are machines of their own, joined by RoCE v2 over UDP: `softhca fabric tie PORT udp`."""
import shutil

import ties
from harness import Skip, only_long


def row(name, step):
    """Each step has a user and network namespace of its own, so nothing here needs root, or uses a port of this machine."""
    def test(session):
        ties.inside(session, "machines_inside.py", step)
    return f"machines: {name}", test


def many(name, step, *words, needs=()):
    """The same for steps with as many machines as the words say."""
    def test(session):
        for program in needs:
            if not shutil.which(program):
                raise Skip(f"{program} is not there")
        ties.inside(session, "machines_many.py", step, *words)
    return f"machines: {name}", test


MPI = ("mpicc", "mpirun")


def cases():
    name, whole = many("all to all of 64", "alltoall", "64", needs=MPI)
    return [row("loopback addresses", "loopback"), row("namespaces", "namespaces"), row("connections", "connections"),
            row("the network changes", "network"), row("strangers", "strangers"), row("killed", "killed"),
            row("peers in status", "peers"), row("silence explained", "explained"), row("translated addresses", "translated"),
            row("congestion", "congestion"), row("up and tied at once", "listen"), row("groups", "groups"),
            row("lossy traffic", "traffic"), row("bad words", "bad_words"),
            many("programs", "programs", needs=(*MPI, "fio", "fi_pingpong", "qperf", "ucx_perftest")),
            many("examples", "examples"), many("all to all of 8", "alltoall", "8", needs=MPI), (name, only_long(whole))]
