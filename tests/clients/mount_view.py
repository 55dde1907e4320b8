# SPDX-License-Identifier: BSD-2-Clause
"""`softhca run --view=mount`: programs without the preload library see the same files as those that have it."""
import os
import shutil
import signal
import subprocess
import time

from harness import Skip, all_ended_well, data_sent, expect, free_port, public_copy, wait_listening, within

NOBODY = 65534
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
WITHOUT_LIBRARY = ("env", "-u", "LD_PRELOAD")
# Names, types, permissions, where links lead, sizes and device numbers; sizes of directories are the file system's.
LOOK = r"""
import os, stat
def content(path):
    try:
        return open(path, "rb").read()
    except OSError as error:  # of an empty GID
        return error.errno
for top in ("/dev/infiniband", "/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class/infiniband_mad",
            *(os.path.realpath(f"/sys/class/infiniband/{d}/device") for d in ("mlx5_0", "mlx5_1"))):
    for where, directories, files in os.walk(top):
        for name in sorted(directories + files):
            path = os.path.join(where, name)
            look, text = os.lstat(path), ""
            if stat.S_ISLNK(look.st_mode):
                text = os.readlink(path)
            elif stat.S_ISREG(look.st_mode):
                text = (look.st_size, look.st_nlink, content(path))
            print(path, oct(look.st_mode), look.st_rdev, text)
for merged in "/dev", "/sys/class", "/sys/class/net", "/sys/bus/pci/devices", "/sys/dev/char":
    print(merged, sorted(set(os.listdir(merged)) - {"fd"}))
"""


def device(session):
    """What a mount view needs."""
    if not (session.build / "softhca-view").exists():
        raise Skip("built without libfuse3")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        raise Skip(f"/dev/fuse: {error.strerror}") from None


def needs(session, program):
    device(session)
    found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")
    if not found:
        raise Skip(f"{program} is not installed")
    return found


def mounted(session, *program, host="host1", **options):
    result = session.tool("run", "--host", host, "--view", "mount", "--", *program, **options)
    expect(result.status == 0, f"status {result.status} of {' '.join(program)}\n{result.text()}")
    return result


def same_files(session):
    device(session)
    mine = mounted(session, *WITHOUT_LIBRARY, "python3", "-c", LOOK).out.splitlines()
    other = session.run_ok("python3", "-c", LOOK).out.splitlines()
    expect(len(mine) > 400, f"only {len(mine)} files")
    wrong = set(mine) ^ set(other)
    expect(not wrong, f"{len(wrong)} lines differ:\n" + "\n".join(sorted(wrong)[:20]))


def with_library_too(session):
    """A program with the library sees each file once, and has devices."""
    device(session)
    out = mounted(session, "sh", "-c", "ls /sys/class /dev; ibv_devinfo -l; ibnetdiscover").out
    expect(out.split().count("infiniband") == 2 and "mlx5_1" in out and '"host2 mlx5_0"' in out, out)


def static_program(session):
    bash = needs(session, "bash-static")
    refused = session.run(bash, "-c", ":")
    expect(refused.status == 126 and "--view=mount" in refused.err, refused.text())
    out = mounted(session, bash, "-c", f"cd {PORT}; echo /dev/infiniband/*; read s < state; echo $s; cd -P ../../device; pwd; "
                  "cd /sys/class/net && echo *").out.splitlines()
    expect(out[0].split() == [f"/dev/infiniband/{name}" for name in ("issm0", "rdma_cm", "umad0", "umad1", "uverbs0", "uverbs1")],
           out)
    expect(out[1] == "4: ACTIVE" and out[2].startswith("/sys/devices/pci0000:00/") and "lo" in out[3].split(), out)


