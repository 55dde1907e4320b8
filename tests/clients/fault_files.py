# SPDX-License-Identifier: BSD-2-Clause
"""Files of faults (softhca run --faults, softhca fabric faults): when each happens, what is said of it, and what is wrong
with a file."""
import os
import pathlib
import re
import signal
import tempfile
import tomllib

from faults import ERR, RTS, injected, rules, standing, watched
from harness import Failure, expect, within

GOOD = """
# A comment.
[scenario]
name = 'free'
list = ["a", 'b', 3, true]

[[fault]]            # the port's state stays
at = 0.3
inject = "event=PORT_ERR from=host1/mlx5_0"
why = "a \\"loose\\" cable"

[[fault]]
at = 0.6
until = 0.9
port = "host1/mlx5_0 down"

[[fault]]
inject = 'status=IBV_WC_RETRY_EXC_ERR opcode=atomic'

[[fault]]
at = 1.5e3
impair = "loss=100 to=host2"
"""


class written:
    """A file with that text."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.file.write(self.text)
        self.file.flush()
        return self.file.name

    def __exit__(self, *_):
        self.file.close()


def line_of(text, words):
    return 1 + text[:text.index(words)].count("\n")


def in_time(session):
    """What is due happens in its order, is logged, and is taken away when the program ends."""
    with standing(session), written(GOOD) as path:
        watch = session.background("stdbuf", "-oL", "ibv_asyncwatch", "-d", "mlx5_0",
                                   run_options=("--faults", path))
        lines = [watch.stdout.readline() for _ in range(4)]
        os.killpg(watch.pid, signal.SIGTERM)
        result = session.finish(watch)
        found = [re.search("IBV_EVENT_[A-Z_]*|$", line).group() for line in lines]
        expect(found == ["", "IBV_EVENT_PORT_ERR", "IBV_EVENT_PORT_ERR", "IBV_EVENT_PORT_ACTIVE"], (lines, result.err))
        # A shell says 128 and the signal's number.
        expect(result.status == 128 + signal.SIGTERM, result.text())
        for words, said in (("inject = \"event", '"event=PORT_ERR from=host1/mlx5_0": it has happened (a "loose" cable)'),
                            ("inject = \"event", '1 of 1 objects (a "loose" cable)'),
                            ("port = ", '"host1/mlx5_0 down": from now on'), ("port = ", "no more"),
                            ("inject = 'status", "it never matched: it has met no requests"),
                            ("impair = ", "its time never came")):
            expect(any(f"{path}:{line_of(GOOD, words)}: " in line and said in line for line in result.err.splitlines()),
                   (words, said, result.err))
        times = [float(t) for t in re.findall(r"faults: ([\d.]+) s: .*(?:from now on|no more)", result.err)]
        expect(times == sorted(times) and len(times) == 4 and times[1] >= 0.3 and times[3] >= 0.9, times)
        expect(injected(session) == [] and rules(session) == [], "rules stay")


def statuses(session):
    """The program's own status and arguments, and those of softhca run."""
    with standing(session), written(GOOD) as path:
        for command, status in ((("sh", "-c", "exit 7"), 7), (("sh", "-c", "kill -KILL $$"), 128 + signal.SIGKILL),
                                (("true",), 0), (("/nothing/there",), 127)):
            result = session.run(*command, run_options=("--faults", path))
            expect(result.status == status, (command, result.text()))
        result = session.run("sh", "-c", "echo $0 $1", "a b", run_options=("--faults", path))
        expect(result.out == "a b\n", result.text())
        result = session.run("true", run_options=("--faults", "/nothing/there"))
        expect(result.status == 2 and result.err == "/nothing/there: No such file or directory\n", result.text())


