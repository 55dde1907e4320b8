# SPDX-License-Identifier: BSD-2-Clause
"""Where there are no devices, somebody says why, once, and what to do."""
import os
import re
import shutil

import refused
from harness import LEAVE_LIMIT, Skip, expect, public_copy, within

STRANGER = 54321  # a user that has nothing


def environment(session, **changed):
    """That of `softhca env`, with changes; None takes a variable away."""
    lines = session.tool("env").out
    pairs = re.findall(r"^export (\w+)='(.*)'$", lines, re.MULTILINE)
    expect(pairs, f"softhca env says {lines}")
    # it has started a daemon, which would serve a program that cannot start one
    expect(within(LEAVE_LIMIT, lambda: not session.daemons()), "the daemon of softhca env stays")
    env = {**session.env, **dict(pairs), **changed}
    return {k: v for k, v in env.items() if v is not None}


def warned(result, *parts):
    """The program has none, and one line names all of the parts."""
    lines = [line for line in result.err.splitlines() if "warn: " in line]
    expect(result.status not in (0, None) and len(lines) == 1 and
           all(part in lines[0] for part in parts),
           f"wanted one line with {parts}; status {result.status}\n{result.text()}")


def hello(session, env=None, **options):
    return session.call(str(session.build / "examples/hello"), env=env, **options)


def needs_root():
    if os.geteuid() != 0:
        raise Skip("becoming another user needs root")


def dropped_root(session):
    needs_root()
    become = ("setpriv", f"--reuid={STRANGER}", "--clear-groups")
    with public_copy(session.build, "examples/hello") as build:
        result = session.call(str(build / "softhca"), "run", "--", *become, str(build / "examples/hello"))
    warned(result, str(session.runtime), "Permission denied", f"({STRANGER})")


def without_daemon(session):
    warned(hello(session, environment(session, SOFTHCA_DAEMON="/nowhere/softhcad")),
           "/nowhere/softhcad", "SOFTHCA_DAEMON")


def unknown_host(session):
    warned(hello(session, environment(session, SOFTHCA_HOST="nohost")), "nohost", "softhca devices")


def no_host(session):
    warned(hello(session, environment(session, SOFTHCA_HOST=None)), "SOFTHCA_HOST", "softhca run")


def no_fabric(session):
    warned(hello(session, environment(session, SOFTHCA_DIR=None)), "SOFTHCA_DIR", "softhca run")


def few_descriptors(session):
    if not shutil.which("prlimit"):
        raise Skip("prlimit is not there")
    for limit in (5, 8, 12):
        result = session.call("prlimit", f"--nofile={limit}", str(session.build / "examples/hello"),
                              env=environment(session))
        warned(result, "descriptors", f"limit is {limit}")


def refused_calls(session):
    """Filters of a program, and of a daemon that it starts."""
    env = environment(session)
    for calls, parts in ((("clone3", "clone"), ("filter of system calls", "clone3")),
                         (("memfd_create",), ("filter of system calls", "memfd_create"))):
        warned(hello(session, env, preexec_fn=lambda c=calls: refused.forbid(*c)), *parts)
    # The daemon is there; only the program's own threads are refused.
    session.tool("fabric", "up")
    warned(hello(session, env, preexec_fn=lambda: refused.forbid("clone3")), "clone3")
    session.tool("fabric", "down")


def refused_tool(session):
    result = session.run("true", preexec_fn=lambda: refused.forbid("memfd_create"))
    expect(result.status == 125 and "memfd_create" in result.err and "another user" not in result.err,
           result.text())


def foreign_parent(session):
    """Somebody else has made the directory of our fabrics."""
    needs_root()
    parent = session.fabrics_directory()
    parent.mkdir(mode=0o700)
    os.chown(parent, STRANGER, STRANGER)
    result = session.run("true")
    expect(result.status == 125 and f"{parent} belongs to user {STRANGER}" in result.err and
           "have it removed" in result.err, result.text())
    (parent / "default").mkdir(mode=0o700)
    (parent / "default/lock").touch()
    result = session.tool("fabric", "list")
    expect(f"broken: {parent} belongs to user {STRANGER}" in result.out, result.text())
    result = session.tool("fabric", "down")
    expect(result.status == 125 and f"{parent} belongs to user {STRANGER}" in result.err and
           (parent / "default/lock").exists(), result.text())
    shutil.rmtree(parent)


def user_namespace(session):
    """Root of a user namespace and real root do not get into each other's way."""
    needs_root()
    os.chmod(session.runtime, 0o1777)
    with public_copy(session.build, "examples/hello") as build:
        def run(*command):
            return session.call(*command, str(build / "softhca"), "run", "--", "sh", "-c",
                                f"{build}/examples/hello; dirname $SOFTHCA_DIR")
        stranger = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups",
                    "unshare", "-Ur")
        first = run(*stranger)
        if "unshare" in first.err:
            raise Skip("no user namespaces here")
        real, inner = session.fabrics_directory(), session.runtime / f"softhca-0-{STRANGER}"
        expect(first.status == 0 and first.out.endswith(f"{inner}\n"), first.text())
        expect(within(30, lambda: not inner.exists()), "the daemon stays")
        inner.mkdir(mode=0o700)  # one that was left behind
        os.chown(inner, STRANGER, STRANGER)
        result = run()
        expect(result.status == 0 and result.out.endswith(f"{real}\n"), result.text())
        shutil.rmtree(inner)
        expect(within(30, lambda: not real.exists()), "the daemon stays")
        real.mkdir(mode=0o700)
        result = run(*stranger)
        expect(result.status == 0 and result.out.endswith(f"{inner}\n"), result.text())
        real.rmdir()
        expect(within(30, lambda: not inner.exists()), "the daemon stays")
    os.chmod(session.runtime, 0o700)


def open_directory(session):
    directory = session.fabrics_directory() / "default"
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    result = session.run("true")
    expect(result.status == 125 and f"{directory} is open to others" in result.err, result.text())
    shutil.rmtree(directory.parent)


def in_namespace(session, script, *parts):
    """A run in a mount namespace of its own, which the script changes first."""
    needs_root()
    env = {**session.env, "XDG_RUNTIME_DIR": "/nowhere"}
    result = session.call("unshare", "-m", "sh", "-ec", f"{script}; exec {session.softhca} run true",
                          env=env)
    if "unshare" in result.err and "Operation not permitted" in result.err:
        raise Skip("no mount namespaces here")
    expect(result.status == 125 and all(p in result.err for p in parts), result.text())


def read_only_tmp(session):
    # What was built may lie below /tmp.
    build = os.path.dirname(session.softhca)
    in_namespace(session, f"exec 3<{build}; mount -t tmpfs tmpfs /tmp; mkdir -p {build}; "
                 f"mount -c --bind /proc/self/fd/3 {build}; mount -o remount,ro /tmp",
                 "/tmp", "Read-only file system", "XDG_RUNTIME_DIR")


def without_proc(session):
    in_namespace(session, "umount -l /proc", "/proc")


def cases():
    tests = (dropped_root, without_daemon, unknown_host, no_host, no_fabric, few_descriptors,
             refused_calls, refused_tool, foreign_parent, user_namespace, open_directory, read_only_tmp,
             without_proc)
    yield from (("no devices: " + test.__name__.replace("_", " "), test) for test in tests)
