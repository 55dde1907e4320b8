# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the shapes that programs have: kinds of queue pairs, shared receive queues, completion
channels, a thread that sleeps, a third process that spins, kinds of memory, many ranks of MPI.  Other
people's programs measure; a row is a line of a table."""
import contextlib
import dataclasses
import pathlib
import re
import shutil
import subprocess
import tempfile

from table import Missing, Row

HERE = pathlib.Path(__file__).resolve().parent
TYPICAL, MEAN, RATE, BANDWIDTH = 4, 5, 4, 3  # columns of perftest's *_lat and *_bw
LATENCY_RUNS, RATE_RUNS = 5000, 1000000
BLOCKS = {65536: 40000, 1 << 20: 8000}
RANKS = 16
ALLTOALLS = 200, 500  # the first rounds, as many as the OSU benchmarks warm up with, and the others
FILE_BYTES = 1 << 24
SHARED = "/dev/shm"  # files there are memory that peers map


@dataclasses.dataclass(frozen=True)
class Shape:
    """How a program of perftest is run.  sleeper: it has a second thread, which sleeps; spinner: a
    third process wants a processor all the time; directory: its buffers are a file there."""
    argv: tuple
    column: int
    sleeper: bool = False
    spinner: bool = False
    directory: str = ""

    def measure(self, bench):
        def run():
            if "--use_hugepages" in self.argv and not huge_pages():
                raise Missing("there are no huge pages (sysctl vm.nr_hugepages)")
            argv = [*self.argv]
            with contextlib.ExitStack() as stack:
                if self.spinner:
                    stack.enter_context(spinning())
                if self.directory:
                    files = stack.enter_context(
                        tempfile.TemporaryDirectory(prefix="softhca-bench.", dir=self.directory))
                    for role in ("server", "client"):
                        with open(f"{files}/{role}", "wb") as file:
                            file.truncate(FILE_BYTES)
                    argv.append(f"--mmap={files}/{{role}}")
                return bench.perftest(argv, self.sleeper)
        return bench.once(dataclasses.replace(self, column=0), run)[self.column]


def huge_pages():
    return int(pathlib.Path("/proc/sys/vm/nr_hugepages").read_text())


@contextlib.contextmanager
def spinning():
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def latency(way, *options, size=8, column=TYPICAL, **how):
    argv = (f"ib_{way}_lat", "-n", str(LATENCY_RUNS), *options)
    # An atomic has one size.
    return Shape(argv + (() if way == "atomic" else ("-s", str(size))), column, **how)


def rate(way, *options, **how):
    return Shape((f"ib_{way}_bw", "-s", "8", "-n", str(RATE_RUNS), *options), RATE, **how)


def bandwidth(way, size, *options, **how):
    return Shape((f"ib_{way}_bw", "-s", str(size), "-n", str(BLOCKS[size]), *options), BANDWIDTH,
                 **how)


# ---- floors ----

def floor(name, times=1):
    def measure(bench):
        path = str(bench.build / "bench/floors")
        return bench.once(("floor", name), lambda: bench.plain([path, name]))[name] * times
    return measure


TCP = ("TCP, both sides spin", floor("tcp"))
TCP_BOTH_WAYS = ("TCP, both sides spin, both ways", floor("tcp", 2))
PIPE = ("a wake-up through a pipe", floor("pipe"))
FUTEX_BOTH_WAYS = ("a futex, there and back", floor("futex", 2))


# ---- the tables: key, what, how, peer, target ----

SLEEPERS = {"": False, "-sleeper": True}
MEMORIES = {"private": "", "shared": SHARED}


def words(sleeper):
    return ", and 1 asleep" if sleeper else ""


