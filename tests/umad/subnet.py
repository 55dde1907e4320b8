# SPDX-License-Identifier: BSD-2-Clause
"""A fabric from a topology, with programs on its hosts."""
import os
import pathlib
import shutil
import signal
import tempfile

from harness import TIME_LIMIT, expect, within

NAME = "umad"


class Subnet:
    """As a context: the fabric is up within it, and its files are gone after it."""

    def __init__(self, session, topology=None, sm="builtin", options=()):
        self.session, self.topology, self.sm, self.options = session, topology, sm, options
        self.programs = []

    def __enter__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="softhca-umad."))
        options = list(self.options)
        if self.topology is not None:
            (self.directory / "net").write_text(self.topology)
            options += ["--topology", str(self.directory / "net"), "--sm", self.sm]
        result = self.session.tool("fabric", "up", "--fabric", NAME, *options)
        if result.status != 0:
            shutil.rmtree(self.directory)
        expect(result.status == 0, f"fabric up: status {result.status}\n{result.text()}")
        return self

    def __exit__(self, *_):
        for program in self.programs:
            self.end(program)
        self.session.tool("fabric", "down", "--fabric", NAME)
        shutil.rmtree(self.directory, ignore_errors=True)

    def command(self, host, *program):
        place = ["--host", host] if host else []
        return [self.session.softhca, "run", "--fabric", NAME, *place, "--", *program]

    def environment(self):
        """OpenSM keeps what it knows of a subnet in files; each subnet has its own."""
        return {**self.session.env, "OSM_CACHE_DIR": str(self.directory),
                "OSM_TMP_DIR": str(self.directory)}

    def run(self, host, *program, limit=TIME_LIMIT):
        return self.session.call(*self.command(host, *program), limit=limit,
                                 env=self.environment(), cwd=self.directory)

    def ok(self, host, *program, limit=TIME_LIMIT):
        """Its output, if its status is 0."""
        result = self.run(host, *program, limit=limit)
        expect(result.status == 0, f"status {result.status} of {' '.join(program)}\n{result.text()}")
        return result.out

    def begin(self, host, *program):
        """A program in the background, whose output nobody reads; it ends with the subnet."""
        process = self.session.start(self.command(host, *program), env=self.environment(),
                                     cwd=self.directory)
        self.programs.append(process)
        return process

    def end(self, process, how=signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, how)
        process.communicate()

    # ---- OpenSM ----

    def opensm_once(self, host, *options, log="osm.log"):
        """One sweep of OpenSM.  Its log, which must say that the subnet is up and tell of no error."""
        path = self.directory / log
        result = self.run(host, "opensm", "-o", "-g", "0", "-f", str(path), "--dump_files_dir",
                          str(self.directory), *options)
        text = path.read_text(errors="replace") if path.exists() else ""
        story = result.text() + text
        expect(result.status == 0, f"opensm: status {result.status}\n{story}")
        expect("SUBNET UP" in text, f"opensm does not say SUBNET UP\n{story}")
        errors = [line for line in text.splitlines() if " ERR " in line]
        expect(not errors, "\n".join(["opensm reports errors", *errors, story]))
        return text

    def opensm_begin(self, host, path, *options):
        """In the background; it writes each line of its log at once."""
        return self.begin(host, "opensm", "-g", "0", "-d", "2", "-f", str(path),
                          "--dump_files_dir", str(self.directory), *options)

    def opensm_resident(self, host, *options, log="osm.log"):
        """OpenSM in the background, after it has said that the subnet is up."""
        path = self.directory / log
        process = self.opensm_begin(host, path, *options)
        expect(within(TIME_LIMIT, lambda: process.poll() is not None or self.logged(log, "SUBNET UP")),
               "opensm does not say SUBNET UP\n" + self.log(log))
        expect(process.poll() is None, "opensm has ended\n" + self.log(log))
        return process

    def log(self, name="osm.log"):
        path = self.directory / name
        return path.read_text(errors="replace") if path.exists() else ""

    def logged(self, name, text):
        return text in self.log(name)
