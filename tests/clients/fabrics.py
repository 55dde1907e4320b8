# SPDX-License-Identifier: BSD-2-Clause
"""Several fabrics at once, the environment of a shell and its completion."""
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile
import time

from harness import Skip, expect, within


def fabrics_listed(session):
    return {f["fabric"]: f for f in json.loads(session.tool("fabric", "list", "--json").out)}


def list_and_down_all(session):
    """All fabrics are listed, also one whose daemon was killed; and all are taken down at once."""
    expect(fabrics_listed(session) == {}, "fabrics before the first")
    expect("no fabric is running" in session.tool("fabric", "list").out, "no words for that")
    session.tool("fabric", "up", "--fabric", "two", "--hosts", "3")
    session.tool("fabric", "up", "--fabric", "dead")
    program = session.start([session.softhca, "run", "--fabric", "one", "--", "ibv_asyncwatch"])
    try:
        expect(within(30, lambda: fabrics_listed(session).get("one", {}).get("programs") == 1),
               "the program is not counted")
        found = fabrics_listed(session)
        os.kill(found["dead"]["pid"], signal.SIGKILL)
        found = fabrics_listed(session)
        expect("was killed" in found["dead"].get("why", ""), found)
        expect({n: (f["running"], f.get("hosts"), f.get("stay")) for n, f in found.items()} ==
               {"one": (True, 2, False), "two": (True, 3, True), "dead": (False, None, None)},
               found)
        expect("softhca fabric down --fabric dead" in found["dead"]["why"], found)
        expect(all(f["directory"].endswith("/" + n) for n, f in found.items()), found)
        text = session.tool("fabric", "list").out
        expect([line.split()[0] for line in text.splitlines()] == ["dead", "one", "two"] and
               f"3 hosts, 0 programs, pid {found['two']['pid']}, stays up" in text, text)
        result = session.tool("fabric", "down", "--all", "--fabric", "two")
        expect(result.status == 2 and "do not go together" in result.err, result.text())
        result = session.tool("fabric", "down", "--all")
        expect(result.status == 0 and "fabric one is down" in result.out and
               "fabric two is down" in result.out, result.text())
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        session.tool("fabric", "down", "--all")
    session.expect_clean()
    expect(fabrics_listed(session) == {}, "fabrics after the last")