def command(session):
    """softhca fabric faults plays a file beside programs that are there, until Ctrl-C."""
    text = "[[fault]]\nuntil = 0.5\ninject = \"receive=LOC_LEN_ERR\"\n[[fault]]\nport = \"host2/mlx5_0 down\"\n"
    with standing(session), written(text) as path:
        player = session.start([session.softhca, "fabric", "faults", path])
        expect(within(30, lambda: injected(session) == [0]), "nothing is set")
        expect(within(30, lambda: injected(session) == []), "it stays")
        with watched(session, "mlx5_0") as program:
            program.message("success", "success")
        player.send_signal(signal.SIGINT)
        result = session.finish(player)
        expect(result.status == 0 and "it never matched: it has met no receives" in result.err, result.text())
        expect("PORT_DOWN" not in session.tool("run", "--host", "host2", "--", "ibv_devinfo", "-d", "mlx5_0").out,
               "the port stays down")
        expect(session.tool("fabric", "down").status == 0, "fabric down")
        result = session.tool("fabric", "faults", path)
        expect(result.status == 1 or result.status == 125, result.text())
        expect(session.tool("fabric", "up").status == 0, "fabric up")


def killed(session):
    """Rules go with their player, however it ends; those of others stay."""
    text = "[[fault]]\nimpair = \"delay=1000 opcode=atomic\"\n[[fault]]\nat = 0.1\ninject = \"state=error\"\n"
    with standing(session), written(text) as path:
        session.tool("fabric", "impair", "loss=1", "packet=7", "what=data")
        with watched(session, "mlx5_0") as program:
            player = session.start([session.softhca, "fabric", "faults", path])
            program.lines("last WQE reached qp 1", f"states {ERR} {ERR}")
            expect(len(rules(session)) == 2 and injected(session) == [2], rules(session))
            player.kill()
            session.finish(player)
        expect(within(30, lambda: len(rules(session)) == 1 and injected(session) == []), rules(session))


def until(session):
    """A rule works until its time: the message after it comes through."""
    text = "[[fault]]\nuntil = 1\ninject = \"status=12 number=1-1000000\"\n"
    with standing(session), written(text) as path:
        lossy = str(session.build / "tests/clients/lossy")
        result = session.run("sh", "-c", f"{lossy} mlx5_0 rc 10; echo $?; sleep 2; {lossy} mlx5_0 rc 10; echo $?",
                             run_options=("--faults", path))
        expect(re.search(r"^[1-9]\d*\n10 came.*\n0\n", result.out) and not result.status, result.text())


def waits(session):
    """An event waits for a program that has the device open, and what comes later in the file waits with it."""
    text = "[[fault]]\ninject = \"event=GID_CHANGE from=host1/mlx5_0\"\n[[fault]]\nat = 0.2\ninject = \"event=SM_CHANGE\"\n"
    with standing(session), written(text) as path:
        program = session.background("sh", "-c", "sleep 1; exec stdbuf -oL ibv_asyncwatch -d mlx5_0", run_options=("--faults", path))
        lines = [program.stdout.readline() for _ in range(3)]
        os.killpg(program.pid, signal.SIGTERM)
        result = session.finish(program)
        expect("IBV_EVENT_GID_CHANGE" in lines[1] and "IBV_EVENT_SM_CHANGE" in lines[2], (lines, result.err))
        expect(result.err.count("1 of 1 objects") == 2 and result.err.count("from now on") == 2, result.err)


