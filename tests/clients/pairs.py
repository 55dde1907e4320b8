# SPDX-License-Identifier: BSD-2-Clause
"""Stock programs in pairs: a server and a client, two processes on one fabric."""
import math
import re

from harness import Failure, all_ended_well, expect, only_long

IB, ROCE = "mlx5_0", "mlx5_1"
LINKS = {"ib": IB, "roce": ROCE}

# perftest -a: every power of two from 2 to 2^23.
ALL_SIZES = [2**i for i in range(1, 24)]


def both_ended_well(results):
    all_ended_well(dict(zip(("server", "client"), results)))


def pingpong(program, device, options):
    def test(session):
        argv = [program, "-d", device, *options]
        results = session.pair(argv, argv)
        both_ended_well(results)
        for result in results:
            expect(re.search(r"^\d+ bytes in [\d.]+ seconds = ", result.out, re.M) and
                   re.search(r"^\d+ iters in [\d.]+ seconds = ", result.out, re.M),
                   f"no result rows:\n{result.text()}")
            # The programs print a mismatch and go on to status 0.
            expect("invalid data" not in result.text(), result.text())
    return test


def xsrq_pingpong(device, options):
    """The one of the family that prints no figures."""
    def test(session):
        argv = ["ibv_xsrq_pingpong", "-d", device, *options]
        results = session.pair(argv, argv)
        both_ended_well(results)
        for result in results:
            expect("success" in result.out, f"no success:\n{result.text()}")
    return test


def roce_needs_gid(program):
    """Without a GID index no GRH goes into the address vector, which RoCE cannot route."""
    def test(session):
        argv = [program, "-d", ROCE]
        _, client = session.pair(argv, argv)
        expect(client.status != 0, "the client succeeded without a GID")
    return test


# perftest measures the speed of the CPU anew for each row, by busy loops against the clock.  Where
# neighbours disturb that, it says so and reckons with zero: the row's figures are inf, nan or 0.
CPU_NOT_MEASURED = "Correlation coefficient"


