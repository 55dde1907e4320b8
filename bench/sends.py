# SPDX-License-Identifier: BSD-2-Clause
"""Rows of SENDs between two processes, in the shapes that programs have: one thread, another one that
sleeps, two that each have a queue pair; from and to memory of two kinds (bench/sends).  Rates stand beside
those of WRITEs to shared memory in the same round."""
import shapes
from table import Row

THREADS = {"single": "1 thread", "sleeper": "and 1 asleep", "pairs": "2 threads, 2 QPs"}
MEMORIES = ("private", "shared")


def rows(bench):
    def of(name, threads, memory):
        return lambda: bench.lanes("sends", threads, memory)[name]

    def writes(name):
        return lambda: bench.lanes("onesided", "single", "shared")[name]

    def floor(measure):
        return lambda: measure(bench)
    tcp, spin = shapes.TCP
    for memory in MEMORIES:
        for threads, text in THREADS.items():
            for name, what, unit, peer, measure, target in (
                    ("lat", "SEND 8 B", "us", tcp, floor(spin), ("<=", 1)),
                    ("list", "SEND 8 B, lists of 16", "Mmsg/s", "WRITEs, shared, 1 thread", writes("list"),
                     (">=", 0.5)),
                    ("single", "SEND 8 B, one by one", "Mmsg/s", "WRITEs, shared, 1 thread",
                     writes("single"), (">=", 0.5)),
                    ("block", "SEND 64 KiB", "MiB/s", "the kernel's copy",
                     floor(shapes.floor("copy_64")), (">=", 0.8)),
                    ("large", "SEND 1 MiB", "MiB/s", "the kernel's copy",
                     floor(shapes.floor("copy_1024")), (">=", 0.8))):
                yield Row(f"send-{memory}-{threads}-{name}", f"{what}, {memory}, {text}", unit,
                          of(f"send_{name}", threads, memory), peer, measure, target)
