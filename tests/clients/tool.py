# SPDX-License-Identifier: BSD-2-Clause
"""The tool itself: it must be invisible to the program and leave nothing behind."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "inject"))
import daemon as faulty  # noqa: E402
import injector  # noqa: E402
from harness import (LEAVE_LIMIT, Skip, all_ended_well, cpu_seconds, data_flows, expect, free_port,  # noqa: E402
                     public_copy, wait_listening, within)


def complains(result, *words):
    """A refusal: status other than 0 and one clear line."""
    lines = result.err.strip().splitlines()
    expect(result.status not in (0, None) and result.status > 0, f"status {result.status}")
    expect(len(lines) == 1, f"{len(lines)} lines:\n{result.err}")
    for word in words:
        expect(word in lines[0], f"no '{word}' in: {lines[0]}")


def exit_status(session):
    for status in (0, 1, 7, 255):
        result = session.run("sh", "-c", f"exit {status}")
        expect(result.status == status, f"{result.status}, expected {status}")


def killed_by_signal(session):
    result = session.run("sh", "-c", "kill -TERM $$")
    expect(result.status == -signal.SIGTERM, f"status {result.status}")


def signal_reaches_program(session):
    process = session.background("sh", "-c", "echo up; exec sleep 600")
    expect(process.stdout.readline() == "up\n", "the program did not start")
    # not SIGINT: a shell's background job ignores that, and all that it starts
    process.send_signal(signal.SIGTERM)
    expect(session.finish(process).status == -signal.SIGTERM, "SIGTERM did not end the program")


def streams(session):
    result = session.run("sh", "-c", "echo out; echo err >&2")
    expect((result.out, result.err) == ("out\n", "err\n"), result.text())


def arguments(session):
    result = session.run("printf", "%s|", "a b", "", "--host", "$x")
    expect(result.out == "a b||--host|$x|", repr(result.out))


def unknown_option(session):
    complains(session.tool("run", "--no-such-option", "--", "true"), "no-such-option")


def unknown_command(session):
    complains(session.tool("no-such-command"), "no-such-command")


def unknown_way(session):
    """The option is refused with the ways that there are; by the environment the default is used."""
    for way in ("auto", "kernel", "packets"):
        result = session.tool("run", "--memory", way, "--", "true")
        expect(result.status == 0 and not result.err, result.text())
    for way in ("mapped", "", "Auto"):
        result = session.tool("run", "--memory", way, "--", "true")
        complains(result, f"memory is auto, kernel or packets, not: {way}")
        expect(result.status == 2, f"status {result.status}")
    result = session.run("ibv_devinfo", "-d", "mlx5_0", env={**session.env, "SOFTHCA_MEMORY": "mapped"})
    expect(result.status == 0 and
           result.err.count("SOFTHCA_MEMORY is auto, kernel or packets, not: mapped") == 1, result.text())


def models(session):
    """Another card by name; a fabric keeps the one that it was started with."""
    result = session.tool("run", "--model", "connectx-6dx", "--", "ibv_devinfo", "-d", "mlx5_0")
    expect(result.status == 0 and re.search(r"vendor_part_id:\s+4125\b", result.out) and
           re.search(r"fw_ver:\s+22\.", result.out), result.text())
    up = session.tool("fabric", "up", "--model", "connectx-7")
    expect(up.status == 0, up.text())
    try:
        seen = session.run_ok("ibstat", "mlx5_1")
        expect("CA type: MT4129" in seen.out, seen.text())
        complains(session.tool("run", "--model", "connectx-5", "--", "true"), "connectx-7")
    finally:
        session.tool("fabric", "down")
    complains(session.tool("run", "--model", "connectx-99", "--", "true"), "connectx-99")


def next_model(session):
    """Another card for the next program, also if the last one's daemon has not had time to leave."""
    program = session.background("sleep", "1000")
    expect(within(30, lambda: "sleep" in session.processes().values()), "the program does not run")
    (daemon,) = session.daemons()
    os.kill(daemon, signal.SIGSTOP)
    try:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        following = session.background("ibv_devinfo", "-d", "mlx5_0", run_options=("--model", "connectx-7"))
        time.sleep(0.2)
    finally:
        os.kill(daemon, signal.SIGCONT)
    result = session.finish(following)
    expect(result.status == 0 and re.search(r"vendor_part_id:\s+4129\b", result.out), result.text())