def rows(text):
    """Result rows of perftest: lists of numbers."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 3 and all(re.fullmatch(r"[\d.]+|inf|-?nan", f) for f in fields):
            found.append([float(f) for f in fields])
    return found


def perftest(program, device, options, sizes, client_options=()):
    def test(session):
        argv = [program, "-d", device, "-F", *options]
        results = session.pair(argv, argv, client_options=client_options)
        both_ended_well(results)
        result = results[1]
        table = rows(result.out)
        got = [int(row[0]) for row in table]
        if got != sizes:
            raise Failure(f"rows for sizes {got}, expected {sizes}\n{result.text()}")
        unmeasured = 0
        for row in table:
            # Message rate is the last column of *_bw, average latency the sixth of *_lat.
            figure = row[-1] if program.endswith("_bw") else row[5]
            unmeasured += not 0 < figure < math.inf
        expect(unmeasured <= result.err.count(CPU_NOT_MEASURED),
               f"{unmeasured} rows without progress\n{result.text()}")
    return test


def counters_move(session):
    """-W prints how far a counter moved; port_xmit_data counts words of 4 bytes."""
    argv = ["ib_write_bw", "-d", IB, "-F", "-n", "100", "-s", "65536",
            "-W", "counters/port_xmit_data"]
    results = session.pair(argv, argv)
    both_ended_well(results)
    moved = re.findall(r"port_xmit_data.*?(\d+)\s*$", results[1].out, re.M)
    expect(moved and int(moved[-1]) >= 100 * 65536 // 4,
           f"port_xmit_data moved by {moved}, sent {100 * 65536 // 4} words\n{results[1].text()}")


def pingpong_cases():
    for program in ("rc", "uc", "ud", "srq"):
        for link, device in LINKS.items():
            gid = ["-g", "0"] if link == "roce" else []
            for mode, events in (("poll", []), ("events", ["-e"])):
                yield (f"ibv_{program}_pingpong {link} {mode}",
                       pingpong(f"ibv_{program}_pingpong", device, [*gid, *events, "-c"]))
    yield "ibv_rc_pingpong ib new post send", pingpong("ibv_rc_pingpong", IB, ["-N", "-c"])
    yield ("ibv_rc_pingpong ib with GRH",
           pingpong("ibv_rc_pingpong", IB, ["-g", "0", "-c"]))
    yield ("ibv_rc_pingpong ib 1 MiB mtu 4096",
           pingpong("ibv_rc_pingpong", IB, ["-s", "1048576", "-m", "4096", "-n", "50", "-c"]))
    yield ("ibv_rc_pingpong roce 1 MiB mtu 256",
           pingpong("ibv_rc_pingpong", ROCE,
                    ["-g", "0", "-s", "1048576", "-m", "256", "-n", "50", "-c"]))
    yield ("ibv_srq_pingpong ib 64 QPs",
           pingpong("ibv_srq_pingpong", IB, ["-q", "64", "-n", "20", "-c"]))
    for link, device in LINKS.items():
        gid = ["-g", "0"] if link == "roce" else []
        for mode, events in (("poll", []), ("events", ["-e"])):
            yield f"ibv_xsrq_pingpong {link} {mode}", xsrq_pingpong(device, [*gid, *events])
    yield "ibv_rc_pingpong roce refuses no GID", roce_needs_gid("ibv_rc_pingpong")


# program, options, sizes in the result; each on both devices, but all sizes on one.  For each size both sides measure the
# speed of the CPU for a quarter of a second: most programs do all of them in the long form alone, and the largest else.
# ib_send_lat -e is left out: perftest 4.5 waits for sends and receives on one channel and takes an event
# of either for the one it wants (since mended there, commit 2209cf8).
EVERYWHERE = [
    ("ib_send_bw", ["-n", "200"], [65536]),
    ("ib_send_bw", ["-a", "-n", "20"], ALL_SIZES),
    ("ib_send_bw", ["-b", "-n", "200"], [65536]),
    ("ib_send_bw", ["-q", "16", "-n", "200", "-s", "4096"], [4096]),
    ("ib_send_bw", ["-e", "-n", "200"], [65536]),
    ("ib_send_bw", ["-I", "64", "-s", "64", "-n", "500"], [64]),
    ("ib_send_bw", ["--use-srq", "-n", "200", "-s", "4096"], [4096]),
    ("ib_send_bw", ["-c", "XRC", "-n", "200"], [65536]),
    ("ib_send_bw", ["-c", "XRC", "-q", "4", "-n", "200", "-s", "4096"], [4096]),
    ("ib_write_bw", ["-c", "XRC", "-n", "200"], [65536]),
    ("ib_read_bw", ["-c", "XRC", "-n", "200"], [65536]),
    ("ib_atomic_bw", ["-c", "XRC", "-n", "500"], [8]),
    ("ib_send_bw", ["-c", "DC", "-n", "200"], [65536]),
    ("ib_send_bw", ["-c", "DC", "-q", "4", "-n", "200", "-s", "4096"], [4096]),
    ("ib_send_lat", ["-c", "DC", "-n", "500"], [2]),
    ("ib_write_bw", ["-c", "DC", "-n", "200"], [65536]),
    ("ib_read_bw", ["-c", "DC", "-n", "200"], [65536]),
    ("ib_atomic_bw", ["-c", "DC", "-n", "500"], [8]),
    ("ib_send_bw", ["-c", "UC", "-n", "200", "-r", "512", "-s", "4096"], [4096]),
    ("ib_send_bw", ["-c", "UD", "-n", "200", "-r", "512", "-s", "1024"], [1024]),
    ("ib_send_bw", ["-l", "8", "-n", "200", "-s", "1024"], [1024]),
    ("ib_send_bw", ["--use_old_post_send", "-n", "200", "-s", "1024"], [1024]),
    ("ib_send_lat", ["-n", "500"], [2]),
    ("ib_send_lat", ["-a", "-n", "20"], ALL_SIZES),
    ("ib_send_lat", ["-c", "UC", "-n", "200"], [2]),
    ("ib_send_lat", ["-c", "UD", "-n", "200"], [2]),
    ("ib_send_lat", ["-I", "128", "-s", "128", "-n", "200"], [128]),
    ("ib_write_bw", ["-n", "200"], [65536]),
    ("ib_write_bw", ["-a", "-n", "20"], ALL_SIZES),
    ("ib_write_bw", ["-b", "-n", "200"], [65536]),
    ("ib_write_bw", ["-q", "16", "-n", "200", "-s", "4096"], [4096]),
    ("ib_write_bw", ["-c", "UC", "-n", "200"], [65536]),
    ("ib_write_bw", ["-I", "8", "-s", "8", "-n", "2000"], [8]),
    ("ib_write_bw", ["-Q", "1", "-n", "200", "-s", "1024"], [1024]),
    ("ib_write_bw", ["--mr_per_qp", "-q", "4", "-n", "200"], [65536]),
    ("ib_write_lat", ["-n", "500"], [2]),
    ("ib_write_lat", ["-a", "-n", "20"], ALL_SIZES),
    ("ib_write_lat", ["-c", "UC", "-n", "200"], [2]),
    ("ib_read_bw", ["-n", "200"], [65536]),
    ("ib_read_bw", ["-a", "-n", "20"], ALL_SIZES),
    ("ib_read_bw", ["-b", "-o", "4", "-n", "200"], [65536]),
    ("ib_read_bw", ["-q", "16", "-n", "100", "-s", "4096"], [4096]),
    ("ib_read_bw", ["-e", "-n", "200"], [65536]),
    ("ib_read_lat", ["-n", "500"], [2]),
    ("ib_read_lat", ["-a", "-n", "20"], ALL_SIZES),
    ("ib_atomic_bw", ["-A", "FETCH_AND_ADD", "-n", "500"], [8]),
    ("ib_atomic_bw", ["-A", "CMP_AND_SWAP", "-n", "500", "-q", "4"], [8]),
    ("ib_atomic_lat", ["-A", "FETCH_AND_ADD", "-n", "500"], [8]),
    ("ib_atomic_lat", ["-A", "CMP_AND_SWAP", "-n", "500"], [8]),
    ("ib_write_bw", ["-x", "0", "-n", "200"], [65536]),
    ("ib_read_bw", ["-m", "256", "-n", "200"], [65536]),
]


ALL_SIZES_LINK = {"ib_send_bw": "roce", "ib_send_lat": "ib", "ib_write_bw": "ib",
                  "ib_write_lat": "roce", "ib_read_bw": "roce", "ib_read_lat": "ib"}
ALL_SIZES_ALWAYS = {"ib_write_bw"}


def perftest_cases():
    for program, options, sizes in EVERYWHERE:
        for link, device in LINKS.items():
            if sizes is ALL_SIZES and link != ALL_SIZES_LINK[program]:
                continue
            test = perftest(program, device, options, sizes)
            if sizes is ALL_SIZES and program not in ALL_SIZES_ALWAYS:
                test = only_long(test)
                largest = ["-s", str(sizes[-1]), "-n", "20"]
                yield f"{program} {link} {' '.join(largest)}", perftest(program, device, largest, sizes[-1:])
            yield f"{program} {link} {' '.join(options)}", test
    yield "ib_write_bw ib counters move", counters_move


def cases():
    yield from pingpong_cases()
    yield from perftest_cases()
