# SPDX-License-Identifier: BSD-2-Clause
"""Programs that were built elsewhere and send back the frames that they get, with the addresses exchanged.  The file
reflectors.tsv has a line for each: a name, the command (run in the directory), the device, the address of the sender
that it answers to, the options of frames (tests/outside/frames.c), and what ends it, enter or SIGINT, separated by
tabs."""
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile

from harness import Skip, expect

from programs import environment

PEER = "02:00:00:00:00:99"  # to whom the frames go; reflectors do not look at it
TIME_LIMIT = 120  # seconds
# What it prints goes to a file: nobody reads a pipe meanwhile, and one that is full would hold the program up.
TO_FILE = 'exec "$@" >"$0" 2>&1'


def ended(session, process, how):
    if how == "SIGINT":
        process.send_signal(signal.SIGINT)
    else:
        process.stdin.write("\n")
        process.stdin.flush()
    return session.finish(process, TIME_LIMIT)


def reflected(directory, command, device, own, options, how):
    def test(session):
        frames = pathlib.Path(session.build).resolve() / "tests/outside/frames"
        if not frames.exists():
            raise Skip("the tests are not built")
        if os.geteuid() != 0:
            raise Skip("raw packet queues need root")
        with tempfile.NamedTemporaryFile("r", errors="replace") as said:
            process = session.background("sh", "-c", TO_FILE, said.name, *shlex.split(command), cwd=directory,
                                         env=environment(session), stdin=subprocess.PIPE)
            try:
                judged = session.run(str(frames), *shlex.split(options), device, own, PEER, limit=TIME_LIMIT)
                expect(process.poll() is None, f"the program has ended by itself\n{said.read()}")
                result = ended(session, process, how)
            finally:
                process.kill()
            expect(judged.status == 0, f"{judged.text()}\n{said.read()[-2000:]}")
            expect(result.status == 0, f"the program's status is {result.status}\n{said.read()[-2000:]}")
    return test


def cases(directory):
    table = directory / "reflectors.tsv"

    def skipped(_):
        raise Skip(f"{table} is not there")

    if not table.is_file():
        yield "programs that send frames back", skipped
        return
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            name, *rest = line.split("\t")
            yield name, reflected(directory, *rest)
