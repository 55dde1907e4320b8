# SPDX-License-Identifier: BSD-2-Clause
"""Rows of UCX's own mlx5 transports, and of MPI over them, beside a fault and its signal: each of their
doorbells is one.  UCX_TLS says which; without it UCX takes shared memory and never meets the device.
Each rank is bound to a processor and spins there (docs/ucx.md)."""
import pathlib
import shutil
import tempfile

from table import Missing, Row

HERE = pathlib.Path(__file__).resolve().parent
TRANSPORTS = ("rc_x", "ud_x", "dc_x")
# Those of verbs, which ring the device by calls, and which of the device's own does the same.
VERBS = {"rc_v": "rc_x", "ud_v": "ud_x"}
# Devices of a fabric are of one model, and UCX looks at it.
RUN = ("--fabric", "ucx", "--model", "connectx-7", "--")
ROUNDS = 5000


def mpi(bench, prefix, transport):
    """The figures of half a round trip between two ranks, each bound to a processor."""
    def run():
        for program in ("mpirun", "mpicc"):
            if not shutil.which(program):
                raise Missing(f"{program} is not there (packages openmpi-bin, libopenmpi-dev)")
        with tempfile.TemporaryDirectory(prefix="softhca-bench.") as directory:
            program = f"{directory}/pingpong"
            bench.plain(["mpicc", "-O2", "-o", program, str(HERE / "pingpong.c")])
            return bench.plain([*prefix, "mpirun", "--allow-run-as-root", "-np", "2", "--bind-to",
                                "core", "--mca", "pml", "ucx", "-x", f"UCX_TLS={transport},self",
                                "-x", f"UCX_NET_DEVICES={bench.device}:1", program, "8", str(ROUNDS)])
    return bench.once(("mpi pingpong", transport), run)


def rows(bench):
    def floor():
        path = str(bench.build / "bench/fault")
        return bench.once("fault", lambda: bench.plain([path]))["busy_p50"]

    prefix = [*bench.softhca[:2], *RUN]

    def tag_lat(transport, column):
        return bench.once(("tag_lat", transport), lambda: bench.ucx_over(
            prefix, transport, ROUNDS))[column]

    def half(transport, name):
        return mpi(bench, prefix, transport)[name]

    def pair(transport, key, peer_name, tag_peer, half_peer, target):
        yield Row(f"ucx-{key}", f"ucx_perftest tag_lat 8 B, UCX_TLS={transport}", "us",
                  lambda: tag_lat(transport, 1), peer_name, tag_peer, target,
                  lambda: f"mean {tag_lat(transport, 3):.1f} us", rounds=3)
        yield Row(f"ucx-mpi-{key}", f"MPI, half a round trip of 8 B, UCX_TLS={transport}", "us",
                  lambda: half(transport, "pingpong"), peer_name, half_peer, target,
                  lambda: f"mean {half(transport, 'pingpong_mean'):.1f} us", rounds=3)
    for transport in TRANSPORTS:
        yield from pair(transport, transport[:2], "a fault and its signal", floor, floor, ("<=", 3))
    for transport, own in VERBS.items():
        yield from pair(transport, f"{transport[:2]}-verbs", f"the same over {own}",
                        lambda own=own: tag_lat(own, 1), lambda own=own: half(own, "pingpong"),
                        ("<=", 1))