def trees(session):
    """Hosts that have a device tree."""
    return sorted(path.name for path in session.runtime.glob("softhca-*/*/hosts/*"))


def status_has_all_hosts(session, hosts):
    names = [f"host{n + 1}" for n in range(hosts)]
    text = session.tool("fabric", "status").out.splitlines()
    expect([line for line in text if line.startswith("host")] == names, "not all hosts in order")
    listed = json.loads(session.tool("fabric", "status", "--json").out)["hosts"]
    expect([host["name"] for host in listed] == names, "not all hosts in order in JSON")
    expect(all(len(host["ports"]) == 2 for host in listed), "hosts without their ports")
    guids = {port["port_guid"] for host in listed for port in host["ports"]}
    expect(len(guids) == 2 * hosts, "ports of other hosts")


def host_costs(session, function, hosts):
    """How often the daemon calls that function while a program runs on each of these hosts."""
    costs = {}
    with injector.report() as page:
        page.hold(True)
        fabric = faulty.Daemon(session, page, 0, 0, session.build / "tests/inject/libinject.so",
                               {"SOFTHCA_HOSTS": "10000", "INJECT_ONLY": function})
        try:
            expect(fabric.serves(), "the daemon does not serve")
            page.hold(False)
            for host in hosts:
                before = page.calls
                seen = session.tool("run", "--fabric", faulty.FABRIC, "--host", host, "--",
                                    "ibv_devinfo", "-d", "mlx5_1")
                expect(seen.status == 0 and "PORT_ACTIVE" in seen.out, seen.text())
                fabric.rest()
                costs[host] = page.calls - before
        finally:
            fabric.end()
    return costs


def hosts_cost_the_same(session):
    """A program on the last of 10,000 hosts makes the daemon send and write no more than one on the
    first, which has the machine's network interface besides."""
    for function in ("sendmsg", "mkdirat", "openat64", "write"):
        costs = host_costs(session, function, ("host1", "host2", "host10000"))
        expect(0 < costs["host10000"] == costs["host2"] <= costs["host1"],
               f"calls of {function}: {costs}")


def many_hosts(session):
    """Hosts are rows: only those that programs run on have files, and the last is like the first."""
    begin = time.monotonic()
    up = session.tool("fabric", "up", "--hosts", "10000")
    took = time.monotonic() - begin
    expect(up.status == 0, up.text())
    try:
        (daemon,) = session.daemons()
        ready = cpu_seconds(daemon)
        expect(not trees(session), f"before any lease: {trees(session)}")
        times = {}
        for host in ("host1", "host10000", "host7777"):
            begin = time.monotonic()
            seen = session.tool("run", "--host", host, "--", "ibv_devinfo", "-d", "mlx5_1")
            times[host] = time.monotonic() - begin
            expect(seen.status == 0 and "PORT_ACTIVE" in seen.out, seen.text())
        expect(trees(session) == ["host1", "host10000", "host7777"], str(trees(session)))
        for host, lid in (("host1", "0x1"), ("host10000", "0x2710")):
            path = "/sys/class/infiniband/mlx5_0/ports/1/lid"
            seen = session.tool("run", "--host", host, "--", "cat", path)
            expect(seen.out.strip() == lid, seen.text())
        complains(session.tool("run", "--host", "host10001", "--", "true"), "host10001")
        complains(session.tool("fabric", "up", "--hosts", "3"), "10000 hosts")
        status_has_all_hosts(session, 10000)
        print(f"10,000 hosts: up in {took:.3f} s, {ready:.2f} of computing; programs in " +
              ", ".join(f"{t:.3f} s on {host}" for host, t in times.items()))
    finally:
        session.tool("fabric", "down")
    for wrong in ("0", "-1", "2x", "65536"):
        complains(session.tool("fabric", "up", "--hosts", wrong), wrong)
    refused = session.tool("fabric", "up", "--hosts", "43521")
    expect(refused.status != 0 and "host43521" in refused.err and "198.18.0.0/15" in refused.err,
           refused.text())