def coming_and_going(session):
    """A daemon that is just leaving is waited for; one that has left programs behind is no failure."""
    for _ in range(5):
        session.run("true")
        expect(fabrics_listed(session) == {}, "a fabric that nobody uses")
        session.run("true")
        result = session.tool("fabric", "status")
        expect(result.status == 1 and "is not running" in result.out and not result.err, result.text())
        session.run("true")
        result = session.tool("fabric", "down")
        expect(result.status == 0 and not result.err, result.text())
    program = session.start([session.softhca, "run", "--", "ibv_asyncwatch"])
    try:
        expect(within(30, lambda: fabrics_listed(session).get("default", {}).get("programs") == 1),
               "the program is not counted")
        expect("is down" in session.tool("fabric", "down").out, "it does not go down")
        result = session.tool("fabric", "list")
        expect("left: its daemon has gone, and programs" in result.out, result.text())
        expect("is not running" in session.tool("fabric", "status").out, "it runs")
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        session.tool("fabric", "down")
    # what a daemon leaves that is killed before it has a lock
    (session.fabrics_directory() / "default").mkdir(mode=0o700, parents=True)
    expect(fabrics_listed(session) == {}, "an empty directory")
    session.tool("fabric", "down")
    session.expect_clean()
    up = session.tool("fabric", "up")
    pid = fabrics_listed(session)["default"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        expect("does not answer" in fabrics_listed(session)["default"].get("why", ""), up.text())
    finally:
        os.kill(pid, signal.SIGCONT)
        session.tool("fabric", "down")
    session.expect_clean()


def last_and_next(session):
    """Who comes behind the last one gets a fabric of its own, with its options, also if the daemon has had no processor meanwhile."""
    last = session.start([session.softhca, "run", "--", "ibv_asyncwatch"])
    try:
        expect(within(30, lambda: fabrics_listed(session).get("default", {}).get("programs") == 1), "the program is not counted")
        pid = fabrics_listed(session)["default"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            os.killpg(last.pid, signal.SIGKILL)
            last.wait()
            following = session.start([session.softhca, "run", "--", "ibv_devices"],
                                      env=session.env | {"SOFTHCA_DEVICE_NAMES": "other_0"})
            time.sleep(0.5)
        finally:
            os.kill(pid, signal.SIGCONT)
        result = session.finish(following)
        expect(result.status == 0 and "other_0" in result.out, result.text())
    finally:
        if last.poll() is None:
            os.killpg(last.pid, signal.SIGKILL)
        last.communicate()


def env_undone(session):
    """What env --unset prints undoes env, whatever was set before; and no more than that."""
    undo = f'eval "$({session.softhca} env --unset)"'
    look = "env -0 | grep -z -e ^SOFTHCA_ -e ^LD_PRELOAD= | sort -z | tr '\\0' '\\n'"
    for before in ("", "export LD_PRELOAD=", "export LD_PRELOAD=libm.so.6:libdl.so.2",
                   "export LD_PRELOAD='libm.so.6 libdl.so.2:'",
                   "export SOFTHCA_MEMORY=packets SOFTHCA_TRACE=\"it's\""):
        for options in ("", "--memory kernel --trace x --explain", "--model connectx-7 --host host2"):
            lines = [before, look, "echo ==", f'eval "$({session.softhca} env {options})"',
                     f'eval "$({session.softhca} env --memory auto)"' if "host2" in options else "",
                     "test -n \"$SOFTHCA_DIR\" || echo unset", undo, "echo ==", look]
            result = session.call("bash", "-ec", "\n".join(lines))
            parts = result.out.split("==\n")
            expect(result.status == 0 and len(parts) == 3 and parts[0] == parts[2] and
                   not parts[1], f"after {before} and {options}: {result.text()}")
            session.expect_clean()
    kept = f'eval "$({session.softhca} env)"; export LD_PRELOAD=libm.so.6:$LD_PRELOAD; {undo}; ' \
           "echo $LD_PRELOAD"
    expect(session.call("bash", "-ec", kept).out == "libm.so.6\n", "a library added later")
    result = session.call("bash", "-ec", f"{undo}; echo went on")
    expect(result.status == 1 and not result.out and "nothing to undo" in result.err,
           result.text())


def link_types(session):
    """Devices are what --link-types says, and a fabric keeps it."""
    words = {"ib": "InfiniBand", "eth": "Ethernet"}
    for types in ("eth,eth", "eth,ib", "eth", "ib,eth,eth,ib"):
        up = session.tool("fabric", "up", "--link-types", types)
        expect(up.status == 0, up.text())
        try:
            devices = json.loads(session.tool("devices", "--json").out)
            expect([(d["device"], d["link_layer"]) for d in devices] ==
                   2 * [(f"mlx5_{i}", words[t]) for i, t in enumerate(types.split(","))],
                   f"{types}: {devices}")
            last = max(i for i, d in enumerate(devices[:len(devices) // 2])
                       if d["link_layer"] == "Ethernet")
            expect([i for i, d in enumerate(devices) if d["netdev"]] in ([last], []),
                   f"{types}: who has the machine's interface: {devices}")
            info = session.tool("run", "--host", "host2", "--link-types", types, "--",
                                "ibv_devinfo", "-d", "mlx5_0")
            expect(f"link_layer:\t\t{words[types.split(',')[0]]}" in info.out, info.text())
            other = session.tool("run", "--link-types", "ib,eth", "--", "true")
            expect(other.status == 125 and f"devices of link types {types};" in other.err,
                   other.text())
            down = session.tool("fabric", "link", "down", "host2", "1")
            expect(down.status == (0 if "ib" in types else 125), f"{types}: {down.text()}")
        finally:
            session.tool("fabric", "down")
    for bad in ("", "ib,", "eth,foo", "ib,ib,ib,ib,ib", "ethernet"):
        result = session.tool("run", "--link-types", bad, "--", "true")
        expect(result.status == 2 and "link types are a list of ib and eth" in result.err,
               f"'{bad}': {result.text()}")
    result = session.run("true", env=session.env | {"SOFTHCA_LINK_TYPES": "ib;eth"})
    expect(result.status == 125 and "SOFTHCA_LINK_TYPES: 'ib;eth'" in result.err, result.text())
    both = session.tool("fabric", "up", "--link-types", "eth", "--topology", "/dev/null")
    expect(both.status == 2 and "exclude each other" in both.err, both.text())


NAMES = ("mlx5_bond_0", "roce-9.x")


def names_in_files(session):
    """The files of the device tree."""
    for path, wanted in (
            ("class/infiniband", NAMES),
            ("class/infiniband_verbs/uverbs*/ibdev", NAMES),
            ("class/infiniband_mad/umad*/ibdev", NAMES)):
        show = "ls" if path.count("/") == 1 else "cat"
        found = session.run("sh", "-c", f"{show} /sys/{path}").out.split()
        expect(sorted(found) == sorted(wanted), f"{path}: {found}")
    device = f"/sys/class/infiniband/{NAMES[0]}"
    found = session.run("sh", "-c", f"cat {device}/uevent {device}/node_desc {device}/ports/1/link_layer "
                        f"{device}/ports/1/counters/port_xmit_data; readlink -f {device}; "
                        "ls -d /sys/bus/pci/devices/*/infiniband/*").out.splitlines()
    expect(found[:4] == [f"NAME={NAMES[0]}", f"host1 {NAMES[0]}", "InfiniBand", "0"] and
           found[4].endswith(f"/infiniband/{NAMES[0]}") and
           [line.split("/")[-1] for line in found[5:]] == list(NAMES), found)


def names_in_programs(session):
    """Programs of the distribution, by files, verbs, netlink, MADs and rdma_cm."""
    found = session.run("ibv_devinfo").out
    expect(re.findall(r"hca_id:\s*(\S+)", found) == list(NAMES), found)
    expect(f"hca_id:\t{NAMES[1]}\n" in session.run("ibv_devinfo", "-d", NAMES[1]).out, "by name")
    for command in ("link", "dev"):
        found = session.run("rdma", "-j", command)
        expect([d["ifname"] for d in json.loads(found.out)] == list(NAMES), found.text())
    found = session.run("ibstat", "-l").out.split()
    expect(sorted(found) == sorted(NAMES), found)
    found = session.run("ibstat", NAMES[0])
    expect(f"CA '{NAMES[0]}'" in found.out and "State: Active" in found.out, found.text())
    server = session.start([session.softhca, "run", "--", "rping", "-s", "-a", "198.18.0.2", "-C", "100000"])
    try:
        client = session.start([session.softhca, "run", "--host", "host2", "--", "rping", "-c", "-a",
                                "198.18.0.2", "-C", "100000"])
        try:
            def connected():
                return [c for p in json.loads(session.tool("status", "--json").out)["programs"]
                        for c in p["connections"] if c["state"] == "CONNECT"]
            expect(within(30, lambda: len(connected()) == 2), "rping does not connect")
            expect({c["device"] for c in connected()} == {NAMES[1]}, connected())
            found = session.tool("status").out
            expect(NAMES[1] in found and "mlx5_" not in found, found)
        finally:
            os.killpg(client.pid, signal.SIGKILL)
            client.communicate()
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def device_names(session):
    """Devices are called what --device-names says, wherever anybody looks, and a fabric keeps it."""
    option = ("--device-names", ",".join(NAMES))
    up = session.tool("fabric", "up", *option)
    expect(up.status == 0, up.text())
    try:
        found = [d["device"] for d in json.loads(session.tool("devices", "--json").out)]
        expect(found == 2 * list(NAMES), found)
        names_in_files(session)
        names_in_programs(session)
        down = session.tool("fabric", "port", f"host2/{NAMES[0]}", "down")
        found = session.tool("fabric", "status").out
        expect(down.status == 0 and f"  {NAMES[0]} port 1: " in found and "mlx5_0" not in found, found)
        found = json.loads(session.tool("fabric", "show", "--json").out)["nodes"][1]
        expect(found["id"] == f"host2-{NAMES[0]}" and found["name"] == f"host2 {NAMES[0]}", found)
        same = session.tool("run", *option, "--", "true")
        other = session.tool("run", "--device-names", "mlx5_7", "--", "true")
        expect(same.status == 0 and other.status == 125 and
               f"runs with --device-names {option[1]};" in other.err, other.text())
    finally:
        session.tool("fabric", "down")
    # of one device, of a variable, as long as can be
    for names in ("mlx5_3", "n" + 62 * "x"):
        result = session.run("ibv_devices", env=session.env | {"SOFTHCA_DEVICE_NAMES": names})
        expect(re.findall(r"^\s+(\S+)\s+[0-9a-f]{16}$", result.out, re.M) == [names, "mlx5_1"], result.text())
    shell = session.call("bash", "-ec", f'eval "$({session.softhca} env --device-names a,b)"; ibv_devices; '
                         f'echo $SOFTHCA_DEVICE_NAMES; eval "$({session.softhca} env --unset)"; '
                         'echo "-$SOFTHCA_DEVICE_NAMES-"')
    expect(re.findall(r"^\s+(\S+)\s+[0-9a-f]{16}$", shell.out, re.M) == ["a", "b"] and
           shell.out.endswith("a,b\n--\n"), shell.text())


def device_names_wrong(session):
    """Names that cannot be are refused, with the reason."""
    letters = "a name begins with a letter, and has letters, digits, '_', '-' and '.'"
    for names, why in (
            ("", "a name is empty"), ("a,", "a name is empty"), ("a b", letters), ("a/b", letters),
            ("1a", letters), ("..", letters), ("a:1", letters), ("a%d", letters),
            (64 * "n", "a name has more than 63 characters"), ("a,a", "two devices have the same name"),
            ("a,b,c,d,e", "there are more names than devices")):
        result = session.tool("run", "--device-names", names, "--", "true")
        expect(result.status == 2 and f"{why}: {names};" in result.err, f"'{names}': {result.text()}")
    result = session.tool("run", "--link-types", "eth", "--device-names", "a,b", "--", "true")
    expect(result.status == 2 and "more names than devices: a,b" in result.err, result.text())
    for names, why in (("a,b,c", "there are more names than devices"),
                       ("mlx5_1", "a device that is not named has one of the names"), ("a b", letters)):
        result = session.run("true", env=session.env | {"SOFTHCA_DEVICE_NAMES": names})
        expect(result.status == 125 and
               f"SOFTHCA_DEVICE_NAMES: '{names}' does not name the 2 devices of a host: {why}" in result.err,
               f"'{names}': {result.text()}")
    both = session.tool("fabric", "up", "--device-names", "a", "--topology", "/dev/null")
    expect(both.status == 2 and "exclude each other" in both.err, both.text())
    session.expect_clean()


def netdevs(session):
    """An interface is one device's alone, and a fabric keeps what --netdev says."""
    def interfaces():
        devices = json.loads(session.tool("devices", "--json").out)
        return {f"{d['host']}/{d['device']}": d["netdev"] for d in devices if d["netdev"]}

    expect(session.tool("fabric", "up").status == 0, "up")
    try:
        own = interfaces()
        expect(list(own) == ["host1/mlx5_1"], f"without the option: {own}")
        other = session.tool("fabric", "up", "--netdev", "host1/mlx5_1=lo")
        expect(other.status == 125 and "runs with no --netdev;" in other.err, other.text())
    finally:
        session.tool("fabric", "down")
    # the interface that the first host has if nobody says otherwise
    asked = "host2/mlx5_1=" + own["host1/mlx5_1"]
    up = session.tool("fabric", "up", "--netdev", asked)
    expect(up.status == 0, up.text())
    try:
        expect([f"{k}={v}" for k, v in interfaces().items()] == [asked], f"{interfaces()}")
        same = session.tool("fabric", "up", "--netdev", asked)
        expect(same.status == 0, same.text())
        other = session.tool("fabric", "up", "--netdev", "host1/mlx5_1=lo")
        expect(other.status == 125 and f"runs with --netdev {asked};" in other.err, other.text())
    finally:
        session.tool("fabric", "down")
    long = ",".join(["host1/mlx5_1=lo"] * 100)
    result = session.tool("fabric", "up", "--netdev", long)
    expect(result.status != 0 and "SOFTHCA_NETDEV: longer than" in result.err, result.text())


def numbers(session, *options, env=None):
    """QP number and rkey that a program of the fabric gets."""
    result = session.tool("run", "--explain", *options, "--",
                          str(session.build / "tests/tools/mistakes"), "behind_region", env=env)
    found = re.search(r"QP (0x[0-9a-f]+) RDMA_WRITE psn .* behind the MR of rkey (0x[0-9a-f]+)", result.err)
    expect(found, result.text())
    return found.groups()


def fabrics_apart(session):
    """Numbers differ by fabric, and come again; a peer of another fabric is not the QP itself."""
    elsewhere = session.env | {"XDG_RUNTIME_DIR": str(session.runtime / "elsewhere")}
    os.mkdir(elsewhere["XDG_RUNTIME_DIR"])
    try:
        seen = [numbers(session), numbers(session, "--fabric", "one"),
                numbers(session, "--fabric", "two"), numbers(session, env=elsewhere)]
    finally:
        session.tool("fabric", "down", env=elsewhere)
        os.rmdir(elsewhere["XDG_RUNTIME_DIR"])
    expect(all(len(set(column)) == len(seen) for column in zip(*seen)), f"alike: {seen}")
    expect(numbers(session, "--fabric", "one") == seen[1], "not the same again")
    for device in ("mlx5_0", "mlx5_1"):
        port = str(20000 + os.getpid() % 10000)
        words = ["--", "ibv_rc_pingpong", "-d", device, "-g", "0", "-p", port]
        server = session.start([session.softhca, "run", "--fabric", "one", *words])
        try:
            def client():
                return session.tool("run", "--explain", "--fabric", "two", *words, "127.0.0.1")
            result = client()
            while "Couldn't connect" in result.err:
                result = client()
            expect("no process of the fabric has a QP of that number" in result.err and
                   "another fabric (another user, --fabric or XDG_RUNTIME_DIR" in result.err and
                   "with the same PSN" not in result.err, f"{device}: {result.text()}")
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.communicate()
    session.expect_clean()


COMPLETIONS = pathlib.Path(__file__).resolve().parents[2] / "completion"

# Bash: the function alone, as bash calls it.
BASH = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _softhca
printf '%s\\n' "${COMPREPLY[@]}" """

# Zsh: its line editor completes $LINE once, at a terminal of script(1), and writes what it would offer to $FOUND.
ZSHRC = """fpath=($ZDOTDIR $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
	local -a found
	builtin compadd -O found "$@"
	print -rl -- $found >>$FOUND
	builtin compadd "$@"
}
zle-line-init() {
	BUFFER=$LINE CURSOR=$#LINE
	zle complete-word
	exit
}
zle -N zle-line-init
"""


def bash_completed(session, *words):
    result = session.call("bash", "-c", BASH, "bash", str(COMPLETIONS / "softhca.bash"), session.softhca, *words)
    expect(result.status == 0 and not result.err, result.text())
    return result.out


def zsh_completed(session, *words):
    if not shutil.which("zsh"):
        raise Skip("no zsh")
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        place = pathlib.Path(directory)
        (place / ".zshrc").write_text(ZSHRC)
        (place / "_softhca").write_text((COMPLETIONS / "softhca.zsh").read_text())
        found = place / "found"
        found.touch()
        session.call("script", "-qec", "zsh -i", "/dev/null", env={
            **session.env, "ZDOTDIR": directory, "TERM": "xterm", "FOUND": str(found), "LINE": " ".join((session.softhca, *words))})
        return found.read_text()


def fish_completed(session, *words):
    if not shutil.which("fish"):
        raise Skip("no fish")
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        result = session.call("fish", "-c", "source $argv[1]; complete -C $argv[2]", str(COMPLETIONS / "softhca.fish"),
                              " ".join((session.softhca, *words)), env={**session.env, "HOME": directory})
    expect(result.status == 0 and not result.err, result.text())
    # A description may follow.
    return "\n".join(line.split("\t")[0] for line in result.out.splitlines())


def completion(session, shell):
    """A shell completes commands, options, values, fabrics, hosts, devices; and starts no fabric."""
    def completed(*words):
        return sorted(set(shell(session, *words).split()))

    commands = set(re.findall(r"^  softhca ([a-z]+)", session.tool("--help").out, re.MULTILINE))
    expect(set(completed("")) == commands | {"--help", "--version"}, "commands")
    expect(completed("fabric", "po") == ["port"], "the fabric's commands")
    expect(completed("fabric", "show", "") == ["dot", "svg", "text"], "forms of a picture")
    expect(completed("run", "--me") == ["--memory"], "options")
    expect(completed("run", "--memory", "") == ["auto", "kernel", "packets"], "ways")
    expect(completed("env", "--model", "connectx-6") == ["connectx-6", "connectx-6dx"],
           "models")
    expect("sleep" in completed("run", "--memory", "auto", "slee") and
           "sleep" in completed("run", "--", "slee"), "programs")
    expect(completed("trace", "-e", "d") == ["decision", "doorbell", "dpa"], "kinds of events")
    expect("sleep" in completed("trace", "-e", "all", "slee"), "programs to trace")
    expect(completed("run", "--host", "") == [], "hosts of no fabric")
    expect(completed("no-such-command", "--") == [], "an unknown command")
    session.expect_clean()
    session.tool("fabric", "up", "--fabric", "three", "--hosts", "3")
    try:
        expect(completed("devices", "--fabric", "") == ["three"], "fabrics")
        expect(completed("run", "--fabric", "three", "--host", "") ==
               ["host1", "host2", "host3"], "hosts")
        port = ("fabric", "port", "--fabric", "three")
        expect(completed(*port, "host2/") == ["host2/mlx5_0", "host2/mlx5_1"], "devices")
        expect(completed(*port, "mlx5_0", "") == ["down", "up"], "what to do with it")
        tie = ("fabric", "tie", "--fabric", "three", "mlx5_1")
        expect(completed(*tie, "p") == ["pace=", "peers=", "port="], "what to tie it to")
    finally:
        session.tool("fabric", "down", "--fabric", "three")


def completion_of_bash(session):
    completion(session, bash_completed)


def completion_of_zsh(session):
    completion(session, zsh_completed)


def completion_of_fish(session):
    completion(session, fish_completed)


def cases():
    return [(f"fabrics: {test.__name__.replace('_', ' ')}", test) for test in (
        list_and_down_all, coming_and_going, last_and_next, env_undone, link_types, device_names, device_names_wrong, netdevs,
        fabrics_apart, completion_of_bash, completion_of_zsh, completion_of_fish)]
