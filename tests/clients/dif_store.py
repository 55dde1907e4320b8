# SPDX-License-Identifier: BSD-2-Clause
"""The block store of examples/dif-store: the right block, field and values, in each mode.

What is expected is computed here from the backing file, not by the programs under test.
"""
import contextlib
import pathlib
import re
import signal
import socket
import struct
import tempfile

from harness import Failure, data_flows, expect, free_port, wait_listening
from pairs import LINKS

HEADER, PI, APP_TAG = 4096, 8, 0xD1F5
MODES = {"pipelined": [], "plain": ["--plain"]}
FIELDS = {"data": "guard", "guard": "guard", "app": "application tag", "ref": "reference tag"}
BAD = re.compile(r"^block (\d+): bad ([a-z ]+), expected ([0-9a-f]+), actual ([0-9a-f]+) "
                 r"\(found by ([a-z' ]+)\)$", re.M)


def crc16_t10dif(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x8BB7 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


assert crc16_t10dif(b"123456789") == 0xD0DB  # the catalogue's check value


class Store:
    """A backing file, and what this test knows of its layout."""

    def __init__(self, session, directory, blocks=1000, size=512):
        self.session, self.blocks, self.size = session, blocks, size
        self.path = pathlib.Path(directory) / "store"
        self.tool("format", "--blocks", str(blocks), "--block-size", str(size))

    def program(self, name):
        return str(self.session.build / "examples" / "dif-store" / name)

    def tool(self, command, *options, status=0):
        result = self.session.call(self.program("dif-store"), command, str(self.path), *options)
        expect(result.status == status, f"dif-store {command}: {result.status}\n{result.text()}")
        return result

    def unit(self, block):
        with open(self.path, "rb") as file:
            file.seek(HEADER + block * (self.size + PI))
            return file.read(self.size + PI)

    def data(self, first, count):
        return b"".join(self.unit(b)[:self.size] for b in range(first, first + count))

    def verdict(self, block):
        """(block, field, expected, actual) of the first wrong field, as the programs print it."""
        unit = self.unit(block)
        guard, app, ref = struct.unpack(">HHI", unit[self.size:])
        for field, right, found in (("guard", crc16_t10dif(unit[:self.size]), guard),
                                    ("application tag", APP_TAG, app),
                                    ("reference tag", block, ref)):
            if right != found:
                return block, field, right, found
        return None

    @contextlib.contextmanager
    def target(self, device, *options, run_options=()):
        """A target that must end well on SIGINT.  Gives a function that runs a client."""
        port = str(free_port())
        process = self.session.background(self.program("dif-store-target"), str(self.path),
                                          "-p", port, "-d", device, *options,
                                          run_options=run_options)

        def client(command, *arguments, status=0, background=False):
            argv = [self.program("dif-store-client"), command, "-p", port, "-d", device,
                    *arguments, "127.0.0.1"]
            started = self.session.background(*argv, run_options=run_options)
            if background:
                return started
            result = self.session.finish(started)
            expect(result.status == status, f"status {result.status}, expected {status}: "
                   f"{' '.join(argv)}\n{result.text()}")
            return result

        client.target, client.port = process, int(port)
        try:
            wait_listening(int(port), process)
            yield client
        except Failure as failure:
            process.send_signal(signal.SIGTERM)
            result = self.session.finish(process, 10)
            raise Failure(f"{failure}\ntarget: {result.text()}") from failure
        process.send_signal(signal.SIGINT)
        result = self.session.finish(process, 10)
        expect(result.status == 0, f"target ended with {result.status}\n{result.text()}")
        client.log = result.text()


def expect_stops(client, mode, bad):
    """The queue stops at each bad transfer if it is a pipelining one, and else never."""
    expect(f", {'plain' if mode else 'pipelined'}, " in client.log, client.log)
    stops = sum(map(int, re.findall(r"queue stopped (\d+) times", client.log)))
    expect(stops == (0 if mode else bad), f"{stops} stops for {bad} bad transfers\n{client.log}")


def reported(result):
    return [(int(b), field, int(e, 16), int(a, 16)) for b, field, e, a, _
            in BAD.findall(result.out)]


def with_store(test, **shape):
    def run(session):
        with tempfile.TemporaryDirectory(prefix="dif-store.") as directory:
            test(Store(session, directory, **shape))
    return run


# ---- reading ----

def good_reads(device, mode):
    def test(store):
        out = store.path.with_name("out")
        with store.target(device) as client:
            result = client("verify", *mode)
            expect(f"{store.blocks} good blocks, 0 bad" in result.out, result.text())
            client("read", *mode, "--block", "37", "--count", "210", "--request", "13",
                   "--depth", "5", "--out", str(out))
            expect(out.read_bytes() == store.data(37, 210), "read other data than are stored")
            client("read", *mode, "--bare", "--software", "--block", "990", "--out", str(out))
            expect(out.read_bytes() == store.data(990, 10), "bare: other data than are stored")
    return test


def bad_blocks(device, mode, run_options=()):
    """Each field in turn, alone in its store; all other blocks of the request arrive."""
    def test(store):
        with store.target(device, run_options=run_options) as client:
            for number, (field, part) in enumerate(FIELDS.items()):
                block, bit = 101 + number, 3 + number
                flip = ["--block", str(block), "--field", field, "--bit", str(bit)]
                store.tool("corrupt", *flip)
                store.tool("check", status=1)
                expected = store.verdict(block)
                expect(expected and expected[1] == part, f"{field}: verdict {expected}")
                result = client("verify", *mode, status=1)
                expect(reported(result) == [expected], f"{field}: expected {expected}\n"
                       f"{result.text()}")
                expect("found by both adapters" in result.out, result.text())
                expect(f"{store.blocks - 1} good blocks, 1 bad" in result.out, result.text())
                bare = client("read", *mode, "--bare", status=1)
                expect(reported(bare) == [expected], f"{field}, bare: expected {expected}\n"
                       f"{bare.text()}")
                store.tool("corrupt", *flip)  # back again
            client("verify", *mode)
        expect_stops(client, mode, 2 * len(FIELDS))
    return test


def many_bad_blocks(device, mode):
    """With 16 requests under way the queue stops again and again, and loses nothing."""
    def test(store):
        wrong = [0, 1, 2, 7, 8, 63, 64, 65, 200, 333, 334, 512, 998, 999]
        for number, block in enumerate(wrong):
            field = list(FIELDS)[number % len(FIELDS)]
            store.tool("corrupt", "--block", str(block), "--field", field)
        expected = [store.verdict(block) for block in wrong]
        with store.target(device) as client:
            for shape in (["--depth", "16", "--request", "4"], ["--depth", "3", "--request", "64"],
                          ["--depth", "1", "--request", "1"]):
                result = client("verify", *mode, *shape, status=1)
                expect(sorted(reported(result)) == expected,
                       f"{shape}: expected {expected}\n{result.text()}")
                expect(f"{store.blocks - len(wrong)} good blocks" in result.out, result.text())
        expect_stops(client, mode, 3 * len(wrong))
    return test


# ---- writing ----

def writes(device, mode):
    def test(store):
        source, out = store.path.with_name("in"), store.path.with_name("out")
        with store.target(device) as client:
            for memory in ([], ["--bare"]):
                data = bytes((i * 7 + len(memory)) % 251 for i in range(100 * store.size))
                source.write_bytes(data)
                client("write", *mode, *memory, "--in", str(source), "--block", "50")
                expect(store.data(50, 100) == data, f"{memory}: the file has other data")
                client("read", *mode, *memory, "--block", "50", "--count", "100",
                       "--out", str(out))
                expect(out.read_bytes() == data, f"{memory}: other data come back")
            before = store.data(200, 100)
            result = client("write", *mode, "--seed", "99", "--block", "200", "--count", "100")
            expect(": 100 blocks written, 0 requests failed" in result.out, result.text())
            expect(all(before[i:i + store.size] != store.data(200 + i // store.size, 1)
                       for i in range(0, len(before), store.size)), "a block was not written")
            client("verify", *mode)
        store.tool("check")
    return test


def damaged_writes(device, mode):
    """Each field wrong on the wire: the target's adapter finds it and the file stays as it was."""
    def test(store):
        before = store.path.read_bytes()
        with store.target(device) as client:
            for field, part in FIELDS.items():
                result = client("write", *mode, "--seed", "5", "--block", "20", "--count", "8",
                                "--damage", field, "--damage-block", "23", status=1)
                found = reported(result)
                expect(len(found) == 1 and found[0][:2] == (23, part),
                       f"{field}: {found}\n{result.text()}")
                expect(bin(found[0][2] ^ found[0][3]).count("1") == 1 or field == "data",
                       f"{field}: one bit was flipped, {found}")
                expect(store.path.read_bytes() == before, f"{field}: the file has changed")
            # Good requests before and behind the bad one are performed.
            result = client("write", *mode, "--seed", "5", "--damage", "guard",
                            "--damage-block", "500", status=1)
            expect(f"{store.blocks - 8} blocks written, 1 requests failed" in result.out,
                   result.text())
        expect_stops(client, mode, len(FIELDS) + 1)
        store.tool("check")
    return test


# ---- what is refused ----

def refusals(device, mode):
    rows = [("unaligned offset", ["--offset", "100", "--length", "512"], "not whole blocks"),
            ("unaligned length", ["--offset", "512", "--length", "513"], "not whole blocks"),
            ("nothing", ["--length", "0"], "not whole blocks"),
            ("at the end", ["--offset", "512000", "--length", "512"],
             "beyond the end of the store"),
            ("over the end", ["--offset", "511488", "--length", "1024"],
             "beyond the end of the store"),
            ("far out", ["--offset", str(2**64 - 512), "--length", "1024"],
             "beyond the end of the store"),
            ("too long", ["--length", str(9 * 512)], "longer than agreed"),
            ("no operation", ["--operation", "7", "--length", "512"], "unknown operation"),
            ("write", ["--operation", "2", "--length", "512"], "the store is read-only")]

    def test(store):
        before = store.path.read_bytes()
        with store.target(device, "--read-only") as client:
            for name, request, answer in rows:
                result = client("raw", *mode, *request, status=1)
                expect(f"answer: {answer}\n" in result.out, f"{name}: {result.text()}")
            client("verify", *mode)
        expect(store.path.read_bytes() == before, "the file has changed")
    return test


def wrong_use(store):
    """Arguments and files that cannot work: a status, and a line that says what to do."""
    def complains(result, status, words):
        expect(result.status == status and words in result.err,
               f"status {result.status}, expected {status} and '{words}'\n{result.text()}")

    session, target, client = store.session, *map(store.program, ("dif-store-target",
                                                                   "dif-store-client"))
    empty = store.path.with_name("empty")
    empty.touch()
    for argv, status, words in (
            ([target], 2, "--help"), ([target, str(empty)], 1, "make one with: dif-store format"),
            ([target, "/nonexistent"], 1, "cannot open"),
            ([target, str(store.path), "-p", "0"], 2, "--port takes a number"),
            ([client], 2, "--help"), ([client, "frob", "127.0.0.1"], 2, "no command 'frob'"),
            ([client, "write", "127.0.0.1"], 2, "--in FILE or --seed N"),
            ([client, "read", "--depth", "-1", "127.0.0.1"], 2, "--depth takes a number"),
            ([client, "read", "-d", "mlx9", "127.0.0.1"], 3, "ibv_devices"),
            ([client, "read", "-p", str(free_port()), "127.0.0.1"], 3, "dif-store-target run")):
        complains(session.run(*argv), status, words)
    for name in ("dif-store", "dif-store-target", "dif-store-client"):
        result = session.call(store.program(name), "--help")
        expect(result.status == 0 and result.out.startswith("usage: "), result.text())
    with store.target(LINKS["roce"]) as run:
        result = run("read", "-d", LINKS["ib"], status=3)
        expect("the target sent us away" in result.err, result.text())
        for command in (["read"], ["write", "--seed", "1"]):
            result = run(*command, "--block", "1000", status=2)
            expect("the blocks 0 to 999 only" in result.err, result.text())
        run("verify")


# ---- company and death ----

def two_clients(device):
    def test(store):
        store.tool("corrupt", "--block", "77")
        with store.target(device) as client:
            started = [client("verify", *mode, "--request", "2", background=True)
                       for mode in MODES.values()]
            for process in started:
                result = store.session.finish(process)
                expect(reported(result) == [store.verdict(77)], result.text())
    return test


def deaths(device):
    """A client that is killed in the middle is nothing to the target, and the other way round."""
    def test(store):
        def under_way(process):
            expect(data_flows(store.session, [process], device) and process.poll() is None,
                   "the benchmark has ended too soon")

        with store.target(device) as client:
            process = client("bench", "--ms", "120000", background=True)
            under_way(process)
            process.send_signal(signal.SIGKILL)
            store.session.finish(process)
            client("verify")
            process = client("bench", "--ms", "120000", background=True)
            under_way(process)
            client.target.send_signal(signal.SIGINT)
            result = store.session.finish(process)
            expect(result.status == 3, f"client: {result.status}\n{result.text()}")
    return test


def strangers(store):
    """Whoever else connects over TCP is told nothing and does no harm."""
    with store.target(LINKS["ib"]) as client:
        for words in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\0" * 51, b"\xff" * 52,
                      struct.pack(">5I", 0x44494653, 1, 1, 0, 8) + bytes(32),
                      struct.pack(">5I", 0x44494653, 1, 1, 8, 2**31) + bytes(32)):
            with socket.create_connection(("127.0.0.1", client.port), 5) as stranger:
                stranger.sendall(words)
                stranger.shutdown(socket.SHUT_WR)
                stranger.settimeout(5)
                try:
                    expect(stranger.recv(100) == b"", f"an answer to {words}")
                except ConnectionResetError:
                    pass  # it did not read all that we sent
        # An address where nobody is: the target finds out when it answers, or when we leave.
        hello = struct.pack(">5I", 0x44494653, 1, 1, 8, 8) + bytes(32)
        with socket.create_connection(("127.0.0.1", client.port), 5) as stranger:
            stranger.sendall(hello)
            expect(len(stranger.recv(1000)) > 0, "no welcome")
        client("verify")


def benchmark(device):
    def test(store):
        with store.target(device) as client:
            result = client("bench", "--ms", "300", "--request", "4")
        for depth in ("1", "8"):
            for mode in MODES:
                expect(re.search(rf"^ +{depth}  {mode} +[1-9]\d*  ", result.out, re.M),
                       f"no row of depth {depth}, {mode}\n{result.text()}")
        expect(len(re.findall(r"^ +ratio +[\d.]+x", result.out, re.M)) == 2, result.text())
    return test


def target_without_pipelining(store):
    with store.target(LINKS["ib"], "--plain") as client:
        store.tool("corrupt", "--block", "3")
        result = client("read", status=1)
        expect(", plain: 999 good blocks, 1 bad" in result.out, result.text())


def cases():
    for link, device in LINKS.items():
        for mode, options in MODES.items():
            for name, make in (("good reads", good_reads), ("bad blocks", bad_blocks),
                               ("many bad blocks", many_bad_blocks), ("writes", writes),
                               ("damaged writes", damaged_writes), ("refusals", refusals)):
                yield f"dif-store {link} {mode} {name}", with_store(make(device, options))
        big = {"blocks": 300, "size": 4096}
        yield (f"dif-store {link} 4096-byte blocks, bad",
               with_store(bad_blocks(device, MODES["pipelined"]), **big))
        yield (f"dif-store {link} 4096-byte blocks, writes",
               with_store(writes(device, MODES["pipelined"]), **big))
        yield f"dif-store {link} two clients", with_store(two_clients(device))
        yield f"dif-store {link} deaths", with_store(deaths(device))
        yield f"dif-store {link} benchmark", with_store(benchmark(device))
        yield (f"dif-store {link} reports as of devices",
               with_store(bad_blocks(device, [], ["--signature-reports=hardware"])))
    yield "dif-store target without pipelining", with_store(target_without_pipelining)
    yield "dif-store strangers", with_store(strangers)
    yield "dif-store wrong use", with_store(wrong_use)