def kinds():
    """Writes of other transports beside those of RC to the same memory; what else they can."""
    for kind in ("UC", "XRC", "DC"):
        for memory, directory in MEMORIES.items():
            yield (f"{kind.lower()}-{memory}", f"ib_write_lat 8 B, {kind}, {memory}", "us",
                   latency("write", "-c", kind, directory=directory), "RC, the same memory",
                   latency("write", directory=directory), ("<=", 2))
    for kind in ("UC", "XRC", "DC"):
        for name, options, text in (("", (), ""), ("-list", ("-l", "16"), ", lists of 16")):
            yield (f"{kind.lower()}-rate{name}", f"ib_write_bw 8 B, {kind}, shared memory{text}", "Mmsg/s",
                   rate("write", "-c", kind, *options, directory=SHARED), "RC, the same memory",
                   rate("write", *options, directory=SHARED), (">=", 0.5))
    for kind in ("UC", "UD", "XRC", "DC"):
        yield (f"{kind.lower()}-send", f"ib_send_lat 8 B, {kind}", "us",
               latency("send", "-c", kind), *TCP, ("<=", 1))
    for kind in ("XRC", "DC"):
        for way in ("read", "atomic"):
            yield (f"{kind.lower()}-{way}", f"ib_{way}_lat 8 B, {kind}", "us",
                   latency(way, "-c", kind), *TCP_BOTH_WAYS, ("<=", 1))


def latencies():
    """One thread, and one more that sleeps, to private memory."""
    for suffix, sleeper in SLEEPERS.items():
        yield (f"lat-write{suffix}", f"ib_write_lat 8 B{words(sleeper)}", "us",
               latency("write", sleeper=sleeper), *TCP, ("<=", 1))
        yield (f"lat-send{suffix}", f"ib_send_lat 8 B{words(sleeper)}", "us",
               latency("send", sleeper=sleeper), *TCP, ("<=", 1))
        yield (f"lat-send-srq{suffix}", f"ib_send_lat 8 B, SRQ{words(sleeper)}", "us",
               latency("send", "--use-srq", sleeper=sleeper), *TCP, ("<=", 1))
        yield (f"lat-read{suffix}", f"ib_read_lat 8 B{words(sleeper)}", "us",
               latency("read", sleeper=sleeper), *TCP_BOTH_WAYS, ("<=", 1))
        yield (f"lat-atomic{suffix}", f"ib_atomic_lat, target asleep{words(sleeper)}", "us",
               latency("atomic", sleeper=sleeper), *FUTEX_BOTH_WAYS, ("<=", 1.5))


def rates():
    for suffix, sleeper in SLEEPERS.items():
        for name, options in (("", ()), ("-list", ("-l", "16"))):
            text = f"{', lists of 16' if name else ''}{words(sleeper)}"
            write = rate("write", *options, directory=SHARED)
            peer = "ib_write_bw, shared memory"
            yield (f"rate-send{name}{suffix}", f"ib_send_bw 8 B{text}", "Mmsg/s",
                   rate("send", *options, sleeper=sleeper), peer, write, (">=", 0.5))
            yield (f"rate-srq{name}{suffix}", f"ib_send_bw 8 B, SRQ{text}", "Mmsg/s",
                   rate("send", "--use-srq", *options, sleeper=sleeper), peer, write,
                   (">=", 0.35))
    # What a ring in shared memory comes to, as libmlx5 takes a lock for each request and completion.
    yield ("floor-send", "lines between two processes, a lock for each", "Mmsg/s", floor("single"),
           "ib_write_bw, shared memory", rate("write", directory=SHARED), None)
    yield ("floor-send-unlocked", "the same without locks", "Mmsg/s", floor("single_unlocked"),
           "ib_write_bw, shared memory", rate("write", directory=SHARED), None)


def blocks():
    for size, text in ((65536, "64 KiB"), (1 << 20, "1 MiB")):
        for way in ("write", "read", "send"):
            for suffix, sleeper in SLEEPERS.items():
                yield (f"block-{way}-{size >> 10}{suffix}", f"ib_{way}_bw {text}{words(sleeper)}",
                       "MiB/s", bandwidth(way, size, sleeper=sleeper), "the kernel's copy",
                       floor(f"copy_{size >> 10}"), (">=", 0.8))


