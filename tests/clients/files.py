# SPDX-License-Identifier: BSD-2-Clause
"""The device tree as files: what path_resolution(7), devtmpfs and sysfs say of them."""
BEGIN = """
import ctypes, errno, os, stat
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p
libc.fileno.argtypes = [ctypes.c_void_p]
ib, dev = "/sys/class/infiniband/mlx5_0", "/dev/infiniband"
def fails(error, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except OSError as e:
        assert e.errno == error, f"{arguments}: {e}, want {errno.errorcode[error]}"
        return
    raise AssertionError(f"{arguments}: success, want {errno.errorcode[error]}")
def is_umad(fd):
    request = (ctypes.c_ubyte * 40)()
    request[4] = 1  # qpn
    return fd >= 0 and not libc.ioctl(fd, 0xc0281b04, request)  # IB_USER_MAD_REGISTER_AGENT2
"""

RELATIVE = """
d = os.open(dev, os.O_RDONLY | os.O_DIRECTORY)
assert is_umad(os.open("umad0", os.O_RDWR, dir_fd=d))
assert stat.S_ISCHR(os.stat("umad0", dir_fd=d).st_mode)
os.fchdir(d)
assert os.getcwd() == dev and os.readlink("/proc/self/cwd") == dev
assert is_umad(os.open("umad0", os.O_RDWR))
assert is_umad(os.open("../infiniband/./umad0", os.O_RDWR))
assert os.stat("uverbs0").st_rdev == os.makedev(231, 192)
os.chdir("/")
assert is_umad(os.open("dev/infiniband/umad0", os.O_RDWR))
assert is_umad(libc.fileno(libc.fopen(f"{dev}/umad0".encode(), b"r+")))
fd = os.open(f"{dev}/umad0", os.O_PATH)
assert os.stat(fd).st_rdev == os.stat(f"{dev}/umad0").st_rdev and stat.S_ISCHR(os.stat(fd).st_mode)
fails(errno.EEXIST, os.open, f"{dev}/umad0", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
for entry in os.scandir(dev):
    assert stat.S_ISCHR(entry.stat().st_mode) and not entry.is_file(), entry.name
"""

SLASHES = """
for end in ("/", "/.", "//./"):
    assert stat.S_ISDIR(os.lstat(ib + end).st_mode), end
    fails(errno.EINVAL, os.readlink, ib + end)
    os.close(os.open(ib + end, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
assert stat.S_ISLNK(os.lstat(ib).st_mode)
fails(errno.ELOOP, os.open, ib, os.O_RDONLY | os.O_NOFOLLOW)
fails(errno.ENOTDIR, os.open, f"{dev}/umad0/", os.O_RDWR)
fails(errno.ENOTDIR, os.open, f"{ib}/node_guid/", os.O_RDONLY)
fails(errno.ENOTDIR, os.stat, f"{ib}/node_guid/..")
fails(errno.ENOENT, os.stat, f"{ib}/none/..")
"""

UP = """
pci = os.path.realpath(f"{ib}/device")
libc.realpath.restype = ctypes.c_char_p
for path, want in ((f"{ib}/../..", pci), (f"{ib}/ports/../../..", pci),
                   ("/sys/class/infiniband_verbs/uverbs0/../..", pci),
                   (f"{ib}/../../infiniband/mlx5_0", f"{pci}/infiniband/mlx5_0"),
                   (f"{dev}/../infiniband", dev), (f"{dev}/../../tmp", "/tmp")):
    assert os.path.samefile(path, want), path
    assert libc.realpath(path.encode(), None) == want.encode(), path
os.close(os.open(f"{ib}/../../numa_node", os.O_RDONLY))
os.close(os.open("../../numa_node", os.O_RDONLY, dir_fd=os.open(ib, os.O_RDONLY)))
os.chdir(ib)
os.chdir("../..")
assert os.getcwd() == pci and os.access("numa_node", os.R_OK) and "infiniband" in os.listdir()
"""

COPY = """
import subprocess, tempfile
port = f"{ib}/ports/1"
with tempfile.TemporaryDirectory() as to:
    for name in ("counters", "hw_counters", "gids", "pkeys"):
        subprocess.run(["cp", "-r", f"{port}/{name}", to], check=True)
        assert sorted(os.listdir(f"{to}/{name}")) == sorted(os.listdir(f"{port}/{name}")), name
        for file in os.listdir(f"{to}/{name}"):
            with open(f"{to}/{name}/{file}", "rb") as copy:
                assert copy.read(1) not in (b"", bytes(1)), file
            assert os.stat(f"{to}/{name}/{file}").st_size < 64, file
for path in (f"{port}/counters/port_xmit_data", f"{ib}/fw_ver"):
    fd, by_path = os.open(path, os.O_RDONLY), os.stat(path)
    assert os.stat(fd) == by_path, f"{path}: {os.stat(fd)}, want {by_path}"
    assert by_path.st_size == 4096 and stat.S_IMODE(by_path.st_mode) == 0o444
"""