def unknown_host(session):
    complains(session.tool("run", "--host", "nosuchhost", "--", "true"), "nosuchhost")


def missing_program(session):
    result = session.run("no-such-program")
    complains(result, "no-such-program")
    expect(result.status == 127, f"status {result.status}")


def not_executable(session):
    with tempfile.NamedTemporaryFile(mode="w", suffix=".txt") as f:
        f.write("text\n")
        f.flush()
        os.chmod(f.name, 0o644)
        result = session.run(f.name)
    complains(result)
    expect(result.status == 126, f"status {result.status}")


@contextlib.contextmanager
def compiled(*command):
    """A program that ends with 0 if it sees the device, by this compiler."""
    if not shutil.which(command[0]):
        raise Skip(f"no {command[0]}")
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        program = os.path.join(directory, "program")
        built = subprocess.run([*command, "-x", "c", "-", "-o", program], text=True, capture_output=True,
                               input='#include <unistd.h>\nint main(void) { return -access("/sys/class/infiniband/mlx5_0", F_OK); }\n')
        expect(built.returncode == 0, built.stderr)
        yield pathlib.Path(program)


def refused(session, program, *words):
    """Before it starts, with the reason and what to do."""
    result = session.run(str(program))
    complains(result, str(program), "cannot be given devices", *words)
    expect(result.status == 126, f"status {result.status}")


def static_program(session):
    with compiled("gcc", "-static") as program:
        refused(session, program, "it is statically linked", "link it with shared libraries", "--view=mount")
    # Debian has it in two forms.
    busybox = shutil.which("busybox")
    if busybox and b"/ld-linux" not in pathlib.Path(busybox).read_bytes():
        refused(session, busybox, "it is statically linked")


def program_of_another_library(session):
    """Of musl: refused.  With the files mounted it starts, without the library, also where an outer softhca run set that."""
    with compiled("musl-gcc") as program:
        refused(session, program, "musl", "/lib/ld-musl-", "a build of it for the GNU C library", "--view=mount")
        if os.path.exists("/dev/fuse") and (session.build / "softhca-view").exists():
            for outer in ([], [session.softhca, "run", "--"]):
                result = session.call(*outer, session.softhca, "run", "--view", "mount", "--", str(program))
                expect(result.status == 0 and not result.text(), result.text())
    with compiled("musl-gcc", "-static") as program:
        refused(session, program, "it is statically linked")


def program_for_another_machine(session):
    """Made by a cross compiler if there is one, and by another byte or two in the header."""
    if shutil.which("aarch64-linux-gnu-gcc"):
        with compiled("aarch64-linux-gnu-gcc", "-nostdlib", "-Wl,-e,main", "-Wl,--unresolved-symbols=ignore-all") as program:
            refused(session, program, "another kind of machine (aarch64, and this is x86-64)", "a build of it for this machine")
    with compiled("gcc") as program:
        header = program.read_bytes()
        for at, value, words in ((18, 183, "(aarch64, and this is"), (18, 243, "(riscv, and this is"), (18, 200, "(another machine, and"),
                                 (5, 2, "(big-endian, and"), (4, 1, "not a 64-bit program"), (54, 1, "program headers make no sense")):
            program.write_bytes(header[:at] + bytes([value]) + header[at + 1:])
            refused(session, program, words)
        program.write_bytes(header[:40])
        refused(session, program, "ELF header is cut short", "the file is damaged")
        # Not to the shell, which takes for a script what the kernel refuses.
        program.write_bytes(header[:18] + bytes([183]) + header[19:])
        if os.path.exists("/dev/fuse") and (session.build / "softhca-view").exists() and \
                not os.path.exists("/proc/sys/fs/binfmt_misc/qemu-aarch64"):
            complains(session.tool("run", "--view", "mount", "--", str(program)), "Exec format error")