def atomics():
    """While the target polls, in the shapes of its threads."""
    def of(shape, memory, name):
        return lambda bench: bench.onesided(shape, memory, name)
    for memory in ("private", "shared"):
        for shape, text in (("single", ""), ("sleeper", words(True)), ("pairs", ", 2 threads, 2 QPs")):
            for name, polls, peer in (
                    ("atomic_lat", "CQ", "the kernel's READ alone"),
                    ("atomic_word_lat", "memory", "a thread of the target, woken")):
                yield (f"{name[:-4].replace('_', '-')}-{memory}-{shape}",
                       f"FETCH_ADD, {memory}, target polls its {polls}{text}", "us",
                       of(shape, memory, name), peer,
                       of(shape, memory, f"floor_{name}"), ("<=", 1.0), True)
            # On private memory each is a turn of the target's, and a READ is not.
            target = None if memory == "private" else (">=", 1)
            for name, how in (("atomic_list", "lists of 16"), ("atomic_single", "one by one")):
                yield (f"{name.replace('_', '-')}-{memory}-{shape}",
                       f"FETCH_ADD, {memory}, {how}{text}", "Mmsg/s", of(shape, memory, name),
                       "the kernel's READ alone", of(shape, memory, f"floor_{name}"), target)


def frames():
    for size in (64, 1500):
        def of(where, size=size):
            # The first InfiniBand device has no frames.
            return lambda bench: bench.program("frames", where, device="mlx5_1")[f"frame_{size}"]
        yield (f"frame-{size}", f"raw Ethernet, {size} B, between two processes", "us", of("far"),
               "in one process", of("near"), ("<=", 1.3))
        yield (f"floor-frame-{size}", f"{size} B through shared memory and no more", "us",
               floor(f"frame_{size}"), "frames in one process", of("near"), None)


def signed_reads():
    for kind in ("t10dif", "crc32c", "crc32", "crc64"):
        for block in (512, 4096):
            def of(way, name=f"{kind}_{block}"):
                return lambda bench: bench.program("signed", "far")[f"{name}_{way}"]
            yield (f"sig-read-{kind}-{block}", f"READ 1 MiB, {kind} of {block} B, 2 processes",
                   "MB/s", of("fetch"), "WRITE of the same", of("strip"), (">=", 0.8))


def memories():
    """Kinds of memory besides the plain private one."""
    for key, text, options, directory in (
            ("huge", "huge pages", ("--use_hugepages",), ""),
            ("shm", "a file of shared memory", (), SHARED),
            ("file", "a file of a disk", (), "/var/tmp")):
        yield (f"{key}-write", f"ib_write_lat 8 B, {text}", "us",
               latency("write", *options, directory=directory), *TCP, ("<=", 1))
    for way, peer in (("read", TCP_BOTH_WAYS), ("send", TCP)):
        yield (f"huge-{way}", f"ib_{way}_lat 8 B, huge pages", "us",
               latency(way, "--use_hugepages"), *peer, ("<=", 1))
    yield ("huge-block-write", "ib_write_bw 1 MiB, huge pages", "MiB/s",
           bandwidth("write", 1 << 20, "--use_hugepages"), "the kernel's copy", floor("copy_1024"),
           (">=", 0.8))
    for name, way, peer in (("write_lat", "WRITE 8 B polled", TCP), ("read_lat", "READ 8 B", TCP_BOTH_WAYS),
                            ("atomic_lat", "FETCH_ADD", TCP_BOTH_WAYS)):
        yield (f"stack-{name[:-4]}", f"{way}, the stack", "us",
               lambda bench, name=name: bench.onesided("single", "stack", name), *peer, ("<=", 1))


