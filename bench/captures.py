# SPDX-License-Identifier: BSD-2-Clause
"""What a capture costs: the processor time of softhca capture for each packet, and how much slower the transfer is."""
import os
import re
import signal
import subprocess
import tempfile

from harness import Failure, free_port, wait_listening
from table import Row

PACKETS = 1000000
WRITES = PACKETS * 2 // 5  # each is sent and received, and so is an acknowledgement for some
LIMIT = 300


def transfer(bench, fabric, writes):
    """Millions of packets a second of ib_write_bw between two hosts."""
    session, port = bench.session, free_port()
    argv = ("ib_write_bw", "-d", "mlx5_1", "-s", "64", "-F", "-n", str(writes), "-p", str(port))
    tool = [str(bench.softhca[0]), "run", "--fabric", fabric]
    server = session.start([*tool, "--", *argv])
    wait_listening(port, server)
    client = session.call(*tool, "--host", "host2", "--", *argv, "127.0.0.1", limit=LIMIT)
    ended = session.finish(server)
    found = re.search(r"^ 64 .* ([\d.]+)\s*$", client.out, re.M)
    if client.status or ended.status or not found:
        raise Failure(f"ib_write_bw: {client.text()[-300:]}")
    return float(found[1])


def capture(bench, told):
    session, fabric = bench.session, "captures"
    with tempfile.TemporaryDirectory() as place:
        argv = [str(bench.softhca[0]), "capture", "--fabric", fabric, "-s", "128", "-w", f"{place}/x.pcapng"]
        process = subprocess.Popen(argv, env=session.env, stderr=subprocess.PIPE, text=True, bufsize=0)
        try:
            if not process.stderr.readline().startswith("capturing "):
                raise Failure("softhca capture does not begin")
            with_it = transfer(bench, fabric, WRITES)
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
        captured, dropped = (int(n) for n in re.findall(r"(\d+) packets", said))
        if process.returncode or captured < PACKETS / 100:
            raise Failure(f"softhca capture: {said}")
        size = os.path.getsize(f"{place}/x.pcapng")
    told[:] = [f"{captured} packets captured, {dropped} dropped, {size >> 20} MiB; ib_write_bw -s 64 had {with_it:.3f} Mmsg/s, "
               f"{transfer(bench, fabric, WRITES):.3f} without it"]
    return (usage.ru_utime + usage.ru_stime) * 1e9 / captured


def rows(bench):
    told = []
    return [Row("capture", "capture of 1,000,000 packets, processor time of each", "ns", lambda: capture(bench, told),
                "", None, None, lambda: told[0], rounds=1)]