def program_with_rights(session):
    """Set-user-ID of another user, set-group-ID, or with capabilities; a copy has devices."""
    if os.geteuid() != 0:
        raise Skip("only root can make such programs")
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        os.chmod(directory, 0o755)
        program = pathlib.Path(directory, "devices")
        for owner, group, mode in ((65534, 0, 0o4755), (0, 65534, 0o2755)):
            shutil.copyfile(shutil.which("ibv_devices"), program)
            os.chown(program, owner, group)
            program.chmod(mode)
            refused(session, program, "it is setuid, setgid or has capabilities", "start a copy", "--view=mount")
        os.chown(program, 0, 0)
        program.chmod(0o755)
        # CAP_NET_RAW, permitted and effective (linux/capability.h: VFS_CAP_REVISION_2)
        os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
        with public_copy(session.build) as build:
            complains(session.call("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(build / "softhca"), "run", "--",
                                   str(program)), "has capabilities")
        copy = pathlib.Path(directory, "copy")
        shutil.copyfile(program, copy)
        copy.chmod(0o755)
        expect("mlx5_1" in session.run_ok(str(copy)).out, "no device in the copy")


def script(session):
    """A script is run by its interpreter, with the devices."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "script")
        path.write_text("#!/bin/sh\nibv_devices\n")
        path.chmod(0o755)
        expect("mlx5_1" in session.run_ok(str(path)).out, "no device in the script")


def help_and_version(session):
    for arguments in (["--help"], ["run", "--help"], ["env", "--help"], ["fabric", "--help"],
                      ["devices", "--help"], ["--version"]):
        result = session.tool(*arguments)
        expect(result.status == 0 and result.out, f"{arguments}: {result.text()}")


def version_of_libraries(session):
    """--version names rdma-core's release, as its package does, and what is missing."""
    if not shutil.which("dpkg-query"):
        raise Skip("no dpkg-query")
    package = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "ibverbs-providers"], capture_output=True, text=True).stdout
    release = re.match(r"\d+", package)
    if not release:
        raise Skip("ibverbs-providers is not installed as a package")
    lines = session.tool("--version").out.splitlines()
    expect(len(lines) == 3 and lines[0].startswith("softhca "), lines)
    for name, line in zip(("libibverbs", "libmlx5"), lines[1:]):
        expect(line.startswith(f"{name}.so.1: of rdma-core {release.group()}, /"), line)
        expect(os.path.exists(line.split(", ")[1]), line)
    library = lines[2].split(", ")[1]
    result = session.call("unshare", "-rm", "sh", "-c", 'mount --bind /dev/null "$1" && exec "$2" --version', "sh", library,
                          session.softhca)
    if "unshare" in result.err or "mount" in result.err:
        raise Skip(result.err)
    expect(result.status == 0 and "libmlx5.so.1: not found" in result.out and "ibverbs-providers" in result.out and
           "libibverbs.so.1: of rdma-core" in result.out, result.text())


@contextlib.contextmanager
def foreign_daemon(session, delta):
    """A fabric whose softhcad speaks another version of the protocol (other_version.c)."""
    library = session.build / "tests/clients/other_version.so"
    directory = session.fabrics_directory() / "foreign"
    directory.parent.mkdir(mode=0o700, exist_ok=True)
    told, tells = os.pipe()
    daemon = subprocess.Popen([str(session.build / "softhcad"), "--dir", str(directory), "--stay", "--ready-fd", str(tells)],
                              pass_fds=[tells], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**session.env, "LD_PRELOAD": str(library), "OTHER_VERSION": str(delta)})
    os.close(tells)
    try:
        with os.fdopen(told, "rb") as verdict:
            expect(verdict.read(4) == bytes(4), "the daemon does not serve")
        yield daemon, directory
    finally:
        daemon.kill()
        daemon.communicate()


