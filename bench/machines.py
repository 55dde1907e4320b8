# SPDX-License-Identifier: BSD-2-Clause
"""Two fabrics that are machines of their own, joined by RoCE v2 over UDP on loopback addresses, beside sockets."""
import os
import re
import socket
import time

from harness import Failure, free_port, wait_listening
from shapes import floor
from table import Missing, Row

# Others may measure on this machine at the same time.
ENDS = {name: f"127.77.{os.getpid() >> 7 & 255}.{(os.getpid() & 127) + at}" for name, at in (("left", 1), ("right", 128))}
DEVICE = "mlx5_1"
BLOCK, BLOCKS = 65536, 5000
LIMIT = 120


def joined(bench, argv, pattern):
    """The figure of a program of perftest between the two."""
    try:
        for name, address in ENDS.items():
            for words in (("fabric", "up", "--fabric", name), ("fabric", "tie", "--fabric", name, DEVICE, f"udp={address}")):
                result = bench.session.tool(*words)
                if result.status:
                    raise Missing(result.text().strip())
        port = free_port()
        argv = (*argv, "-d", DEVICE, "-x", "3", "-F", "-p", str(port))
        runs = [[str(bench.softhca[0]), "run", "--fabric", name, "--", *argv] for name in ENDS]
        server = bench.session.start(runs[0])
        wait_listening(port, server)
        client = bench.session.call(*runs[1], "127.0.0.1", limit=LIMIT)
        ended = bench.session.finish(server)
        found = re.search(pattern, client.out, re.M)
        if client.status or ended.status or not found:
            raise Failure(f"{argv[0]}: {client.text()[-300:]}")
        return float(found[1])
    finally:
        for name in ENDS:
            bench.session.tool("fabric", "down", "--fabric", name)


def bandwidth(bench):
    return joined(bench, ("ib_write_bw", "-s", str(BLOCK), "-n", str(BLOCKS)), rf"^ *{BLOCK} +\d+ +\S+ +([\d.]+)")


def latency(bench):
    return joined(bench, ("ib_write_lat", "-s", "8", "-n", "5000"), r"^ *8 +\d+ +\S+ +\S+ +([\d.]+)")


def tcp():
    """MB/s of as many blocks through a connection on the loopback interface."""
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if not child:
        connection, buffer, left = listener.accept()[0], bytearray(BLOCK), BLOCK * BLOCKS
        while left:
            left -= connection.recv_into(buffer)
        connection.sendall(b"x")
        os._exit(0)
    block = bytes(BLOCK)
    with socket.create_connection(listener.getsockname()) as connection:
        begin = time.monotonic()
        for _ in range(BLOCKS):
            connection.sendall(block)
        connection.recv(1)
        seconds = time.monotonic() - begin
    listener.close()
    os.waitpid(child, 0)
    return BLOCK * BLOCKS / seconds / 1e6


def rows(bench):
    return [Row("machines-bw", "ib_write_bw 64 KiB between two fabrics, UDP on loopback", "MB/s",
                lambda: bandwidth(bench), "TCP, loopback", tcp, (">=", 0.6), rounds=3),
            Row("machines-lat", "ib_write_lat 8 B between two fabrics, UDP on loopback", "us",
                lambda: latency(bench), "UDP through two processes", lambda: floor("udp_relayed")(bench), ("<=", 2), rounds=3)]
