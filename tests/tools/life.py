# SPDX-License-Identifier: BSD-2-Clause
"""The daemon's life: its directory goes, its log."""
import shutil

from harness import LEAVE_LIMIT, expect, within


def directory(session):
    (found,) = session.runtime.glob("softhca-*/default")
    return found


def directory_removed(session):
    """End of a session, cleaners of /tmp: the daemon does not stay where nobody finds it."""
    for remove in (lambda path: shutil.rmtree(path.parent),
                   lambda path: (path / "lock").unlink(),
                   lambda path: path.parent.rename(session.runtime / "elsewhere")):
        session.tool("fabric", "up")
        expect(len(session.daemons()) == 1, f"{session.daemons()}")
        remove(directory(session))
        expect(within(LEAVE_LIMIT, lambda: not session.daemons()), "the daemon stays")
        for path in session.runtime.iterdir():
            shutil.rmtree(path)
        expect(session.tool("fabric", "status").status == 1, "a fabric is shown")


def directory_taken_over(session):
    """The old daemon leaves the new one's files alone."""
    session.tool("fabric", "up")
    (old,) = session.daemons()
    shutil.rmtree(directory(session).parent)
    session.tool("fabric", "up")
    expect(within(LEAVE_LIMIT, lambda: old not in session.daemons()), "the old daemon stays")
    expect("mlx5_1" in session.run_ok("ibv_devices").out, "no devices afterwards")
    expect(session.tool("fabric", "status").status == 0, "no fabric afterwards")
    session.tool("fabric", "down")


def removed_under_program(session):
    """A program that has a device open is told, as when a fabric is taken down."""
    program = session.background("ibv_asyncwatch")
    expect(within(LEAVE_LIMIT, lambda: "ibv_asyncwatch" in session.tool("fabric", "status").out or
                  '"slot"' in session.tool("fabric", "status", "--json").out), "no program")
    shutil.rmtree(directory(session).parent)
    expect(within(LEAVE_LIMIT, lambda: not session.daemons()), "the daemon stays")
    program.kill()
    result = session.finish(program)
    expect("daemon has gone" in result.err, result.text())


def log_of_daemon(session):
    """Without another file the log is in the fabric's directory."""
    env = {**session.env, "SOFTHCA_LOG": "info"}
    session.tool("fabric", "up", env=env)
    text = (directory(session) / "log").read_text()
    expect("serving in" in text, f"the log says: {text}")
    session.tool("fabric", "down")


def log_file_of_user(session):
    path = session.runtime / "mine"
    env = {**session.env, "SOFTHCA_LOG": "info", "SOFTHCA_LOG_FILE": str(path)}
    session.tool("fabric", "up", env=env)
    session.tool("fabric", "down", env=env)
    text = path.read_text()
    path.unlink()
    expect("serving in" in text and "leaving" in text, f"the log says: {text}")


def log_file_unwritable(session):
    env = {**session.env, "SOFTHCA_LOG_FILE": "/nowhere/log"}
    result = session.run("true", env=env)
    expect(result.status == 0 and "/nowhere/log" in result.err and "standard error" in result.err,
           result.text())
    result = session.run("true", env={**session.env, "SOFTHCA_LOG": "loud"})
    expect("loud" in result.err, result.text())


def cases():
    tests = (directory_removed, directory_taken_over, removed_under_program, log_of_daemon,
             log_file_of_user, log_file_unwritable)
    yield from (("daemon: " + test.__name__.replace("_", " "), test) for test in tests)