def other_version(session, delta, word):
    """One line says so: of the tool, and of a program whose environment is of another softhca; the fabric can be taken down."""
    words = (f"is served by a softhcad of {word} version", "softhca fabric down --fabric foreign")
    with foreign_daemon(session, delta) as (daemon, directory):
        for command in (["run", "--fabric", "foreign", "--", "true"], ["env", "--fabric", "foreign"],
                        ["status", "--fabric", "foreign"], ["devices", "--fabric", "foreign"],
                        ["fabric", "up", "--fabric", "foreign"], ["run", "--fabric", "foreign", "--host", "host2", "--", "true"]):
            complains(session.tool(*command), str(directory), *words)
        program = session.call("ibv_devinfo", env={
            **session.env, "LD_PRELOAD": str(session.build / "libsofthca-preload.so"), "SOFTHCA_DIR": str(directory), "SOFTHCA_HOST": "host1",
            "SOFTHCA_DAEMON": str(session.build / "softhcad")})
        said = [line for line in program.err.splitlines() if "softhca" in line]
        expect(program.status > 0 and len(said) == 1 and all(text in said[0] for text in words), program.text())
        listed = session.tool("fabric", "list")
        expect(listed.status == 0 and "foreign" in listed.out and words[0] in listed.out, listed.text())
        expect(daemon.poll() is None, "the daemon has ended by this")
        down = session.tool("fabric", "down", "--fabric", "foreign")
        expect(down.status == 0 and "fabric foreign is down" in down.out, down.text())
        expect(daemon.wait(LEAVE_LIMIT) == 0 and not directory.exists(), f"status {daemon.returncode}, or files are left")


def daemon_of_a_newer_version(session):
    other_version(session, 1, "a newer")


def daemon_of_an_older_version(session):
    other_version(session, -1, "an older")


def manual_options(page):
    """The options of each subcommand in the SYNOPSIS of a page in mdoc(7)."""
    options, command = {}, None
    for line in page.split(".Sh SYNOPSIS\n")[1].split(".Sh ")[0].splitlines():
        if line.startswith(".Cm ") and command is None:
            command = line[4:]
            options[command] = set()
        elif line == ".Nm":
            command = None
        elif command is not None:
            options[command] |= {"--" + name for name in re.findall(r"\bFl Fl ([\w-]+)", line)}
    return options


def manual_page_is_up_to_date(session):
    """The manual page has the subcommands and options of the help texts, and all variables."""
    source = pathlib.Path(__file__).resolve().parents[2]
    page = (source / "man/softhca.1").read_text()
    usage = session.tool("--help").out
    commands = re.findall(r"^  softhca ((?:fabric )?[a-z]+) ", usage, re.MULTILINE)
    manual = manual_options(page)
    expect(commands and set(manual) == set(commands), f"{sorted(manual)}, help: {commands}")
    every = set()
    for command in commands:
        synopsis = session.tool(*command.split(), "--help").out.splitlines()[0]
        options = set(re.findall(r"--[a-z][\w-]*", synopsis))
        expect(manual[command] == options, f"{command}: {manual[command]}, help: {options}")
        every |= options
    described = {"--" + name for name in re.findall(r"^\.It Fl Fl ([\w-]+)", page, re.MULTILINE)}
    expect(described == every | {"--help", "--version"}, f"described: {described}, in help texts: {every}")
    variables = set(re.findall(r"^\| `(SOFTHCA_\w+)`",
                               (source / "docs/environment.md").read_text(), re.MULTILINE))
    named = set(re.findall(r"^\.It Ev (SOFTHCA_\w+)", page, re.MULTILINE))
    expect(variables and named == variables, f"variables: {named}, documented: {variables}")


def env_of_no_host(session):
    """A script that ends at errors does not go on without devices."""
    for host in ("nohost", "no/host"):
        result = session.call("bash", "-ec", f'eval "$({session.softhca} env --host {host})"; '
                              "echo went on")
        expect(result.status == 1 and not result.out and host in result.err, result.text())


def env_eval(session):
    result = session.call("sh", "-c", f'eval "$({session.softhca} env)" && ibv_devices')
    expect(result.status == 0 and "mlx5_0" in result.out, result.text())