def thirds():
    """What it costs that a third process wants a processor: times as long as without, on average."""
    def slowdown(shape):
        def measure(bench):
            return (dataclasses.replace(shape, spinner=True).measure(bench) /
                    shape.measure(bench))
        return measure

    def tcp(bench):
        path = str(bench.build / "bench/floors")
        with spinning():
            crowded = bench.plain([path, "tcp"])["tcp"]
        return crowded / floor("tcp")(bench)
    for key, text, shape in (
            ("write", "ib_write_lat 8 B", latency("write", column=MEAN)),
            ("write-sleeper", "ib_write_lat 8 B, and 1 asleep",
             latency("write", column=MEAN, sleeper=True)),
            ("write-shared", "ib_write_lat 8 B, shared memory",
             latency("write", column=MEAN, directory=SHARED)),
            ("send", "ib_send_lat 8 B", latency("send", column=MEAN)),
            ("uc", "ib_write_lat 8 B, UC", latency("write", "-c", "UC", column=MEAN))):
        yield (f"third-{key}", f"a third process spins: {text}", "x", slowdown(shape),
               "TCP, both sides spin", tcp, ("<=", 1.5))


def channels():
    """ibv_*_pingpong sleeps in ibv_get_cq_event; perftest's programs mix up events of two queues."""
    def pingpong(program, waits_by=None):
        def measure(bench):
            output = bench.pingpong([program, "-e", "-s", "8", "-n", "5000", "-d", bench.device],
                                    waits_by)
            return float(re.search(r"= ([\d.]+) usec/iter", output)[1]) / 2
        return measure
    for kind in ("rc", "uc", "ud", "srq"):
        options = " -q 1" if kind == "srq" else ""
        yield (f"events-{kind}", f"ibv_{kind}_pingpong -e 8 B{options}, one way", "us",
               pingpong(f"ibv_{kind}_pingpong"), *PIPE, ("<=", 1.2))
    for way in ("poll", "epoll"):
        yield (f"events-rc-{way}", f"the same of rc, waited for in {way}, one way", "us",
               pingpong("ibv_rc_pingpong", way), f"a wake-up through a pipe and {way}",
               floor(f"pipe_{way}"), ("<=", 1.2))


def ranks():
    def ours(transport, size, which):
        # Without UCX_TLS, UCX takes shared memory and never meets the device.
        return lambda bench: mpi(bench, bench.softhca, size, "--mca", "pml", "ucx", "-x",
                                 f"UCX_TLS={transport},self", "-x",
                                 f"UCX_NET_DEVICES={bench.device}:1")[which]

    def tcp(size, which):
        return lambda bench: mpi(bench, [], size, "--mca", "pml", "ob1", "--mca", "btl",
                                 "tcp,self")[which]
    for which, name, when in (("alltoall", "mpi", ""),
                              ("first", "mpi-first", f", the first {ALLTOALLS[0]} rounds")):
        for transport in ("rc_v", "ud_v"):
            for size in (8, 4096):
                yield (f"{name}-{transport[:2]}-{size}",
                       f"MPI_Alltoall, {RANKS} ranks, {size} B, UCX_TLS={transport}{when}", "us",
                       ours(transport, size, which), "OpenMPI's TCP", tcp(size, which),
                       ("<=", 1.2))


def mpi(bench, prefix, size, *options):
    def run():
        for program in ("mpirun", "mpicc"):
            if not shutil.which(program):
                raise Missing(f"{program} is not there (packages openmpi-bin, libopenmpi-dev)")
        with tempfile.TemporaryDirectory(prefix="softhca-bench.") as directory:
            program = f"{directory}/alltoall"
            bench.plain(["mpicc", "-O2", "-o", program, str(HERE / "alltoall.c")])
            return bench.plain([*prefix, "mpirun", "--allow-run-as-root", "--oversubscribe", "-np",
                                str(RANKS), *options, program, str(size), *map(str, ALLTOALLS)])
    return bench.once(("mpi", tuple(prefix), size, options), run)


# ---- the table's rows ----

def figure(bench, measure):
    """measure: a shape, or a function of the bench."""
    return lambda: measure.measure(bench) if isinstance(measure, Shape) else measure(bench)


def table(bench, lines):
    return [Row(key, what, unit, figure(bench, ours), peer_name, figure(bench, peer), target,
                absolute=bool(absolute))
            for key, what, unit, ours, peer_name, peer, target, *absolute in lines]


def groups(bench):
    return [table(bench, lines) for lines in (
        latencies(), kinds(), rates(), blocks(), atomics(), memories(), thirds(), channels(),
        frames(), signed_reads(), ranks())]
