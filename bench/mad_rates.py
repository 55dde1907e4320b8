# SPDX-License-Identifier: BSD-2-Clause
"""Rows of MADs a second and of the processor that they take, beside ibsim with its preload library.
Both stand at the same time and take turns at each number in flight, the program on one CPU and what is
behind its files on another."""
import os
import pathlib
import re

import mads
import nets
from table import Missing, Row

COUNTS = {1: 8000, 2: 12000, 4: 24000, 16: 100000}  # by the number in flight
ROUTE = ["1", "19", "2", "1"]  # through a leaf, a spine and another leaf to its first host
TURNS = 3  # in a round; the best counts


def nanoseconds(server):
    """That it has run, as the scheduler counts them."""
    tasks = pathlib.Path(f"/proc/{server}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def pin(server, cpu):
    for task in pathlib.Path(f"/proc/{server}/task").iterdir():
        os.sched_setaffinity(int(task.name), {cpu})


def turn(program, place, window):
    """Thousands a second, and microseconds of processor behind the files and on both sides."""
    prefix, where, env, server = place
    cpus = sorted(os.sched_getaffinity(0))
    pin(server, cpus[0])
    before = nanoseconds(server)
    count = COUNTS[window]
    output, _ = mads.timed(["taskset", "-c", str(cpus[-1]), *prefix, program, str(window), str(count),
                            *ROUTE], env=env, cwd=where)
    behind = (nanoseconds(server) - before) / count / 1e3
    rate, mine = (float(re.search(rf"^{word} ([\d.]+)", output, re.M)[1])
                  for word in ("rate", "processor"))
    return rate, behind, behind + mine


def measure(bench):
    """By side and number in flight, what a turn says."""
    program = str(bench.build / "bench/mads")
    topology = nets.fat_tree()
    found = {"ours": {}, "ibsim": {}}

    def take_turns(**places):
        for window in COUNTS:
            for _ in range(TURNS):
                for side, place in places.items():
                    now = turn(program, place, window)
                    best = found[side].get(window, now)
                    found[side][window] = (max(best[0], now[0]), *map(min, best[1:], now[1:]))
        return found
    try:
        mads.ibsim_library()
    except Missing:
        return mads.ours(bench, topology, lambda *mine: take_turns(ours=mine))
    return mads.ours(bench, topology, lambda *mine: mads.ibsim(
        bench, topology, lambda *theirs: take_turns(ours=mine, ibsim=theirs)))


def rows(bench):
    def side(name, window, column):
        figures = bench.once("mad-rates", lambda: measure(bench))[name]
        if not figures:
            mads.ibsim_library()
        return figures[window][column]

    def row(key, what, unit, window, column, target):
        return Row(key, what, unit, lambda: side("ours", window, column), "ibsim",
                   lambda: side("ibsim", window, column), target)
    return [*(row(f"mad-rate-{n}", f"MADs over 4 hops, {n} in flight", "k/s", n, 0, (">=", 1.0))
              for n in COUNTS),
            *(row(f"mad-cpu-{n}", f"processor for one, {n} in flight, behind files", "us", n, 1,
                  ("<=", 1.0)) for n in COUNTS),
            *(row(f"mad-cpu-all-{n}", f"the same, with the program's, {n} in flight", "us", n, 2,
                  ("<=", 1.0)) for n in COUNTS)]