WRONG = (
    ("[[fault]]\nimpair = \"lost=1\"\n", 2, "'lost=1' is no fault of a link: there are loss, corrupt"),
    ("[[fault]]\nimpair = \"loss=101\"\n", 2, "'loss=101' has no value that is allowed: 0 to 100"),
    ("[[fault]]\ninject = \"event=WQ_FATAL\"\n", 2, "there are QP_FATAL"),
    ("[[fault]]\ninject = \"status=5\"\n", 2, "a card completes no send request with IBV_WC_WR_FLUSH_ERR"),
    ("\n\n[[fault]]\nport = \"mlx5_0 sideways\"\n", 4, "down or up, not 'sideways'"),
    ("[[fault]]\nport = \"mlx5_0\"\n", 2, "it takes a device and a state"),
    ("[[fault]]\nat = 1\n\n[[fault]]\nport = \"mlx5_0 up\"\n", 1, "has one of impair, inject and port"),
    ("[[fault]]\nport = \"mlx5_0 up\"\ninject = \"state=error\"\n", 3, "this has port, too"),
    ("[[fault]]\nat = 2\nuntil = 1\nport = \"mlx5_0 up\"\n", 1, "until has to be later than at"),
    ("[[fault]]\nat = -1\n", 2, "at is a number of seconds"),
    ("[[fault]]\nat = \"1\"\n", 2, "at is a number of seconds"),
    ("[[fault]]\nat = 1\nat = 2\n", 3, "at is there twice"),
    ("[[fault]]\nwhen = 1\n", 2, "a [[fault]] has at, until, why"),
    ("at = 1\n", 1, "'at' has to follow a line [[fault]]"),
    ("[fault]\n", 1, "a file of faults has [[fault]] and [scenario], not [fault]"),
    ("[[faults]]\n", 1, "not [[faults]]"),
    ("[[fault]]\ninject = state=error\n", 2, "a value is a \"string\""),
    ("[[fault]]\nat = 01\n", 2, "a value is a \"string\""),
    ("[[fault]]\nat = 1.\n", 2, "a value is a \"string\""),
    ("[[fault]]\nwhy = \"\"\"x\"\"\"\n", 2, "strings of several lines"),
    ("[[fault]]\nwhy = \"x\n", 2, "the string has no end"),
    ("[[fault]]\nwhy = \"\\x\"\n", 2, "of escapes in strings"),
    ("[[fault]]\nwhy = \"x\" y\n", 2, "only a comment can follow here"),
    ("[[fault]]\nwhy = \"" + 300 * "x" + "\"\n", 2, "why has 255 characters at most"),
    ("[[fault]]\nwhy = \"" + 5000 * "x" + "\"\n", 2, "the line is longer than"),
    ("[scenario]\nlist = [1,\n2]\n", 2, "the array does not end on its line"),
    ("[[fault\n", 1, "a table is [name] or [[name]]"),
    ("nonsense\n", 1, "a line is a comment, a [table], a [[table]] or key = value"),
    ("[[fault]]\ninject = \"" + "qp=1 " * 40 + "\"\n", 2, "has from 1 to 31 words"),
    ("# nothing\n", None, "there is no [[fault]] in it"),
    (257 * "[[fault]]\nport = \"mlx5_0 up\"\n", 513, "256 faults at most"),
)


def wrong_files(session):
    """One line says what is wrong and where, and nothing has happened."""
    with standing(session):
        for text, line, said in WRONG:
            with written(text) as path:
                for words in (("fabric", "faults", path), ("run", "--faults", path, "--", "echo", "it runs")):
                    result = session.tool(*words)
                    at = f"{path}:{line}: " if line else f"{path}: "
                    expect(result.status == 2 and not result.out and result.err.startswith(at) and said in result.err and
                           result.err.count("\n") == 1, (text[:200], result.text()))
        expect(rules(session) == injected(session) == [], "something is set")
        with written("[[fault]]\nimpair = \"loss=1 to=nobody\"\n") as path:
            result = session.run("echo", "it runs", run_options=("--faults", path))
            expect(result.status == 2 and f"{path}:2: " in result.err and "nobody" in result.err and not result.out,
                   result.text())


def same_as_others(_):
    """What is read here is TOML, as Python's own reader finds; what that one refuses is refused here."""
    expect(tomllib.loads(GOOD)["fault"][0]["why"] == 'a "loose" cable', tomllib.loads(GOOD))
    for text, _, said in WRONG:
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        # TOML it is, and we say so in another way than by a word about its grammar.
        if "a value is" in said or "a line is" in said or "a table is" in said:
            raise Failure(f"TOML that is not read: {text[:100]}")


def cases():
    yield "fault files: in time", in_time
    yield "fault files: statuses", statuses
    yield "fault files: fabric faults", command
    yield "fault files: killed", killed
    yield "fault files: until", until
    yield "fault files: waits", waits
    yield "fault files: what is wrong", wrong_files
    yield "fault files: TOML", same_as_others