def env_of_valgrind(session):
    """Ours come first, once, so that the user's win."""
    for before, after in ((None, "--fair-sched=try"), ("-q --fair-sched=no", "--fair-sched=try -q --fair-sched=no"),
                          ("--fair-sched=try -v", "--fair-sched=try -v")):
        env = {k: v for k, v in session.env.items() if k != "VALGRIND_OPTS"}
        if before:
            env["VALGRIND_OPTS"] = before
        result = session.run("printenv", "VALGRIND_OPTS", env=env)
        expect(result.out.strip() == after, f"{before!r} becomes {result.text()}")
        result = session.call("sh", "-c", f'eval "$({session.softhca} env)" && printenv VALGRIND_OPTS && '
                              f'eval "$({session.softhca} env --unset)" && echo "${{VALGRIND_OPTS-none}}"', env=env)
        expect(result.out.split("\n")[:2] == [after, before or "none"], f"{before!r}: {result.text()}")


def devices(session):
    result = session.tool("devices")
    expect(result.status == 0 and "mlx5_0" in result.out and "mlx5_1" in result.out,
           result.text())
    result = session.tool("devices", "--json")
    expect("mlx5_1" in json.dumps(json.loads(result.out)), result.out)


def status_is_device_tree(session, status):
    """The tool and the daemon print the same of a port."""
    for port in status["hosts"][0]["ports"]:
        place = f"/sys/class/infiniband/{port['device']}/ports/{port['port']}"
        for name in ("state", "phys_state", "rate", "lid", "lid_mask_count", "sm_lid", "sm_sl",
                     "cap_mask", "link_layer"):
            text = session.run_ok("cat", f"{place}/{name}").out.strip()
            expect(port[name] == text, f"{place}/{name}: {text}, status says {port[name]}")


def fabric_up_status_down(session):
    up = session.tool("fabric", "up")
    expect(up.status == 0, up.text())
    try:
        for _ in range(2):
            session.run_ok("ibv_devices")
        expect(len(session.daemons()) == 1, f"daemons: {session.daemons()}")
        status = session.tool("fabric", "status")
        expect(status.status == 0 and "mlx5_0" in status.out, status.text())
        status = session.tool("fabric", "status", "--json")
        expect("mlx5_1" in json.dumps(json.loads(status.out)), status.text())
        status_is_device_tree(session, json.loads(status.out))
    finally:
        down = session.tool("fabric", "down")
    expect(down.status == 0, down.text())
    # "down" returns when everything is removed; the process itself may take a moment more to end.
    left = [p for p in session.leftovers() if not p.startswith("process")]
    expect(not left, f"left behind: {left}")
    session.expect_clean()


def fabrics_are_separate(session):
    """Two names, two daemons."""
    first = session.tool("fabric", "up", "--fabric", "one")
    second = session.tool("fabric", "up", "--fabric", "two")
    try:
        expect(first.status == 0 and second.status == 0, first.text() + second.text())
        expect(len(session.daemons()) == 2, f"daemons: {session.daemons()}")
    finally:
        session.tool("fabric", "down", "--fabric", "one")
        session.tool("fabric", "down", "--fabric", "two")


def concurrent_runs(session):
    processes = [session.background("ibv_devinfo") for _ in range(20)]
    results = [session.finish(p) for p in processes]
    for result in results:
        expect(result.status == 0 and "mlx5_1" in result.out, result.text())


def concurrent_traffic(session):
    """Four pairs at a time share one daemon."""
    started = {}
    for number in range(4):
        port = str(free_port())
        server = session.background("ibv_rc_pingpong", "-e", "-p", port)
        wait_listening(int(port), server)
        client = session.background("ibv_rc_pingpong", "-e", "-p", port, "127.0.0.1")
        started |= {f"server {number}": server, f"client {number}": client}
    all_ended_well(session.finish_all(started))


def program_killed(session):
    process = session.background("ibv_rc_pingpong", "-d", "mlx5_0", "-p", str(free_port()))
    time.sleep(0.5)
    process.kill()
    session.finish(process)
    session.expect_clean()


