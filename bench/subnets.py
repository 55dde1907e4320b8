# SPDX-License-Identifier: BSD-2-Clause
"""Rows of large subnets, beside ibsim, and of messages; a MAD beside a message through a socketpair."""
import re
import subprocess

import mads
import nets
from table import Row

# Two levels: leaves, spines, hosts of a leaf, ports of a switch.
SIZES = {2048: (64, 32, 32, 64), 11664: (108, 108, 108, 216)}
MESSAGE = 8 << 20
MESSAGES = 5
ROUND_TRIPS = 20000


def sizes(bench):
    """Each in a group of its own: a round takes long."""
    return [size(bench, hosts) for hosts in SIZES]


def size(bench, hosts):
    topology = nets.fat_tree(*SIZES[hosts])

    def measure(prefix, where, env, _):
        return {"discover": mads.timed([*prefix, "ibnetdiscover"], env=env, cwd=where)[1] * 1e3,
                "sweep": mads.sweep(prefix, where, env, "sweep", routing=False)}

    def row(name, what):
        return Row(f"{name}-{hosts}", f"{what}, {hosts} hosts", "ms",
                   lambda: bench.once(f"{hosts}", lambda: mads.ours(bench, topology, measure))[name],
                   "ibsim",
                   lambda: bench.once(f"{hosts}-ibsim",
                                      lambda: mads.ibsim(bench, topology, measure))[name],
                   ("<=", 1.0), rounds=1)
    return [row("discover", "ibnetdiscover"), row("sweep", "OpenSM but for its routing")]


def message_rate(bench):
    """MiB a second of an RMPP message between hosts with three switches between them."""
    program = str(bench.build / "bench/messages")

    def measure(prefix, where, env, _):
        other = [word if word != mads.HOST else "H2" for word in prefix]
        server = subprocess.Popen([*other, program, "serve", str(MESSAGE)], env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ask = [*prefix, program, "ask"]
        try:
            mads.timed([*prefix, "opensm", "-o", "-g", "0", "-f", str(where / "log")], cwd=where,
                       env={**env, "OSM_CACHE_DIR": str(where), "OSM_TMP_DIR": str(where)})
            lid = mads.timed([*other, "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid"], env=env)[0]
            output, _ = mads.timed([*ask, str(MESSAGE), str(int(lid, 0)), str(MESSAGES)], env=env)
            return (MESSAGE >> 20) / float(re.search(r"seconds ([\d.]+)", output)[1])
        finally:
            server.kill()
            server.wait()
    return mads.ours(bench, nets.chain(3).replace('"H1"', f'"{mads.HOST}"'), measure)


def round_trip(bench):
    """Microseconds of a MAD to the own port and back."""
    def measure(prefix, where, env, _):
        output, _ = mads.timed([*prefix, str(bench.build / "bench/mads"), "1", str(ROUND_TRIPS)],
                               env=env, cwd=where)
        return 1e3 / float(re.search(r"^rate ([\d.]+)", output, re.M)[1])
    return mads.ours(bench, nets.small().replace('"H1"', f'"{mads.HOST}"'), measure)


def socketpair(bench):
    output, _ = mads.timed([str(bench.build / "bench/sockets"), str(ROUND_TRIPS)])
    return float(output)


def messages(bench):
    return [Row("mad-message", "a message of 8 MiB over three switches", "MiB/s",
                lambda: message_rate(bench), "", None, (">=", 40)),
            Row("mad-round-trip", "a MAD to the own port and back", "us",
                lambda: round_trip(bench), "a socketpair",
                lambda: socketpair(bench), ("<=", 2.0))]