ATTRIBUTES = """
counter = f"{ib}/ports/1/counters/port_xmit_packets"
for path in (counter, f"{ib}/fw_ver"):
    fails(errno.EBADF, os.write, os.open(path, os.O_RDONLY), b"0")
    fails(errno.EACCES, os.open, path, os.O_WRONLY)
    fails(errno.EACCES, os.open, path, os.O_RDWR | os.O_TRUNC)
    fails(errno.EEXIST, os.open, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    assert os.read(os.open(path, os.O_RDONLY | os.O_TRUNC), 64)
fails(errno.EACCES, os.open, "/sys/class/infiniband/made", os.O_WRONLY | os.O_CREAT, 0o644)
fails(errno.ENOENT, os.open, f"{ib}/none/made", os.O_WRONLY | os.O_CREAT, 0o644)
fails(errno.EOPNOTSUPP, os.open, ib, os.O_WRONLY | os.O_TMPFILE, 0o600)
fd = os.open(f"{ib}/node_desc", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
assert libc.creat(f"{ib}/node_desc".encode(), 0o644) >= 0
libc.freopen.restype = libc.fdopen.restype = ctypes.c_void_p
libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
libc.fgets.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
libc.rewind.argtypes = [ctypes.c_void_p]
line = ctypes.create_string_buffer(64)
stream = libc.fdopen(os.open("/dev/zero", os.O_RDONLY), b"r")
for path in (counter, f"{ib}/fw_ver"):
    stream = libc.freopen(path.encode(), b"r", stream)
    assert stream and libc.fgets(line, 64, stream) and line.value[:1].isdigit(), path
stream = libc.fopen(counter.encode(), b"r")
assert libc.fgets(line, 64, stream)
before = int(line.value)
os.system("perfquery 3 1 > /dev/null")  # the switch
libc.rewind(stream)
assert libc.fgets(line, 64, stream) and int(line.value) > before, (before, line.value)
"""

UEVENTS = """
import glob
for name, number in (("infiniband_mad/umad0", (231, 0)), ("infiniband_mad/issm0", (231, 64)),
                     ("infiniband_verbs/uverbs1", (231, 193))):
    path = f"/sys/class/{name}"
    uevent = open(f"{path}/uevent").read().split()
    file = "infiniband/" + os.path.basename(path)
    assert uevent[:3] == [f"MAJOR={number[0]}", f"MINOR={number[1]}", f"DEVNAME={file}"], uevent
    assert os.path.realpath(f"{path}/subsystem") == os.path.dirname(path)
    by_number = "/sys/dev/char/%d:%d" % number
    assert os.path.samefile(by_number, path) and os.path.realpath(by_number) == os.path.realpath(path)
    assert os.stat(f"/dev/{file}").st_rdev == os.makedev(*number)
assert os.path.samefile("/sys/dev/char/1:3", "/sys/devices/virtual/mem/null")
assert open(f"{ib}/uevent").read() == "NAME=mlx5_0\\n" and not os.path.exists(f"{dev}/uio1")
assert os.path.realpath(f"{ib}/subsystem") == "/sys/class/infiniband"
"""

LISTINGS = """
import glob, subprocess
for parent, ours, others in (("/sys/class", {"infiniband", "infiniband_verbs", "infiniband_mad"}, {"net", "mem"}),
                             ("/dev", {"infiniband"}, {"null", "zero"})):
    d = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    for names in (os.listdir(parent), os.listdir(d), [e.name for e in os.scandir(parent)],
                  subprocess.run(["ls", parent], capture_output=True, text=True).stdout.split()):
        assert ours | others <= set(names) and len(set(names)) == len(names), names
        assert all(os.path.lexists(f"{parent}/{name}") for name in names), names
    os.close(d)
    os.chdir(parent)
    assert ours <= set(os.listdir()) and ours <= set(glob.glob("inf*"))
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
for call in libc.opendir, libc.readdir, libc.rewinddir, libc.closedir, libc.telldir, libc.seekdir:
    call.argtypes = [ctypes.c_void_p]
libc.opendir.argtypes, libc.seekdir.argtypes = [ctypes.c_char_p], [ctypes.c_void_p, ctypes.c_long]
libc.telldir.restype = ctypes.c_long
def names_of(d):
    found = []
    while True:
        place, entry = libc.telldir(d), libc.readdir(d)
        if not entry:
            return found
        found.append((ctypes.string_at(entry + 19), place))
d = libc.opendir(b"/dev")
first = names_of(d)
assert [name for name, _ in first].count(b"infiniband") == 1
libc.rewinddir(d)
assert [name for name, _ in names_of(d)] == [name for name, _ in first]
for name, place in first[-1], first[0], first[len(first) // 2]:
    libc.seekdir(d, place)
    assert names_of(d)[0][0] == name, name
assert not libc.closedir(d)
found = subprocess.run(["find", "/dev", "-name", "umad*", "-type", "c"], capture_output=True, text=True).stdout
assert found.split() and set(found.split()) <= set(glob.glob("/dev/inf*/umad*")), found
"""


def script(text):
    return lambda session: session.run_ok("python3", "-c", BEGIN + text)


def cases():
    return [
        ("files: device files by relative names", script(RELATIVE)),
        ("files: slashes behind links and files", script(SLASHES)),
        ("files: up behind a link", script(UP)),
        ("files: copies and descriptions of attributes", script(COPY)),
        ("files: events and numbers of devices", script(UEVENTS)),
        ("files: listings of what the machine has, too", script(LISTINGS)),
        ("files: attributes that are written, streams of them", script(ATTRIBUTES)),
    ]
