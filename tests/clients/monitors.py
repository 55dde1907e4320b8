# SPDX-License-Identifier: BSD-2-Clause
"""softhca top and the page of softhca fabric show --html: what they say of programs that run, in a terminal, a pipe and a
browser."""
import contextlib
import fcntl
import html.parser
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

from harness import Failure, Skip, expect, free_port, wait_listening, within
from ports import fabric

SECONDS = 30


@contextlib.contextmanager
def traffic(session, device="mlx5_1"):
    """A pair of ib_send_bw from host2 to host1 that goes on; gives the number of the sender's queue pair."""
    port = str(free_port())
    argv = ("ib_send_bw", "-d", device, "-p", port, "--run_infinitely", "-D", "100")
    server = session.background(*argv)
    wait_listening(int(port), server)
    client = session.background(*argv, "127.0.0.1", run_options=("--host", "host2"))
    try:
        found = []

        def sends():
            shown = json.loads(session.tool("status", "--json").out)["programs"]
            found[:] = [qp["qpn"] for p in shown if p["pid"] == client.pid for qp in p.get("queue_pairs", []) if qp.get("state") == "RTS"]
            return found or client.poll() is not None

        expect(within(SECONDS, sends) and found, "no queue pair that sends")
        yield found[0]
    finally:
        for process in (client, server):
            process.kill()
            process.communicate()


@contextlib.contextmanager
def place():
    with tempfile.TemporaryDirectory(prefix="softhca-page.") as directory:
        yield str(pathlib.Path(directory) / "page.html")


# ---- the page ----

