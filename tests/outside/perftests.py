# SPDX-License-Identifier: BSD-2-Clause
"""Another perftest than the system's, if the directory has one that is built (perftest/ib_write_bw): a row for each option
that its programs take and that an adapter can answer, on both devices.  What is left out: rdma_cm (-R, -z), GPUs, two ports
(-O), rate limits in hardware, and options that change only what is printed."""
from harness import Skip
from pairs import ALL_SIZES, LINKS, perftest

KINDS = {  # connections of each program
    "ib_send_bw": ["RC", "UC", "UD", "XRC", "DC"],
    "ib_send_lat": ["RC", "UC", "UD", "XRC", "DC"],
    "ib_write_bw": ["RC", "UC", "XRC", "DC"],
    "ib_write_lat": ["RC", "UC", "XRC", "DC"],
    "ib_read_bw": ["RC", "XRC", "DC"],
    "ib_read_lat": ["RC", "XRC", "DC"],
    "ib_atomic_bw": ["RC", "XRC", "DC"],
    "ib_atomic_lat": ["RC", "XRC", "DC"],
}
EACH = [  # options of each kind of connection, with the size that they imply
    (["-s", "4097"], 4097),
    (["-x", "0"], None),
    (["--use_old_post_send"], None),
]
BOTH = [  # options of all programs; with one kind of connection
    (["-s", "1"], 1),
    (["-m", "256"], None),
    (["-m", "4096"], None),
    (["-u", "18"], None),
    (["-S", "1"], None),
    (["-t", "16"], None),
    (["--odp"], None),
    (["--mr_per_qp"], None),
    (["--ipv6"], None),
    (["--tclass=8", "-x", "0"], None),
    (["--flow_label=7", "-x", "0"], None),
    (["--disable_pcie_relaxed"], None),
    (["--pkey_index=0"], None),
    (["--no_lock"], None),
]
MANY = [  # of the programs for bandwidth, with each kind of connection
    (["-b"], None),
    (["-q", "8"], None),
    (["-l", "16", "-q", "2"], None),
]
BANDWIDTH = [
    (["-D", "1"], None),
    (["-Q", "1"], None),
    (["-l", "16"], None),
    (["-N"], None),
    (["--report_gbits"], None),
    (["--reversed"], None),
    (["--rate_limit=1", "--rate_limit_type=SW"], None),
]
LATENCY = [(["-C"], None), (["--latency_gap=10"], None)]
OF_PROGRAM = {
    "ib_send_bw": [(["-e"], None), (["-X", "1", "-e"], None), (["-r", "16"], None), (["--use-srq"], None),
                   (["-g", "--ipv6"], None), (["-I", "64", "-s", "64"], 64), (["--recv_post_list=8"], None), (["--use-srq", "-q", "4"], None)],
    "ib_send_lat": [(["-e"], None), (["-r", "16"], None), (["--use-srq"], None), (["-g"], None),
                    (["-I", "64", "-s", "64"], 64)],
    "ib_write_bw": [(["--use-null-mr"], None), (["-I", "64", "-s", "64"], 64), (["--write_with_imm"], None),
                    (["--perform_warm_up"], None)],
    "ib_write_lat": [(["--use-null-mr"], None), (["-I", "64", "-s", "64"], 64), (["--write_with_imm"], None)],
    "ib_read_bw": [(["--use-null-mr"], None), (["-e"], None), (["-o", "1"], None), (["--perform_warm_up"], None)],
    "ib_read_lat": [(["--use-null-mr"], None), (["-e"], None), (["-o", "1"], None)],
    "ib_atomic_bw": [(["-e"], None), (["-o", "1"], None), (["-A", "CMP_AND_SWAP"], None),
                     (["--perform_warm_up", "-Q", "1"], None)],
    "ib_atomic_lat": [(["-e"], None), (["-o", "1"], None), (["-A", "CMP_AND_SWAP"], None)],
}
STREAMS = [(["--log_dci_streams=2"], None), (["--log_dci_streams=2", "--log_active_dci_streams=1"], None)]
OTHER_HOST = ("--host", "host2")  # two processes at one port would be one member of a multicast group
DATAGRAM = 1024  # bytes that fit into each path MTU but 256


def usual_size(program, kind, options):
    if "atomic" in program:
        return 8
    if program.endswith("_lat"):
        return 2
    return DATAGRAM if kind == "UD" or "-g" in options else 65536


def options_of(program, kind):
    bandwidth = program.endswith("_bw")
    every = [([], None), *EACH, *(MANY if bandwidth else []), *OF_PROGRAM[program]]
    if kind != "RC":
        return every
    return [*every, *BOTH, *(BANDWIDTH if bandwidth else LATENCY)]


def taken(program, kind, options, size):
    """Whether perftest itself takes these together.  Further, -g of ib_send_bw compares GID types on RoCE, and takes its
    group with --ipv6 only; the warm-up waits for a completion of each request, and ib_atomic_bw asks for one in 100."""
    if "atomic" in program and ("-s" in options or "--rate_limit_type=SW" in options):
        return False
    if kind == "UD" and (size or 0) > DATAGRAM:
        return False
    if kind in ("UC", "UD") and ("-r" in options or kind == "UD" and "--use-srq" in options and "-q" in options):
        return False  # what has no receive is lost, and perftest waits for it
    if kind == "DC" and "--use_old_post_send" in options or kind in ("XRC", "DC") and "--use-srq" in options:
        return False  # DC has no old form of posting, and both have a shared receive queue anyway
    return kind == "UD" or "-g" not in options


def left_out(program, link, options):
    """Of perftest 25.01: at its end, ib_send_lat asks libibumad to open the device by a name that it has freed before
    (send_lat.c, free of ib_devname before send_destroy_ctx)."""
    return program == "ib_send_lat" and link == "ib" and "-g" in options


def tables(program, kind):
    wanted = [*options_of(program, kind), *(STREAMS if kind == "DC" and program.endswith("_bw") else [])]
    for options, size in wanted:
        if not taken(program, kind, options, size):
            continue
        count = [] if "-D" in options else ["-n", "128"]
        usual = usual_size(program, kind, options)
        sized = ["-s", str(usual)] if size is None and usual == DATAGRAM else []
        yield [*options, *sized, *count], size or usual


def cases(directory):
    place = directory / "perftest"

    def skipped(_):
        raise Skip("perftest/ib_write_bw is not there")

    if not (place / "ib_write_bw").exists():
        yield "another perftest", skipped
        return
    for program, kinds in KINDS.items():
        for kind in kinds:
            for link, device in LINKS.items():
                for options, size in tables(program, kind):
                    if left_out(program, link, options):
                        continue
                    yield (f"perftest: {program} {link} -c {kind} {' '.join(options)}",
                           perftest(str(place / program), device, ["-c", kind, *options], [size], OTHER_HOST))
        if "atomic" not in program:
            yield (f"perftest: {program} ib -a",
                   perftest(str(place / program), LINKS["ib"], ["-a", "-n", "20"], ALL_SIZES, OTHER_HOST))