def peer_killed(session):
    """A peer that dies looks like dead hardware: the retries run out.  The survivor has to be one that
    always has a request outstanding: who only waits for a message is told by nobody."""
    port = str(free_port())
    argv = ["ib_send_bw", "-d", "mlx5_0", "-F", "-s", "4096", "-D", "60", "-p", port]
    server = session.background(*argv)
    wait_listening(int(port), server)
    client = session.background(*argv, "127.0.0.1")
    expect(data_flows(session, (server, client), "mlx5_0") and server.poll() is None and
           client.poll() is None, "the pair ended by itself")
    server.kill()
    session.finish(server)
    result = session.finish(client)
    expect(result.status > 0 and "Failed status 12" in result.text(),
           f"status {result.status}\n{result.text()}")


def daemon_killed(session):
    """Data between two processes goes on; the next run starts afresh."""
    up = session.tool("fabric", "up")
    expect(up.status == 0, up.text())
    (daemon,) = session.daemons()
    os.kill(daemon, signal.SIGKILL)
    within(LEAVE_LIMIT, lambda: not session.daemons())
    expect("mlx5_0" in session.run_ok("ibv_devices").out, "no devices afterwards")


def daemon_killed_under_traffic(session):
    port = str(free_port())
    argv = ["ib_send_bw", "-d", "mlx5_0", "-F", "-s", "4096", "-D", "5", "-p", port]
    server = session.background(*argv)
    wait_listening(int(port), server)
    client = session.background(*argv, "127.0.0.1")
    data_flows(session, (server, client), "mlx5_0")
    for daemon in session.daemons():
        os.kill(daemon, signal.SIGKILL)
    # Whether traffic goes on or the port goes down: both must end, and neither by a signal.
    good = (0, 1)
    all_ended_well(session.finish_all({"server": server, "client": client}, good=good), good)


def idle_cpu(session):
    """An open device with a queue pair costs nothing while nobody uses it."""
    port = free_port()
    process = session.background("ibv_rc_pingpong", "-e", "-p", str(port))
    wait_listening(port, process)
    pids = list(session.processes())

    def used_in(seconds):
        before = sum(map(cpu_seconds, pids))
        time.sleep(seconds)
        return sum(map(cpu_seconds, pids)) - before

    # Where others want the processors too, it takes a while to come to rest.
    within(LEAVE_LIMIT, lambda: not used_in(0.3))
    used = used_in(1.5)
    process.kill()
    session.finish(process)
    expect(used <= 0.02, f"{used:.2f} s of CPU in 1.5 s by {len(pids)} processes")


def ordinary_user(session):
    if os.geteuid() != 0:
        raise Skip("the whole session runs as an ordinary user")
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    runtime = session.runtime / "nobody"
    runtime.mkdir(mode=0o700)
    session.runtime.chmod(0o711)
    os.chown(runtime, 65534, 65534)
    try:
        with public_copy(session.build) as build:
            result = session.call(*nobody, "env", f"XDG_RUNTIME_DIR={runtime}", str(build / "softhca"), "run", "--",
                                  "ibv_devinfo")
            within(LEAVE_LIMIT, lambda: not any(runtime.iterdir()))
        left = list(runtime.iterdir())
    finally:
        session.runtime.chmod(0o700)
        shutil.rmtree(runtime, ignore_errors=True)
    expect(result.status == 0 and "mlx5_1" in result.out, result.text())
    expect(not left, f"left behind: {left}")


def cases():
    return [(f"tool: {test.__name__.replace('_', ' ')}", test) for test in (
        exit_status, models, next_model, killed_by_signal, signal_reaches_program, streams, arguments,
        unknown_option, unknown_way, unknown_command, many_hosts, hosts_cost_the_same, unknown_host,
        missing_program, not_executable, static_program, program_of_another_library, program_for_another_machine,
        program_with_rights, version_of_libraries, daemon_of_a_newer_version, daemon_of_an_older_version, script, help_and_version,
        manual_page_is_up_to_date, env_of_no_host, env_eval, env_of_valgrind,
        devices, fabric_up_status_down, fabrics_are_separate,
        concurrent_runs, concurrent_traffic, program_killed, peer_killed,
        daemon_killed, daemon_killed_under_traffic, idle_cpu, ordinary_user)]