class Page(html.parser.HTMLParser):
    """The rows of its tables by heading, its other texts, and what it would load."""

    EMPTY = {"meta"}

    def __init__(self, text):
        super().__init__()
        self.tables, self.texts, self.open, self.outside, self.tags = {}, [], [], [], set()
        self.heading, self.refresh = None, None
        self.feed(text)
        self.close()
        expect(not self.open, f"not closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        self.outside += [v for k, v in attributes.items() if k in ("src", "href", "xlink:href", "data", "action") or k.startswith("on")]
        if tag == "meta" and attributes.get("http-equiv") == "refresh":
            self.refresh = attributes["content"]
        if tag not in self.EMPTY:
            self.open.append(tag)
        if tag == "tr":
            self.tables.setdefault(self.heading, []).append([])
        elif tag in ("td", "th"):
            self.tables[self.heading][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        expect(self.open and self.open[-1] == tag, f"</{tag}> in {self.open}")
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.heading = data
        elif self.open and self.open[-1] in ("td", "th"):
            self.tables[self.heading][-1][-1] += data
        self.texts.append(data)

    def rows(self, heading):
        names, *rows = self.tables[heading]
        return [dict(zip(names, row)) for row in rows]


def amount(text):
    """The number in "12.3 MB/s"."""
    match = re.fullmatch(r"([\d.]+) ([kMGTPE]?)(B|B/s|/s)", text)
    expect(match, f"no amount: {text}")
    return float(match[1]) * 1000 ** " kMGTPE".index(match[2] or " ")


def written(session, file, *options):
    result = session.tool("fabric", "show", "--html", file, *options)
    expect(result.status == 0 and not result.text(), result.text())
    text = pathlib.Path(file).read_text()
    page = Page(text)
    expect(not page.outside and "script" not in page.tags and "url(" not in text, f"{page.outside} {page.tags}")
    return page


def shown_traffic(page, qpn):
    """What runs is there, with its rate."""
    (qp,) = [q for q in page.rows("Queue pairs") if q["QP"] == f"0x{qpn:06x}"]
    expect(qp["device"] == "host2/mlx5_1" and qp["type"] == "RC" and qp["state"] == "RTS", f"{qp}")
    expect(amount(qp["send blocks"]) > 0 and qp["program"].startswith("ib_send_bw ("), f"{qp}")
    ports = {p["port"]: p for p in page.rows("Ports")}
    expect(set(ports) == {f"host{h}/mlx5_{d}:1" for h in (1, 2) for d in (0, 1)}, f"{ports.keys()}")
    expect(amount(ports["host2/mlx5_1:1"]["sent"]) > 0 and amount(ports["host1/mlx5_1:1"]["received"]) > 0, f"{ports}")
    expect(amount(ports["host1/mlx5_0:1"]["sent"]) == 0, f"{ports}")
    expect({p["program"] for p in page.rows("Programs")} == {"ib_send_bw"}, f"{page.rows('Programs')}")


def page_of_traffic(session):
    with place() as file, fabric(session), traffic(session) as qpn:
        expect(session.tool("fabric", "impair", "loss=50", "to=host2", "qp=0x123").status == 0, "fabric impair")
        expect(session.tool("inject", "call=reg_mr", "error=ENOMEM", "number=99").status == 0, "inject")
        page = written(session, file)
        shown_traffic(page, qpn)
        text = " ".join(page.texts)
        expect("impair: loss 50% to=host2 qp=0x123: 0 of 0 packets" in text, text)
        expect("inject: call reg_mr fails with ENOMEM number=99: 0 of 0 calls" in text, text)
        expect("switch1" in text and "host1 mlx5_0" in text and "host2/mlx5_1" in text, text)
        expect(page.refresh is None and oct(os.stat(file).st_mode & 0o777) == oct(0o666 & ~umask()), "rights of the file")
        expect(os.listdir(os.path.dirname(file)) == ["page.html"], "something else was left")


def page_of_ties(session):
    """The page says what ports are tied to; without a tie it says nothing of it."""
    with place() as file, fabric(session):
        expect("Ties" not in written(session, file).texts, "ties of no port")
        expect(session.tool("fabric", "tie", "host1/mlx5_1", "port=host2/mlx5_1").status == 0, "tie")
        texts = written(session, file).texts
        at = texts.index("Ties")
        # Either end names the other one.
        line = " ".join(texts[at + 1:texts.index("Faults that act")])
        expect("host1/mlx5_1 tied to port=host2/mlx5_1" in line and "host2/mlx5_1 tied to port=host1/mlx5_1" in line, line)


def bytes_of_switches(session):
    """What a port of a switch has sent is what the other end has received, and nothing of it was counted at the switch."""
    with fabric(session):
        port = str(free_port())
        argv = ("ib_write_bw", "-d", "mlx5_0", "-p", port, "-n", "100", "-s", "65536")
        server = session.background(*argv)
        wait_listening(int(port), server)
        result = session.run(*argv, "127.0.0.1", run_options=("--host", "host2"))
        expect(result.status == 0 and session.finish(server).status == 0, result.text())
        links = json.loads(session.tool("fabric", "show", "--json").out)["links"]
        ends = {link["a"]["node"]: link for link in links}
        to, back = ends["host1 mlx5_0"], ends["host2 mlx5_0"]
        expect(back["a"]["bytes_sent"] > 100 * 65536 and to["a"]["bytes_sent"] > 0, f"{links}")
        expect(to["b"]["bytes_sent"] == back["a"]["bytes_sent"] and back["b"]["bytes_sent"] == to["a"]["bytes_sent"], f"{links}")


def large_fabric(session):
    """Of many ports those come first that carry something, and nobody draws thousands of nodes."""
    with place() as file, fabric(session, "--hosts", "1000"):
        port = str(free_port())
        argv = ("ib_send_bw", "-d", "mlx5_1", "-p", port, "--run_infinitely", "-D", "100")
        server = session.background(*argv, run_options=("--host", "host999"))
        wait_listening(int(port), server)
        client = session.background(*argv, "127.0.0.1", run_options=("--host", "host1000"))
        try:
            def flows():
                top = session.tool("top", "-n", "1")
                lines = top.out[top.out.index("\nPORT "):].splitlines()[2:4]
                return client.poll() is not None or {line.split()[0] for line in lines} == {"host999/mlx5_1:1", "host1000/mlx5_1:1"}
            expect(within(SECONDS, flows) and client.poll() is None, "the busiest ports are not the first")
            page = written(session, file)
            rows = page.rows("Ports")
            expect(len(rows) == 256 and {row["port"] for row in rows[:2]} == {"host999/mlx5_1:1", "host1000/mlx5_1:1"}, f"{rows[:3]}")
            expect("and 1744 more ports" in " ".join(page.texts) and os.path.getsize(file) < 200000, "a page too large")
        finally:
            for process in (client, server):
                process.kill()
                process.communicate()


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def page_of_errors(session):
    """A queue pair that has failed, and the counters of its port."""
    with place() as file, fabric(session):
        mistake = session.start([session.softhca, "run", "--", str(session.build / "tests/tools/mistakes"), "behind_region", "stay"])
        try:
            def failed():
                return mistake.poll() is not None or '"last_error"' in session.tool("status", "--json").out
            expect(within(SECONDS, failed) and mistake.poll() is None, "nothing fails")
            page = written(session, file)
            failures = {q["failures"] for q in page.rows("Queue pairs") if q["state"] == "ERR"}
            expect({"1 times: REM_ACCESS", "1 times: REMOTE_ACCESS"} & failures, f"{page.rows('Queue pairs')}")
            errors = " ".join(p["errors so far"] for p in page.rows("Ports"))
            expect("req_remote_access_errors 1" in errors, errors)
        finally:
            mistake.kill()
            mistake.communicate()


def watched(session):
    """A page that is written each second is whole at any time, and the last one stays as it is."""
    with place() as file, fabric(session), traffic(session) as qpn:
        watch = session.start([session.softhca, "fabric", "show", "--html", file, "--watch"])
        try:
            expect("end it with Ctrl-C" in watch.stderr.readline(), "it does not begin")
            seen = set()

            def several():
                text = pathlib.Path(file).read_text()
                expect(text.startswith("<!DOCTYPE html>") and text.endswith("</body></html>\n"), "a page that is not whole")
                seen.add(text)
                return len(seen) >= 3

            expect(within(SECONDS, lambda: os.path.exists(file)), "no page")
            expect(within(SECONDS, several), f"{len(seen)} pages")
            page = Page(pathlib.Path(file).read_text())
            expect(page.refresh == "1", f"refresh {page.refresh}")
            shown_traffic(page, qpn)
            watch.send_signal(signal.SIGINT)
            result = session.finish(watch, SECONDS)
            expect(result.status == 0, result.text())
            expect(Page(pathlib.Path(file).read_text()).refresh is None, "the last page looks for another one")
        finally:
            if watch.poll() is None:
                watch.kill()
                watch.communicate()


def fabric_goes(session):
    """One line says that the fabric has gone; the last page stays."""
    with place() as file:
        expect(session.tool("fabric", "up").status == 0, "no fabric")
        watch = session.start([session.softhca, "fabric", "show", "--html", file, "--watch"])
        top = session.start([session.softhca, "top", "-d", "0.2"])
        watch.stderr.readline()
        expect(within(SECONDS, lambda: os.path.exists(file)) and top.stdout.readline(), "neither page nor look")
        session.tool("fabric", "down")
        for process in (watch, top):
            result = session.finish(process, SECONDS)
            expect(result.status == 125 and result.err.count("\n") == 1 and "fabric 'default' has gone" in result.err, result.err)
        Page(pathlib.Path(file).read_text())


HOSTILE = b"<b>&\"'\xff\x1b[3"


@contextlib.contextmanager
def hostile_program(session):
    """A program of that name which has a queue pair."""
    with tempfile.TemporaryDirectory(prefix="softhca-page.") as directory:
        program = os.path.join(os.fsencode(directory), HOSTILE)
        shutil.copyfile(shutil.which("ibv_rc_pingpong"), program)
        os.chmod(program, 0o755)
        port = str(free_port())
        process = session.start([session.softhca, "run", "--", program, "-g", "0", "-p", port])
        try:
            wait_listening(int(port), process)
            yield process.pid
        finally:
            process.kill()
            process.communicate()


TOPOLOGY = """Switch 2 "Sw<i>&'x"
[1] "H<script>alert(1)</script>"[1]

Hca 1 "H<script>alert(1)</script>"
[1] "Sw<i>&'x"[1]
"""


def hostile_names(session):
    """No name is markup, whoever has chosen it."""
    with place() as file, fabric(session), hostile_program(session) as pid:
        page = written(session, file)
        (program,) = [p for p in page.rows("Programs") if p["pid"] == str(pid)]
        expect(program["program"] == "<b>&\"'??[3", f"{program}")
        expect("b" not in page.tags, f"{page.tags}")
        top = session.tool("top", "-n", "1")
        expect(top.status == 0 and "<b>&\"'??[3" in top.out and "\x1b" not in top.out, top.out)
    with place() as file:
        network = pathlib.Path(file).with_name("net")
        network.write_text(TOPOLOGY)
        up = session.tool("fabric", "up", "--topology", str(network))
        expect(up.status == 0, up.text())
        try:
            page = written(session, file)
            expect("H<script>alert(1)</script>" in " ".join(page.texts) and "Sw<i>&'x" in " ".join(page.texts), " ".join(page.texts))
            expect("i" not in page.tags, f"{page.tags}")
        finally:
            session.tool("fabric", "down")


def browser():
    for name in "chromium", "chromium-browser", "google-chrome":
        if shutil.which(name):
            return name
    raise Skip("no chromium is installed (scripts/setup clients-long)")


def browse(session, directory, *arguments):
    """What a headless browser prints; without the sandbox, which root and containers do not have."""
    return session.call(browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={directory}",
                        "--no-first-run", "--disable-background-networking", *arguments, limit=120,
                        env={**session.env, "XDG_RUNTIME_DIR": directory, "HOME": directory})


def in_browser(session):
    """As a browser lays it out, in both colours; the pictures stay among what the check leaves in the build directory."""
    browser()
    with place() as file, fabric(session), traffic(session) as qpn, tempfile.TemporaryDirectory() as profile:
        written(session, file)
        dom = browse(session, profile, "--dump-dom", f"file://{file}")
        expect(dom.status == 0, dom.text())
        page = Page(dom.out[dom.out.index("<html"):])
        shown_traffic(page, qpn)
        artefacts = session.build / "artefacts"
        artefacts.mkdir(exist_ok=True)
        looks = {}
        for colour, setting in ("light", "1"), ("dark", "0"):
            picture = artefacts / f"page-{colour}.png"
            picture.unlink(missing_ok=True)
            result = browse(session, profile, f"--blink-settings=preferredColorScheme={setting}", f"--screenshot={picture}",
                            "--window-size=1200,800", f"file://{file}")
            expect(result.status == 0 and picture.exists(), result.text()[-2000:])
            looks[colour] = picture.read_bytes()
            expect(looks[colour].startswith(b"\x89PNG") and len(looks[colour]) > 10000, f"{picture} is no picture")
        expect(looks["light"] != looks["dark"], "both colours look alike")


def page_refused(session):
    """Each mistake is one line."""
    def line(wanted, status, *argv):
        result = session.tool(*argv)
        expect(result.status == status and result.err.count("\n") == 1 and wanted in result.err and not result.out,
               f"{argv}: status {result.status} {result.text()}")

    with place() as file:
        line("is not running", 125, "fabric", "show", "--html", file)
        line("is not running", 125, "top")
        with fabric(session):
            line("/nowhere/x.html: No such file or directory", 125, "fabric", "show", "--html", "/nowhere/x.html")
            line("/dev/null: it is not a file", 125, "fabric", "show", "--html", "/dev/null")
            line("--watch goes with --html FILE", 2, "fabric", "show", "--watch")
            line("--html goes without", 2, "fabric", "show", "--html", file, "svg")
            line("--html goes without", 2, "fabric", "show", "--json", "--html", file)
            line("the option needs a value", 2, "fabric", "show", "--html")
            line("-n takes a number from 1", 2, "top", "-n", "0")
            for seconds in "0", "0.01", "-1", "nan", "1s", "", "1e9":
                line("-d takes seconds from 0.1 to 3600", 2, "top", "-d", seconds)
            line("bad option: -x", 2, "top", "-x")
            line("unexpected argument: x", 2, "top", "x")
            expect(not os.path.exists(file), "a page was written")


# ---- top ----

def looks(text):
    """The looks of a batch: lines of ports and of queue pairs by their first word."""
    found = []
    for part in text.split("softhca top - ")[1:]:
        _, ports, qps = re.split(r"^(?:PORT|QP) .*\n", part, flags=re.MULTILINE)
        found.append(tuple({line.split()[0]: line for line in block.splitlines() if line} for block in (ports, qps)))
    return found


def top_in_pipe(session):
    with fabric(session), traffic(session) as qpn:
        expect(session.tool("fabric", "impair", "loss=50", "to=host2", "qp=0x123").status == 0, "fabric impair")
        for options in ("-n", "3", "-d", "0.3"), ("-b", "-n", "2", "-d", "0.3"):
            result = session.tool("top", *options)
            expect(result.status == 0 and not result.err and "\x1b" not in result.out, result.text())
            found = looks(result.out)
            expect(len(found) == int(options[options.index("-n") + 1]), result.out)
            for ports, qps in found:
                line = qps[f"0x{qpn:06x}"]
                expect(re.search(r" host2/mlx5_1 +RC +RTS +(?!0 /s)[\d.]+ k?/s ", line), line)
                expect(next(iter(ports)) in ("host1/mlx5_1:1", "host2/mlx5_1:1"), f"not the busiest first: {ports}")
                expect(re.search(r" ACTIVE +[1-9]", ports["host2/mlx5_1:1"]), ports["host2/mlx5_1:1"])
            expect("  impair: loss 50% to=host2 qp=0x123: 0 of 0 packets\n" in result.out, result.out)
        top = session.start([session.softhca, "top", "-d", "0.1"])
        top.stdout.readline()
        top.stdout.close()
        expect(within(SECONDS, lambda: top.poll() is not None), "it goes on when nobody reads")
        top.stderr.close()


class Terminal:
    """softhca top in a terminal of that size."""

    def __init__(self, session, rows, columns, *options):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execve(session.softhca, [session.softhca, "top", *options], session.env)
        self.size(rows, columns)
        self.text = b""

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, done, limit=SECONDS):
        """Reads until done(text), or the end."""
        end = time.monotonic() + limit
        while not done(self.text):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise Failure(f"not within {limit} s: {self.text[-2000:]}")
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                more = b""
            if not more:
                return
            self.text += more

    def modes(self):
        return termios.tcgetattr(self.fd)[3] & (termios.ICANON | termios.ECHO)

    def looks(self, n):
        self.read(lambda text: text.count(b"\x1b[J") >= n)

    def ended(self):
        self.read(lambda text: False, SECONDS)
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@contextlib.contextmanager
def terminal(session, rows, columns, *options):
    t = Terminal(session, rows, columns, *options)
    try:
        yield t
    finally:
        t.close()


def screens(text):
    """What each look has put on the screen, as lines."""
    return [re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", screen).decode().split("\r\n")
            for screen in text.split(b"\x1b[H")[1:]]


def top_in_terminal(session):
    """It keeps to the window, follows its size, and leaves the terminal as it was by each of its ends."""
    with fabric(session), traffic(session) as qpn:
        ends = (lambda t: os.write(t.fd, b"q"), 0), (lambda t: os.write(t.fd, b"\x03"), 0), (lambda t: os.kill(t.pid, signal.SIGTERM), 0)
        for end, status in ends:
            with terminal(session, 24, 80, "-d", "0.2") as t:
                both = termios.ICANON | termios.ECHO
                t.looks(3)
                expect(t.text.startswith(b"\x1b[?1049h") and not t.modes(), f"{t.text[:40]} {t.modes()}")
                expect(f"0x{qpn:06x}".encode() in t.text, f"{t.text[-2000:]}")
                screen = screens(t.text)[1]
                expect(len(screen) <= 24 and max(map(len, screen)) <= 80, f"{screen}")
                end(t)
                t.read(lambda text: text.endswith(b"\x1b[?1049l"))
                expect(within(SECONDS, lambda: t.modes() == both), "the terminal has other modes")
                expect(t.ended() == status, "exit status")
        with terminal(session, 24, 80, "-d", "0.3") as t:
            t.looks(2)
            t.size(6, 40)
            seen = t.text.count(b"\x1b[J")
            t.looks(seen + 3)
            screen = screens(t.text)[-2]
            expect(len(screen) <= 6 and max(map(len, screen)) <= 40, f"{screen}")
            os.write(t.fd, b"q")
            expect(t.ended() == 0, "exit status")


def top_suspended(session):
    """Stopped, it gives the terminal back; continued, it takes it again."""
    with fabric(session), terminal(session, 24, 80, "-d", "0.2") as t:
        t.looks(2)
        os.kill(t.pid, signal.SIGTSTP)
        t.read(lambda text: text.endswith(b"\x1b[?1049l"))
        expect(within(SECONDS, lambda: t.modes() == termios.ICANON | termios.ECHO), "the terminal has other modes")
        before = t.text.count(b"\x1b[?1049h")
        os.kill(t.pid, signal.SIGCONT)
        t.read(lambda text: text.count(b"\x1b[?1049h") > before)
        seen = t.text.count(b"\x1b[J")
        t.looks(seen + 2)
        expect(not t.modes(), "the terminal is not taken again")
        os.write(t.fd, b"q")
        expect(t.ended() == 0, "exit status")


def cases():
    return [(f"monitor: {name}", row) for name, row in (
        ("a page", page_of_traffic), ("a page of ties", page_of_ties), ("bytes of switches", bytes_of_switches),
        ("a page of errors", page_of_errors), ("a page of many ports", large_fabric), ("a page that is watched", watched),
        ("a fabric that goes", fabric_goes), ("hostile names", hostile_names), ("a browser", in_browser),
        ("what is refused", page_refused), ("top in a pipe", top_in_pipe), ("top in a terminal", top_in_terminal),
        ("top that is suspended", top_suspended))]
