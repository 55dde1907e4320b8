# SPDX-License-Identifier: BSD-2-Clause
"""Rows of UCX's own mlx5 transports, and of MPI over them, beside a fault and its signal: each of their
doorbells is one.  UCX_TLS says which; without it UCX takes shared memory and never meets the device.
Each rank is bound to a processor and spins there, so the devices' threads are let out (docs/ucx.md)."""
import pathlib
import shutil
import tempfile

from table import Missing, Row

HERE = pathlib.Path(__file__).resolve().parent
TRANSPORTS = ("rc_x", "ud_x", "dc_x")
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
                                "-x", f"UCX_NET_DEVICES={bench.device}:1", "-x",
                                "SOFTHCA_PROCESSORS=peers", program, "8", str(ROUNDS)])
    return bench.once(("mpi pingpong", transport), run)


def rows(bench):
    def floor():
        path = str(bench.build / "bench/fault")
        return bench.once("fault", lambda: bench.plain([path]))["busy_p50"]

    def row(key, what, measure, note):
        return Row(key, what, "us", measure, "a fault and its signal", floor, ("<=", 3), note,
                   rounds=3)
    prefix = [*bench.softhca[:2], *RUN]
    for transport in TRANSPORTS:
        def tag_lat(column, transport=transport):
            return bench.once(("tag_lat", transport), lambda: bench.ucx_over(
                prefix, transport, ROUNDS))[column]

        def half(name, transport=transport):
            return mpi(bench, prefix, transport)[name]
        yield row(f"ucx-{transport[:2]}", f"ucx_perftest tag_lat 8 B, UCX_TLS={transport}",
                  lambda tag_lat=tag_lat: tag_lat(1),
                  lambda tag_lat=tag_lat: f"mean {tag_lat(3):.1f} us")
        yield row(f"ucx-mpi-{transport[:2]}", f"MPI, half a round trip of 8 B, UCX_TLS={transport}",
                  lambda half=half: half("pingpong"),
                  lambda half=half: f"mean {half('pingpong_mean'):.1f} us")
