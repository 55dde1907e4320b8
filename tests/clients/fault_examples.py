# SPDX-License-Identifier: BSD-2-Clause
"""The scenarios of examples/faults: failures that were reported in public, each under a stock program with the outcome that
its file expects.  Without its faults no program has that outcome, unless the file says that it survives them."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import tomllib

from connections import listens
from faults import standing
from harness import Failure, Skip, expect, free_port, wait_listening, within

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/faults"
MPI_PROGRAM = ROOT / "bench/pingpong.c"
KEYS = {"seen": str, "source": str, "needs": list, "server": list, "server_host": str, "program": list, "host": str,
        "model": str, "status": (int, str), "output": list, "absent": list, "ends_after": str, "survives": bool}
LIMIT = 120
DEAF_LIMIT = 3  # for a program that is to end
CONTROL_LIMIT = 3  # for the outcome of a program that goes on for ever, where it must not come


class Run:
    """The program of a scenario, with its server if it has one, with or without the faults."""

    def __init__(self, session, scenario, path, directory):
        self.session, self.scenario, self.path, self.port = session, scenario, path, free_port()
        self.directory = directory

    def words(self, key):
        words = [word.replace("{port}", str(self.port)) for word in self.scenario[key]]
        if "{mpi}" in words:
            program = f"{self.directory}/pingpong"
            subprocess.run(["mpicc", "-O2", "-o", program, str(MPI_PROGRAM)], check=True)
            words[words.index("{mpi}")] = program
        return words

    def serve(self):
        if "server" not in self.scenario:
            return None
        server = self.session.background(*self.words("server"), stdin=self.terminal, run_options=(
            "--host", self.scenario.get("server_host", "host1")))
        if "{port}" in " ".join(self.scenario["server"]):
            wait_listening(self.port, server)
        else:
            listens(self.session, server)
        return server

    def end(self, program):
        """Ends the program: by a signal that softhca run passes on, or, if it does not hear that, itself."""
        os.killpg(program.pid, signal.SIGTERM)
        if not within(DEAF_LIMIT, lambda: program.poll() is not None):
            for child in pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)

    def told(self, program, limit):
        """What a program says that goes on for ever, up to a text in its output, or until the time is over."""
        timer = threading.Timer(limit, self.end, (program,))
        timer.start()
        said = []
        for line in iter(program.stdout.readline, ""):
            said.append(line)
            if self.scenario["ends_after"] in line:
                self.end(program)
                break
        timer.cancel()
        result = self.session.finish(program)
        result.out = "".join(said) + result.out
        return result

    def run(self, faults):
        ours, self.terminal = os.openpty()  # ucx_perftest ends without one
        server = self.serve()
        try:
            program = self.session.background(*self.words("program"), stdin=self.terminal, run_options=(
                "--host", self.scenario.get("host", "host1"), *(("--faults", str(self.path)) if faults else ())))
            if "ends_after" in self.scenario:
                return self.told(program, LIMIT if faults else CONTROL_LIMIT)
            return self.session.finish(program, LIMIT)
        finally:
            if server:
                if server.poll() is None:
                    os.killpg(server.pid, signal.SIGKILL)
                server.communicate()
            os.close(ours)
            os.close(self.terminal)


def of_program(result):
    """What the program itself has said."""
    return "\n".join(line for line in result.text().splitlines() if not line.startswith(("softhca faults: ", "softhca[")))


def has_outcome(scenario, result):
    """Whether the program ended as the file says, and said what it says."""
    status, text = scenario.get("status"), of_program(result)
    ended = {None: True, "failure": result.status != 0}.get(status, result.status == status)
    return (ended and all(said in text for said in scenario.get("output", ())) and
            not any(said in text for said in scenario.get("absent", ())))


def check_keys(name, document):
    """A file that says nothing that can be checked is no scenario."""
    scenario = document.get("scenario", {})
    for key, value in scenario.items():
        expect(key in KEYS and isinstance(value, KEYS[key]), f"{name}: [scenario] knows no {key} = {value}")
    expect({"seen", "source", "needs", "program"} <= set(scenario), f"{name}: [scenario] has too few keys")
    expect(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", scenario["source"]), f"{name}: source = {scenario['source']}")
    expect(scenario.get("output") or "status" in scenario, f"{name}: nothing is expected")
    expect(isinstance(scenario.get("status", 0), int) or scenario["status"] == "failure", f"{name}: status")
    return scenario


def happened(path, document, result):
    """Each fault of the file has happened."""
    expect(result.err.count(": from now on") >= len(document["fault"]), result.text())
    rules = [fault for fault in document["fault"] if "port" not in fault]
    expect(len(set(re.findall(rf"{path}:(\d+): .*: it has happened", result.err))) == len(rules), result.text())


def example(path):
    def case(session):
        document = tomllib.loads(path.read_text())
        scenario = check_keys(path.name, document)
        for program in scenario["needs"]:
            if not shutil.which(program):
                raise Skip(f"{program} is not there")
        with standing(session, *(("--model", scenario["model"]) if "model" in scenario else ())), tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
            result = Run(session, scenario, path, directory).run(True)
            happened(path, document, result)
            expect(has_outcome(scenario, result), f"status {result.status}\n{result.text()}")
            if scenario.get("survives"):
                return
            result = Run(session, scenario, path, directory).run(False)
            if has_outcome(scenario, result):
                raise Failure(f"the same without faults: status {result.status}\n{result.text()}")
    return case


def enough(_):
    names = [path.name for path in EXAMPLES.glob("*.toml")]
    expect(len(names) >= 20, names)


def cases():
    yield "fault example: twenty of them", enough
    for path in sorted(EXAMPLES.glob("*.toml")):
        yield f"fault example: {path.stem}", example(path)