def fresh_counters(session):
    """Each read from the start gives the present text, of a file that is open, too."""
    bash = needs(session, "bash-static")
    text = (f"exec 3< {PORT}/counters/port_xmit_data; read a <&3; echo $a; read go; read b < {PORT}/counters/port_xmit_data; "
            "echo $b")
    process = session.background(bash, "-c", text, run_options=("--view", "mount"), stdin=subprocess.PIPE)
    before = int(process.stdout.readline())
    traffic = ("ib_send_bw", "-d", "mlx5_0", "-n", "100")
    server, client = session.pair(traffic, traffic)
    all_ended_well({"server": server, "client": client})
    sent = data_sent(session, "mlx5_0")
    out, err = process.communicate("go\n", timeout=30)
    expect(before + 100 * 65536 // 4 <= int(out) == sent, f"{before}, {sent}, {out}{err}")


def go_program(session):
    elvish = needs(session, "elvish")
    told = session.run(elvish, "-c", "echo ok")
    expect(told.status == 0 and "--view=mount" in told.err, told.text())
    out = mounted(session, elvish, "-norc", "-c",
                  f"echo (put /sys/class/infiniband/*); echo (slurp < {PORT}/state); ibnetdiscover").out
    expect("/sys/class/infiniband/mlx5_1" in out and "4: ACTIVE" in out and '"host1 mlx5_0"' in out, out)


def node_exporter(session):
    program = needs(session, "prometheus-node-exporter")
    port = free_port()
    process = session.background(program, "--collector.disable-defaults", "--collector.infiniband",
                                 f"--web.listen-address=127.0.0.1:{port}", run_options=("--view", "mount"))
    wait_listening(port, process)
    page = session.call("python3", "-c", "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())",
                        f"http://127.0.0.1:{port}/metrics").out
    process.kill()
    process.communicate()
    for device_name in "mlx5_0", "mlx5_1":
        expect(f'node_infiniband_port_data_transmitted_bytes_total{{device="{device_name}",port="1"}}' in page, page)


def nobody_changes_it(session):
    device(session)
    text = """
import errno, os
ib = "/sys/class/infiniband"
def fails(error, call, *arguments):
    try:
        call(*arguments)
    except OSError as e:
        assert e.errno in error, f"{call} {arguments}: {e}"
        return
    raise AssertionError(f"{call} {arguments}: success")
for name in "fw_ver", "ports/1/counters/port_xmit_data":
    fails([errno.EACCES], os.open, f"{ib}/mlx5_0/{name}", os.O_WRONLY)
fails([errno.EPERM], os.mkdir, f"{ib}/x")
fails([errno.EPERM], os.unlink, f"{ib}/mlx5_0/fw_ver")
fails([errno.EPERM], os.rename, f"{ib}/mlx5_0", f"{ib}/mlx5_9")
fails([errno.EPERM], os.symlink, "x", f"{ib}/x")
for path in f"{ib}/mlx5_0", f"{ib}/mlx5_0/fw_ver", ib:
    fails([errno.EPERM], os.chmod, path, 0o777)
    fails([errno.EPERM], os.chown, path, 0, 0)
    fails([errno.EPERM], os.utime, path, (1, 1))
    os.chown(path, -1, -1), path == ib or os.rename(path, path)
fails([errno.EACCES, errno.EPERM], os.open, f"{ib}/x", os.O_WRONLY | os.O_CREAT)
fails([errno.EROFS], os.mkdir, "/sys/class/x")
fails([errno.EACCES], os.open, "/dev/infiniband/uverbs0", os.O_RDWR)  # only the library has the device
with open(f"{ib}/mlx5_0/node_desc", "w") as description:
    description.write("a new name")
assert open(f"{ib}/mlx5_0/node_desc").read() == "a new name\\n"
"""
    mounted(session, *WITHOUT_LIBRARY, "python3", "-c", text)


def inside_another(session):
    """The tool that a program with the library starts is not misled by the library's view, and what is mounted has the
    host of the inner call."""
    device(session)
    inner = f"{session.softhca} run --host host2 --view=mount -- env -u LD_PRELOAD cat /sys/class/infiniband/mlx5_0/node_desc"
    out = session.run_ok("sh", "-c", f"{inner}; {session.softhca} run --view=mount -- {inner}").out
    expect(out == "host2 mlx5_0\n" * 2, out)


def server_ends(session):
    """The server of the files ends with the last program that sees them, and not before."""
    device(session)
    script = "(sleep 1; cat /sys/class/infiniband/mlx5_0/fw_ver) & echo left"
    process = session.background(*WITHOUT_LIBRARY, "sh", "-c", script, run_options=("--view", "mount"))
    out, err = process.communicate(timeout=30)
    expect(out.split()[0] == "left" and "." in out.split()[1], out + err)


def server_killed(session):
    """Without the server its files are errors; nobody waits."""
    device(session)
    process = session.background(*WITHOUT_LIBRARY, "sh", "-c",
                                 f"cat {PORT}/state; read go; cat {PORT}/state || echo none",
                                 run_options=("--view", "mount"), stdin=subprocess.PIPE)
    expect("ACTIVE" in process.stdout.readline(), "no state")
    servers = [pid for pid, name in session.processes().items() if name == "softhca-view"]
    expect(len(servers) == 1, str(session.processes()))
    os.kill(servers[0], signal.SIGKILL)
    out, err = process.communicate("go\n", timeout=30)
    expect(out == "none\n", out + err)


def program_stays_alone(session):
    """The program has no child, no descriptor of the view, and the terminal's and pipes' ends are its own."""
    device(session)
    text = """
import os
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
print([os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")])
"""
    start = time.monotonic()
    out = mounted(session, *WITHOUT_LIBRARY, "python3", "-c", text).out
    expect("no child" in out and "fuse" not in out, out)
    expect(time.monotonic() - start < 20, "the server held the pipe")


def in_mount_namespace(session, setup, *program):
    return session.call("unshare", "-m", "sh", "-ec", f'{setup}\nexec "$@"', "sh", *program)


def ordinary_user(session):
    """An ordinary user gets a user namespace, and stays the same user."""
    device(session)
    if os.geteuid():
        raise Skip("runs as an ordinary user anyway")
    directory = session.runtime / "user"
    directory.mkdir()
    os.chown(directory, NOBODY, NOBODY)
    os.chmod(session.runtime, 0o755)
    # udev lets everybody open it, a container's /dev perhaps not.
    setup = "mount -t tmpfs none /mnt; mknod -m 666 /mnt/fuse c 10 229; mount --bind /mnt/fuse /dev/fuse"
    with public_copy(session.build, "softhca-view") as build:
        told = in_mount_namespace(session, setup, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env",
                                  f"XDG_RUNTIME_DIR={directory}", str(build / "softhca"), "run", "--view=mount", "--", "sh",
                                  "-c", "id -u; ibv_devinfo -l; env -u LD_PRELOAD ls /sys/class/infiniband")
    expect(told.status == 0 and told.out.split()[0] == str(NOBODY) and told.out.count("mlx5_1") == 2, told.text())
    expect(within(10, lambda: not list(directory.iterdir())), "left behind")
    directory.rmdir()


def refusals(session):
    """What is wrong is said."""
    bad = session.tool("run", "--view", "fuse", "--", "true")
    expect(bad.status == 2 and "preload or mount" in bad.err, bad.text())
    device(session)
    if not os.geteuid():
        told = in_mount_namespace(session, "mount -t tmpfs none /dev", session.softhca, "run", "--view=mount", "--", "true")
        expect(told.status == 125 and "/dev/fuse" in told.err, told.text())


def cases():
    return [
        ("mount view: the same files as with the library", same_files),
        ("mount view: programs with the library", with_library_too),
        ("mount view: a static program", static_program),
        ("mount view: a Go program with a child", go_program),
        ("mount view: prometheus-node-exporter", node_exporter),
        ("mount view: counters are fresh", fresh_counters),
        ("mount view: nobody changes the files", nobody_changes_it),
        ("mount view: inside softhca run, and inside another", inside_another),
        ("mount view: the server ends with the last program", server_ends),
        ("mount view: the server is killed", server_killed),
        ("mount view: the program stays alone", program_stays_alone),
        ("mount view: an ordinary user", ordinary_user),
        ("mount view: refusals", refusals),
    ]
