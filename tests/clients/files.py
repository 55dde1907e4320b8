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
import time
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
fd = os.open(f"{ib}/ports/1/lid", os.O_RDONLY)
stored = os.stat(f"/proc/self/fd/{fd}").st_mtime_ns
time.sleep(0.05)
assert os.read(fd, 64) == os.pread(fd, 64, 0) and os.stat(f"/proc/self/fd/{fd}").st_mtime_ns == stored  # the same text
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
fd, text = os.open(counter, os.O_RDONLY), bytearray(64)
for read in (lambda: os.pread(fd, 64, 0), lambda: text[:os.preadv(fd, [text], 0)]):
    before = int(read())
    os.system("perfquery 3 1 > /dev/null")
    assert int(read()) > before
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


# Walks of the C library.  ZOO is made twice: in the host's directory by its real name, where the walks are ours, and
# elsewhere, where they are the C library's.
WALKS = """
import glob, shutil, subprocess, tempfile
class Entry(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("cycle", "parent", "link")] + [
        ("number", ctypes.c_long), ("pointer", ctypes.c_void_p), ("accpath", ctypes.c_char_p), ("path", ctypes.c_char_p),
        ("errno", ctypes.c_int), ("symfd", ctypes.c_int), ("pathlen", ctypes.c_ushort), ("namelen", ctypes.c_ushort),
        ("ino", ctypes.c_ulong), ("dev", ctypes.c_ulong), ("nlink", ctypes.c_ulong), ("level", ctypes.c_short)] + [
        (n, ctypes.c_ushort) for n in ("info", "flags", "instr")] + [("statp", ctypes.c_void_p), ("name", ctypes.c_char)]
ENTRY = ctypes.POINTER(Entry)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ENTRY), ctypes.POINTER(ENTRY))
libc.fts_open.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_int, ctypes.c_void_p]
libc.fts_open.restype = ctypes.c_void_p
libc.fts_read.argtypes = libc.fts_close.argtypes = [ctypes.c_void_p]
libc.fts_children.argtypes = [ctypes.c_void_p, ctypes.c_int]
libc.fts_set.argtypes = [ctypes.c_void_p, ENTRY, ctypes.c_int]
libc.fts_read.restype = libc.fts_children.restype = ENTRY
COMFOLLOW, LOGICAL, NOCHDIR, NOSTAT, PHYSICAL, SEEDOT, XDEV = 1, 2, 4, 8, 16, 32, 64
AGAIN, FOLLOW, SKIP, NAMEONLY = 1, 2, 4, 0x100
D, DEFAULT, SL, SLNONE = 1, 3, 12, 13
def name_of(e):
    return ctypes.string_at(ctypes.addressof(e.contents) + Entry.name.offset)
@COMPARE
def by_name(a, b):
    return (name_of(a[0]) > name_of(b[0])) - (name_of(a[0]) < name_of(b[0]))
def fts(roots, options, ask=lambda f, e, said: None, order=by_name):
    paths = (ctypes.c_char_p * (len(roots) + 1))(*[os.fsencode(r) for r in roots], None)
    f = libc.fts_open(paths, options, ctypes.cast(order, ctypes.c_void_p) if order else None)
    assert f, f"{roots}: {ctypes.get_errno()}"
    ask(f, None, said := [])
    while (e := libc.fts_read(f)):
        c = e.contents
        said.append((c.path, name_of(e), c.pathlen, c.namelen, c.level, c.info, c.errno))
        assert options & NOCHDIR or os.path.lexists(c.accpath), c.path
        ask(f, e, said)
    assert not ctypes.get_errno() and not libc.fts_close(f)
    return said
def children(instruction):
    def ask(f, e, said):
        c = libc.fts_children(f, instruction)
        while c:
            said.append((name_of(c), c.contents.info))
            c = ctypes.cast(c.contents.link, ENTRY)
    return ask
def instruct(instruction, infos):
    def ask(f, e, said):
        if e and e.contents.info in infos and not e.contents.number:
            e.contents.number = 1
            assert not libc.fts_set(f, e, instruction)
    return ask
def skip_children(f, e, said):
    c = libc.fts_children(f, 0)
    c = c and ctypes.cast(c.contents.link, ENTRY)
    if e and c:
        libc.fts_set(f, c, SKIP)
FTW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int * 2))
def nftw(root, flags, answer=lambda path: 0):
    said = []
    def visit(path, st, kind, place):
        said.append((path, kind, tuple(place.contents), os.getcwd() if flags & 4 else None))
        return answer(path)
    before = os.getcwd()
    said.append(libc.nftw(os.fsencode(root), FTW(visit), 8, flags))
    assert os.getcwd() == before
    return said
def zoo(at):
    os.makedirs(f"{at}/zoo/a/b")
    os.makedirs(f"{at}/zoo/empty")
    os.mkdir(f"{at}/zoo/none")
    for name in "f", "a/b/g", "a/.h":
        open(f"{at}/zoo/{name}", "w").close()
    for name, to in (("l", "a"), ("file", "f"), ("loop", "loop"), ("lost", "nowhere"), ("a/up", ".."), ("a/b/deep", "../../empty")):
        os.symlink(to, f"{at}/zoo/{name}")
ours, real = "/sys/class/infiniband_mad", f"{os.environ['SOFTHCA_DIR']}/hosts/{os.environ['SOFTHCA_HOST']}/sys/class/infiniband_mad"
there = tempfile.mkdtemp(dir=os.environ["SOFTHCA_DIR"])  # directories of one file system have one order
other = tempfile.mktemp(prefix="softhca-walk", dir="/tmp")
assert len(other) == len(ours)
os.symlink(there, other)
zoo(real), zoo(there)
def same(walk, *options):
    def told(top):
        said = walk([f"{top}/{end}", f"{top}/zoo/a"] if walk is fts else f"{top}/{end}", *options)
        return repr(said).replace(other, ours).replace(there, ours)
    for end in "zoo", "zoo/", "zoo/l", "zoo/loop", "zoo/nothing", "zoo/f":
        assert told(ours) == told(other), f"{walk.__name__} {end} {options}:\\n{told(ours)}\\n{told(other)}"
try:
    for option in PHYSICAL, LOGICAL, PHYSICAL | COMFOLLOW, PHYSICAL | SEEDOT, PHYSICAL | NOSTAT, LOGICAL | NOSTAT, PHYSICAL | XDEV:
        same(fts, option | NOCHDIR)
        same(fts, option | NOCHDIR, children(0))
        same(fts, option | NOCHDIR, children(NAMEONLY))
        same(fts, option | NOCHDIR, instruct(SKIP, (D,)))
        same(fts, option | NOCHDIR, instruct(AGAIN, (D, DEFAULT, SL, 8)))
        if not option & XDEV:  # glibc compares with the device of a link at the start, which it has not set
            same(fts, option | NOCHDIR, instruct(FOLLOW, (SL, SLNONE)))
        same(fts, option | NOCHDIR, skip_children)
    assert sorted(fts([f"{ours}/zoo"], PHYSICAL, order=None)) == sorted(fts([f"{ours}/zoo"], PHYSICAL | NOCHDIR))
    for flags in 0, 1, 8, 9, 4, 5, 12, 13:
        same(nftw, flags)
    same(nftw, 17, lambda path: 2 if path.endswith(b"/a") else 0)  # FTW_ACTIONRETVAL, FTW_SKIP_SUBTREE
    same(nftw, 17, lambda path: 3 if path.endswith(b"/g") else 0)
    assert nftw(f"{ours}/zoo", 17, lambda path: 3)[1:] == [0]  # FTW_SKIP_SIBLINGS
    assert nftw(f"{ours}/zoo", 1, lambda path: 7 if path.endswith(b"/f") else 0)[-1] == 7
finally:
    subprocess.run(["rm", "-rf", f"{real}/zoo"], env={"PATH": os.environ["PATH"]}, check=True)  # without the library
    shutil.rmtree(there), os.unlink(other)
devices = {path.encode() for path in glob.glob(f"{dev}/*")}
assert len(devices) > 3
for root in dev, "/dev":
    assert devices <= {line[0] for line in fts([root], PHYSICAL) if line[5] == DEFAULT}, root
    assert devices <= {line[0] for line in nftw(root, 1)[:-1]}, root
for root in "/sys/class", "/sys/class/":
    assert b"/sys/class/infiniband/mlx5_0" in {line[0] for line in fts([root], PHYSICAL) if line[5] == SL}
    assert b"/sys/class/infiniband/mlx5_0" in {line[0] for line in nftw(root, 1)[:-1]}
assert f"{ib}/ports/1/state".encode() in {line[0] for line in nftw(ib, 0)[:-1]}
assert fts(["/etc/default"], PHYSICAL) and nftw("/proc/self/fdinfo", 1)[-1] == 0
"""

# ib_sysfs: a file for each entry of the GID table; what an empty one is cannot be read.
GIDS = """
import subprocess
libc.fopen.argtypes, libc.fgets.argtypes = [ctypes.c_char_p] * 2, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
def unreadable(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    fails(errno.EINVAL, os.read, fd, 64)
    assert os.stat(fd) == os.stat(path)
    os.close(fd)
    told = subprocess.run(["cat", path], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    assert told.returncode == 1 and "Invalid argument" in told.stderr and not told.stdout, told
    ctypes.set_errno(0)
    stream = libc.fopen(path.encode(), b"r")
    assert stream and not libc.fgets(ctypes.create_string_buffer(64), 64, stream) and ctypes.get_errno() == errno.EINVAL
for device, type in (("mlx5_0", "IB/RoCE v1"), ("mlx5_1", "RoCE v2")):
    port = f"/sys/class/infiniband/{device}/ports/1"
    indexes = sorted(os.listdir(f"{port}/gids"), key=int)
    for name in "types", "ndevs":
        assert sorted(os.listdir(f"{port}/gid_attrs/{name}"), key=int) == indexes, (device, name)
        unreadable(f"{port}/gid_attrs/{name}/{indexes[-1]}")
    used = [i for i in indexes if int(open(f"{port}/gids/{i}").read().replace(":", ""), 16)]
    types = [open(f"{port}/gid_attrs/types/{i}").read().strip() for i in used]
    assert types and type in types, (device, types)
    if device == "mlx5_0":
        unreadable(f"{port}/gid_attrs/ndevs/{used[0]}")
    assert indexes == [str(i) for i in range(len(indexes))]
"""

# The errors of sysfs, measured as root with Linux 6.18.
CHANGES = """
import subprocess, tempfile
top, link, guid, none = "/sys/class/infiniband", ib, f"{ib}/node_guid", f"{ib}/none"
def look():
    found = [(sorted(os.listdir(path)), os.stat(path)) for path in (top, ib, dev)]
    return [(names, st.st_mode, st.st_uid, st.st_mtime_ns) for names, st in found]
before = look()
for error, paths in ((errno.EPERM, (f"{top}/x", f"{dev}/x", f"{ib}/x")), (errno.EEXIST, (link, guid, dev, f"{dev}/umad0", top)),
                     (errno.ENOENT, (f"{none}/x", f"{dev}/none/x/")), (errno.ENOTDIR, (f"{guid}/x",))):
    for path in paths:
        for call in os.mkdir, os.mkfifo, os.mknod, lambda p: os.symlink("x", p):
            fails(error, call, path)
fails(errno.EPERM, os.mkdir, f"{top}/x/")
for call, expected in ((os.rmdir, (errno.ENOENT, errno.ENOTDIR, errno.ENOTDIR, errno.EPERM)),
                       (os.unlink, (errno.ENOENT, errno.EPERM, errno.EPERM, errno.EISDIR))):
    for path, error in zip((none, link, guid, f"{ib}/ports"), expected):
        fails(error, call, path)
fails(errno.EPERM, os.unlink, f"{dev}/umad0")
def removes(path):
    ctypes.set_errno(0)
    return libc.remove(path.encode()), ctypes.get_errno()
assert removes(f"{ib}/ports") == removes(guid) == (-1, errno.EPERM) and removes(none) == (-1, errno.ENOENT)
with tempfile.TemporaryDirectory() as tmp:
    mine, new = f"{tmp}/mine", f"{tmp}/new"
    open(mine, "w").close()
    for source, to, error in ((mine, f"{top}/x", errno.EXDEV), (guid, new, errno.EXDEV), (guid, f"{ib}/x", errno.EPERM),
                              (link, f"{top}/x", errno.EPERM), (none, f"{top}/x", errno.ENOENT), (f"{dev}/umad0", f"{dev}/x", errno.EPERM)):
        fails(error, os.rename, source, to)
    for source, to, error in ((mine, f"{top}/x", errno.EXDEV), (guid, f"{ib}/x", errno.EPERM), (guid, link, errno.EEXIST), (guid, new, errno.EXDEV),
                              (f"{tmp}/no", f"{top}/x", errno.ENOENT), (none, new, errno.ENOENT), (guid, f"{none}/x", errno.ENOENT)):
        fails(error, os.link, source, to)
    ctypes.set_errno(0)
    assert libc.renameat2(-100, guid.encode(), -100, link.encode(), 1) < 0 and ctypes.get_errno() == errno.EEXIST  # RENAME_NOREPLACE
    assert sorted(os.listdir(tmp)) == ["mine"]
    # other paths are as ever
    os.rename(mine, new), os.link(new, mine), os.unlink(new), os.mkdir(new), os.rmdir(new), os.symlink("mine", new)
    os.chmod(mine, 0o600), os.truncate(mine, 5), os.utime(mine, (1, 1)), os.chown(mine, -1, -1), os.mkfifo(f"{tmp}/fifo")
    assert os.stat(new).st_size == 5 and os.stat(new).st_mtime == 1 and os.path.islink(new)
    fails(errno.ENOENT, os.unlink, f"{tmp}/no")
omit, now = (ctypes.c_long * 4)(0, 0x3ffffffe, 0, 0x3ffffffe), (ctypes.c_long * 4)(0, 0x3ffffffe, 0, 0x3fffffff)
for path in link, guid, f"{dev}/umad0", top, f"{ib}/ports":  # what changes nothing is for everybody
    os.chown(path, -1, -1), os.lchown(path, -1, -1), os.chown(path, -1, -1, follow_symlinks=False)
    assert not libc.utimensat(-100, path.encode(), omit, 0) and libc.utimensat(-100, path.encode(), now, 0) < 0, path
    os.rename(path, path), os.replace(path, f"{os.path.dirname(path)}/./{os.path.basename(path)}")
    fails(errno.EPERM, os.chown, path, 0, -1), fails(errno.EPERM, os.chown, path, -1, 0)
fails(errno.ENOENT, os.chown, none, -1, -1), fails(errno.ENOENT, os.rename, none, none)
assert not libc.utimensat(-100, none.encode(), omit, 0)
for path in link, guid, f"{dev}/umad0", top:
    fails(errno.EPERM, os.chmod, path, 0o777)
    fails(errno.EPERM, os.chown, path, 0, 0)
    fails(errno.EPERM, os.lchown, path, 0, 0)
    fails(errno.EPERM, os.utime, path, (1, 1))
    fails(errno.EPERM, os.utime, path, (1, 1), follow_symlinks=False)
    fails(errno.EOPNOTSUPP, os.setxattr, path, "user.x", b"1")
    fails(errno.EOPNOTSUPP, os.removexattr, path, "user.x")
    fails(errno.ENOENT, os.chmod, none, 0o777)
for path, error in ((guid, errno.EACCES), (top, errno.EISDIR), (none, errno.ENOENT), (f"{dev}/umad0", errno.EINVAL)):
    fails(error, os.truncate, path, 0)
os.truncate(f"{ib}/node_desc", 0)
assert open(f"{ib}/node_desc").read().strip()
d = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
fails(errno.EPERM, os.mkdir, "x", dir_fd=d), fails(errno.EPERM, os.unlink, "mlx5_0", dir_fd=d), fails(errno.ENOENT, os.rmdir, "x", dir_fd=d)
fails(errno.EPERM, os.rename, "mlx5_0", "x", src_dir_fd=d, dst_dir_fd=d), fails(errno.EPERM, os.chmod, "mlx5_0", 0, dir_fd=d)
libc.mkdtemp.restype = ctypes.c_void_p
for call, failed in (libc.mkstemp, -1), (libc.mkstemp64, -1), (libc.mkdtemp, None):
    ctypes.set_errno(0)
    assert call(ctypes.create_string_buffer(f"{dev}/XXXXXX".encode())) == failed and ctypes.get_errno() == errno.EPERM
assert subprocess.run(["rm", "-rf", f"{ib}/ports/1/counters"], stderr=subprocess.DEVNULL).returncode == 1
assert look() == before and os.listdir(f"{ib}/ports/1/counters")
actions = ctypes.create_string_buffer(512)
libc.posix_spawn_file_actions_init(actions)
assert not libc.posix_spawn_file_actions_addchdir_np(actions, f"{ib}/ports".encode())
pid = ctypes.c_int()
words = (ctypes.c_char_p * 4)(b"sh", b"-c", b"test -e 1/state && test $(/bin/pwd -P | grep -c infiniband/mlx5_0/ports) = 1", None)
environ = (ctypes.c_char_p * (len(os.environ) + 1))(*[f"{k}={v}".encode() for k, v in os.environ.items()], None)
assert not libc.posix_spawn(ctypes.byref(pid), b"/bin/sh", actions, None, words, environ)
assert not os.waitpid(pid.value, 0)[1]
"""

# The errors are those of sysfs for an ordinary user (fchmod, fchown, times) and for everybody (the others), Linux 6.18.
DESCRIPTORS = """
import fcntl, shutil, struct, tempfile
real = f"{os.environ['SOFTHCA_DIR']}/hosts/{os.environ['SOFTHCA_HOST']}"
counter, guid, desc = f"{ib}/ports/1/counters/port_xmit_data", f"{ib}/node_guid", f"{ib}/node_desc"
top = "/sys/class/infiniband"
class Times(ctypes.Structure):
    _fields_ = [("at", ctypes.c_long * 4)]
times = ctypes.byref(Times((1, 0, 1, 0)))
SETFLAGS, GETFLAGS, FSSETXATTR = 0x40086602, 0x80086601, 0x401c5820
def error_of(call, *arguments):
    ctypes.set_errno(0)
    return ctypes.get_errno() if call(*arguments) < 0 else 0
def everything(fd):
    return [error_of(libc.fchmod, fd, 0o777), error_of(libc.fchown, fd, 0, 0), error_of(libc.fchownat, fd, b"", 0, 0, 0x1000),
            error_of(libc.futimens, fd, times), error_of(libc.futimens, fd, None), error_of(libc.futimes, fd, times),
            error_of(libc.futimesat, fd, None, times), error_of(libc.fsetxattr, fd, b"user.x", b"1", 1, 0),
            error_of(libc.fremovexattr, fd, b"user.x")]
def look(path):
    st = os.stat(path)
    return st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns
paths = counter, guid, desc, f"{dev}/umad0", f"{dev}/uverbs0", top, f"{ib}/ports"
before = [look(path) for path in paths] + [look(f"{real}{path}") for path in paths]
refused, flags = [errno.EPERM] * 7 + [errno.EOPNOTSUPP] * 2, ctypes.byref(ctypes.c_int(0))
for path in paths:
    fd = os.open(path, os.O_RDWR if path.startswith(dev) else os.O_RDONLY)
    assert everything(fd) == refused, (path, everything(fd))
    os.fchown(fd, -1, -1)
    assert not libc.futimens(fd, ctypes.byref(Times((0, 0x3ffffffe, 0, 0x3ffffffe)))), path
    assert not libc.fchownat(fd, b"", -1, -1, 0x1000), path
    wanted = {f"{dev}/uverbs0": errno.ENODEV, f"{dev}/umad0": errno.ENODEV}.get(path, errno.EBADF)
    assert error_of(libc.ftruncate, fd, 0) == error_of(libc.ftruncate64, fd, ctypes.c_long(9)) == errno.EINVAL, path
    assert error_of(libc.fallocate, fd, 0, ctypes.c_long(0), ctypes.c_long(9)) == wanted, path
    assert libc.posix_fallocate(fd, ctypes.c_long(0), ctypes.c_long(9)) == wanted, path
    if not path.startswith(dev):
        assert [error_of(libc.ioctl, fd, r, flags) for r in (SETFLAGS, GETFLAGS, FSSETXATTR)] == [errno.ENOTTY] * 3, path
    os.close(fd)
    fd = os.open(path, os.O_PATH)
    assert error_of(libc.fchown, fd, -1, -1) == errno.EBADF and not libc.fchownat(fd, b"", -1, -1, 0x1000), path
    assert [error_of(libc.fchmod, fd, 0o777), error_of(libc.futimens, fd, times)] == [errno.EBADF] * 2
    assert error_of(libc.fchownat, fd, b"", 0, 0, 0x1000) == error_of(libc.utimensat, fd, b"", times, 0x1000) == errno.EPERM, path
    for by in f"/proc/self/fd/{fd}", f"/proc/thread-self/fd/{fd}", f"/dev/fd/{fd}":
        fails(errno.EPERM, os.chmod, by, 0o777)
        fails(errno.EPERM, os.utime, by, (1, 1))
    assert error_of(libc.linkat, fd, b"", -100, f"{os.environ['SOFTHCA_DIR']}/made".encode(), 0x1000) == errno.EXDEV, path
    if path in (counter, f"{dev}/umad0"):
        again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        assert is_umad(again) if path.startswith(dev) else os.read(again, 64)[:1].isdigit(), path
    os.close(fd)
written = os.open(desc, os.O_WRONLY)
assert everything(written) == refused and os.fstat(written) == os.stat(desc)
assert error_of(libc.ftruncate, written, 0) == 0 and error_of(libc.fallocate, written, 0, ctypes.c_long(0), ctypes.c_long(9)) == errno.EOPNOTSUPP
fails(errno.EACCES, os.open, f"/proc/self/fd/{os.open(counter, os.O_PATH)}", os.O_RDWR)
assert [look(path) for path in paths] + [look(f"{real}{path}") for path in paths] == before
with tempfile.TemporaryDirectory() as tmp:  # other files are as ever
    fd = os.open(f"{tmp}/x", os.O_RDWR | os.O_CREAT)
    os.fchmod(fd, 0o640), os.fchown(fd, -1, -1), os.utime(fd, (1, 1)), os.ftruncate(fd, 5), os.posix_fallocate(fd, 0, 9)
    assert os.fstat(fd).st_size == 9 and stat.S_IMODE(os.fstat(fd).st_mode) == 0o640
    os.chmod(f"/proc/self/fd/{fd}", 0o600), os.utime(f"/dev/fd/{fd}", (1, 1))
    assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o600 and os.fstat(fd).st_mtime == 1
    assert not libc.linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, f"{tmp}/y".encode(), 0x400) and os.path.exists(f"{tmp}/y")
    open(f"/proc/self/fd/{fd}", "w").write("z")
    assert open(f"{tmp}/y").read() == "z"
"""

SOCKETS = """
import socket, tempfile
top = "/sys/class/infiniband"
def bind(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
for path, error in ((f"{top}/x", errno.EPERM), (f"{dev}/x", errno.EPERM), (ib, errno.EADDRINUSE), (f"{ib}/node_guid", errno.EADDRINUSE),
                    (f"{dev}/umad0", errno.EADDRINUSE), (f"{ib}/none/x", errno.ENOENT), (f"{ib}/node_guid/x", errno.ENOTDIR)):
    fails(error, bind, path)
with tempfile.TemporaryDirectory() as tmp:
    bind(f"{tmp}/x")
    fails(errno.EADDRINUSE, bind, f"{tmp}/x")
    bind("\\0softhca"), bind("")
    with socket.socket(socket.AF_INET) as s:
        s.bind(("127.0.0.1", 0))
        assert libc.bind(s.fileno(), b"\\1\\0/dev/infiniband/x\\0", 24) < 0 and ctypes.get_errno() != errno.EPERM
    ctypes.set_errno(0)
    with socket.socket(socket.AF_UNIX) as s:
        assert libc.bind(s.fileno(), ctypes.c_void_p(8), 24) < 0 and ctypes.get_errno() == errno.EFAULT
    os.chdir(top)
    fails(errno.EPERM, bind, "x"), fails(errno.EADDRINUSE, bind, "mlx5_0")
    bind("../../.." + tmp + "/y")
    assert sorted(os.listdir(tmp)) == ["x", "y"]
"""

# What is below a directory that the tree alone has is the tree's, by any name.
REAL_NAMES = """
device = os.path.realpath(ib)
assert device.startswith("/sys/devices/")
for error, path in ((errno.EPERM, f"{device}/x"), (errno.EPERM, f"{device}/../x"), (errno.EEXIST, f"{device}/node_guid"),
                    (errno.ENOENT, f"{device}/none/x"), (errno.ENOTDIR, f"{device}/node_guid/x")):
    for call in os.mkdir, os.mkfifo, os.mknod, lambda p: os.symlink("x", p):
        fails(error, call, path)
fails(errno.EACCES, os.open, f"{device}/x", os.O_WRONLY | os.O_CREAT, 0o600)
fails(errno.ENOENT, os.stat, f"{device}/x")
d = os.open(f"{device}/ports", os.O_RDONLY)
fails(errno.EPERM, os.mkdir, "x", dir_fd=d), fails(errno.ENOENT, os.unlink, "x", dir_fd=d)
os.chdir(device)
fails(errno.EPERM, os.mkdir, "x"), fails(errno.EPERM, os.rename, "node_guid", "x")
fails(errno.ENOENT, os.mkdir, "/sys/devices/none/x")
"""

ENTRIES = """
d = ctypes.c_long(0)
def read(call, fd, size):
    buffer, names = ctypes.create_string_buffer(size), []
    while True:
        ctypes.set_errno(0)
        n = call(fd, buffer, ctypes.c_size_t(size))
        if n < 0:
            raise OSError(ctypes.get_errno(), "")
        if not n:
            return names
        at = 0
        while at < n:
            length = int.from_bytes(buffer.raw[at + 16:at + 18], "little")
            names.append(buffer.raw[at + 19:at + length].split(b"\\0")[0].decode())
            at += length
        assert at == n
base = ctypes.c_long()
calls = [libc.getdents64] + [lambda fd, b, n, c=c: c(fd, b, n, ctypes.byref(base)) for c in (libc.getdirentries, libc.getdirentries64)]
for path in "/dev", "/sys/class", "/sys/class/net", dev, "/sys/class/infiniband", "/sys/bus/pci/devices", "/etc/default":
    wanted = sorted(os.listdir(path))
    for call in calls:
        for size in 65536, 512, 64:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            for again in range(2):
                names = read(call, fd, size)
                assert sorted(set(names) - {".", ".."}) == wanted and len(names) == len(wanted) + 2, (path, size, names)
                os.lseek(fd, 0, os.SEEK_SET)
            os.close(fd)
fd = os.open("/sys/class", os.O_RDONLY)
buffer = ctypes.create_string_buffer(65536)
machine = libc.getdents64(fd, buffer, ctypes.c_size_t(65536))
fails(errno.EINVAL, read, libc.getdents64, fd, 20)  # no room for the first of the tree's
first = libc.getdents64(fd, buffer, ctypes.c_size_t(40))  # begins with the tree's, and leaves them
assert 0 < first <= 40
os.lseek(fd, 0, os.SEEK_SET)
assert libc.getdents64(fd, buffer, ctypes.c_size_t(65536)) == machine
"""

# An entry's place leads to the one behind it: lseek by a descriptor, seekdir in a directory of the C library.
PLACES = """
import glob
d = ctypes.c_long(0)
libc.lseek.argtypes, libc.lseek.restype = [ctypes.c_int, ctypes.c_long, ctypes.c_int], ctypes.c_long
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.opendir.argtypes, libc.seekdir.argtypes = [ctypes.c_char_p], [ctypes.c_void_p, ctypes.c_long]
libc.readdir.argtypes = libc.rewinddir.argtypes = libc.closedir.argtypes = libc.telldir.argtypes = [ctypes.c_void_p]
libc.telldir.restype = ctypes.c_long
def place(text):
    return int.from_bytes(text[8:16], "little")
def some(fd, size):
    buffer = ctypes.create_string_buffer(size)
    n, at, found = libc.getdents64(fd, buffer, ctypes.c_size_t(size)), 0, []
    assert n >= 0, os.strerror(ctypes.get_errno())
    while at < n:
        length = int.from_bytes(buffer.raw[at + 16:at + 18], "little")
        found.append((buffer.raw[at + 19:at + length].split(b"\\0")[0], place(buffer.raw[at:at + length])))
        at += length
    return found
def rest(fd, size):
    found = []
    while more := some(fd, size):
        found += more
        assert libc.lseek(fd, 0, os.SEEK_CUR) == found[-1][1], found[-1]
    assert not some(fd, size) and libc.lseek(fd, 0, os.SEEK_CUR) >= 0  # and it stays so
    return [name for name, _ in found], [at for _, at in found]
def look(path):
    for size in 4096, 280:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        names, places = rest(fd, size)
        assert len(set(places)) == len(places) and sorted(set(names) - {b".", b".."}) == sorted(os.listdir(path)), (path, places)
        for i in list(range(len(places))) + [0, len(places) - 1, len(places) // 2]:
            assert libc.lseek(fd, places[i], os.SEEK_SET) == places[i]
            assert libc.lseek(fd, 0, os.SEEK_CUR) == places[i]
            assert rest(fd, size)[0] == names[i + 1:], (path, i, names[i])
        other = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        assert libc.lseek(other, places[-2], os.SEEK_SET) == places[-2] and some(other, size)[0][0] == names[-1]
        os.close(other)  # and the number is another file's, in the middle of a listing
        other = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        assert libc.lseek(other, 0, os.SEEK_CUR) == 0 and some(other, size)[0][0] == names[0]
        os.close(other)
        assert libc.lseek(fd, 0, os.SEEK_SET) == 0 and rest(fd, size)[0] == names
        ctypes.set_errno(0)
        assert libc.lseek(fd, -1, os.SEEK_SET) < 0 and ctypes.get_errno() == errno.EINVAL
        os.close(fd)
    d, found = libc.opendir(path), []
    while entry := libc.readdir(d):
        found.append((ctypes.string_at(entry + 19), place(ctypes.string_at(entry, 16))))
        assert libc.telldir(d) == found[-1][1], found[-1]
    for i, (_, at) in enumerate(found[:-1]):
        libc.seekdir(d, at)
        assert ctypes.string_at(libc.readdir(d) + 19) == found[i + 1][0], (path, i)
    libc.seekdir(d, found[-1][1])
    assert not libc.readdir(d)
    libc.rewinddir(d)
    assert ctypes.string_at(libc.readdir(d) + 19) == found[0][0]
    libc.closedir(d)
for path in b"/dev", b"/sys/class", b"/sys/bus/pci/devices", b"/sys/class/infiniband":
    # The machine's own entries may come and go meanwhile, as beside other tests.
    for attempt in range(20):
        try:
            look(path)
            break
        except AssertionError as e:
            wrong = e
    else:
        raise wrong
for n in range(70):  # descriptors that are closed in the middle take nobody's room
    fds = [os.open("/sys/class", os.O_RDONLY) for _ in range(n)]
    names = rest(fds[-1], 4096)[0] if fds else []
    assert not fds or b"infiniband" in names, n
    for fd in fds:
        os.close(fd)
for name in "uverbs0", "umad0", "issm0", "rdma_cm":
    file = os.open(f"{dev}/{name}", os.O_RDWR)
    for whence in os.SEEK_SET, os.SEEK_CUR, os.SEEK_END:
        fails(errno.ESPIPE, os.lseek, file, 0, whence)
    os.close(file)
for node in glob.glob("/dev/uio*"):
    assert [os.lseek(os.open(node, os.O_RDWR), 7, whence) for whence in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END)] == [0] * 3, node
for path in f"{ib}/node_guid", f"{ib}/ports/1/counters/port_xmit_data":
    file = os.open(path, os.O_RDONLY)
    text = os.read(file, 4096)
    assert os.lseek(file, 0, os.SEEK_END) == os.fstat(file).st_size == 4096 and os.read(file, 9) == b"", path
    assert os.lseek(file, 0, os.SEEK_SET) == 0 and os.read(file, 4096) == text, path
    os.close(file)
file = os.open(f"{ib}/node_guid", os.O_RDONLY)
assert libc.lseek(file, 3, os.SEEK_SET) == 3 and libc.lseek(file, 0, os.SEEK_CUR) == 3
assert libc.lseek(file, (1 << 31) - 1, os.SEEK_SET) == (1 << 31) - 1
for far in 1 << 31, 1 << 62:
    for whence in os.SEEK_SET, os.SEEK_CUR, os.SEEK_END:
        fails(errno.EINVAL, os.lseek, file, far, whence)
"""

SPAWN = """
import subprocess, sys
def spawned(fd, path, flags, command, clear=False, twice=lambda: None):
    actions = ctypes.create_string_buffer(512)
    libc.posix_spawn_file_actions_init(actions)
    error = libc.posix_spawn_file_actions_addopen(actions, fd, path.encode(), flags, 0o600)
    outputs = []
    for start in range(2):
        r, w = os.pipe()
        os.set_inheritable(w, True)
        libc.posix_spawn_file_actions_adddup2(actions, w, 1)
        pid = ctypes.c_int()
        words = (ctypes.c_char_p * 4)(b"sh", b"-c", command.encode(), None)
        variables = {k: v for k, v in os.environ.items() if not clear or k != "LD_PRELOAD"}
        environ = (ctypes.c_char_p * (len(variables) + 1))(*[f"{k}={v}".encode() for k, v in variables.items()], None)
        error = error or libc.posix_spawn(ctypes.byref(pid), b"/bin/sh", actions, None, words, environ)
        os.close(w)
        outputs.append(error or (os.read(r, 4096).decode().strip(), os.waitpid(pid.value, 0)[1]))
        os.close(r)
        twice()
    libc.posix_spawn_file_actions_destroy(actions)
    return outputs
def low():  # the library's own have high numbers
    return [fd for fd in os.listdir("/proc/self/fd") if int(fd) < 200]
open_before = low()
guid = open(f"{ib}/node_guid").read().strip()
assert spawned(0, f"{ib}/node_guid", os.O_RDONLY, "cat") == [(guid, 0)] * 2
assert spawned(0, f"{ib}/node_guid", os.O_RDONLY, "cat", clear=True) == [(guid, 0)] * 2
assert spawned(0, os.path.realpath(f"{ib}/node_guid"), os.O_RDONLY, "cat") == [(guid, 0)] * 2
assert spawned(3, dev, os.O_RDONLY | os.O_DIRECTORY, "ls /proc/self/fd/3 | grep -c umad0") == [("1", 0)] * 2
# as it is when the program starts
counter = f"{ib}/ports/1/counters/port_xmit_packets"
first, second = spawned(0, counter, os.O_RDONLY, "cat", clear=True, twice=lambda: os.system("perfquery 3 1 > /dev/null"))
assert first[1] == second[1] == 0 and int(second[0]) > int(first[0]), (first, second)
for path, flags, error in ((f"{ib}/node_guid", os.O_WRONLY | os.O_TRUNC, errno.EACCES), (f"{ib}/x", os.O_WRONLY | os.O_CREAT, errno.EACCES),
                           (f"{ib}/x", os.O_RDONLY, errno.ENOENT), (f"{dev}/umad0/", os.O_RDWR, errno.ENOTDIR)):
    assert spawned(3, path, flags, ":") == [error] * 2, (path, spawned(3, path, flags, ":"))
assert open(f"{ib}/node_guid").read().strip() == guid
old = open(f"{ib}/node_desc").read()
assert spawned(3, f"{ib}/node_desc", os.O_WRONLY | os.O_TRUNC, "printf started >&3; echo done", clear=True) == [("done", 0)] * 2
assert open(f"{ib}/node_desc").read().strip() == "started"
with open(f"{ib}/node_desc", "w") as file:
    file.write(old.strip())
assert spawned(3, f"{dev}/umad0", os.O_RDWR, f"{sys.executable} -c 'import fcntl; fcntl.ioctl(3, 0x1b03)'") == [("", 0)] * 2  # IB_USER_MAD_ENABLE_PKEY
assert low() == open_before
# children that are made while another thread starts programs
import signal, threading
ends = threading.Event()
def starts():
    while not ends.is_set():
        spawned(0, f"{ib}/node_guid", os.O_RDONLY, "cat")
thread = threading.Thread(target=starts)
thread.start()
for _ in range(20):
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        os._exit(spawned(0, f"{ib}/node_guid", os.O_RDONLY, "cat") != [(guid, 0)] * 2)
    assert os.waitpid(pid, 0)[1] == 0
ends.set()
thread.join()
"""

OPENAT2 = """
import struct, tempfile
NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT, CACHED = 1, 2, 4, 8, 16, 32
def how(flags, resolve=0, mode=0, rest=b""):
    return struct.pack("QQQ", flags, mode, resolve) + rest
def openat2(at, path, flags=os.O_RDONLY, resolve=0, mode=0, rest=b"", size=None):
    passed = how(flags, resolve, mode, rest)
    fd = libc.openat2(at, os.fsencode(path), passed, ctypes.c_size_t(len(passed) if size is None else size))
    if fd < 0:
        raise OSError(ctypes.get_errno(), path)
    return fd
def text(*arguments, **keywords):
    with open(openat2(*arguments, **keywords)) as f:
        return f.read()
here = -100  # AT_FDCWD
guid = open(f"{ib}/node_guid").read()
assert is_umad(openat2(here, f"{dev}/umad0", os.O_RDWR | os.O_CLOEXEC, rest=bytes(8)))
assert is_umad(openat2(here, f"{dev}/umad0", os.O_RDWR, NO_SYMLINKS | NO_MAGICLINKS))
assert text(here, f"{ib}/node_guid") == guid == text(here, f"{ib}/node_guid", resolve=NO_MAGICLINKS)
assert stat.S_ISLNK(os.fstat(openat2(here, ib, os.O_PATH | os.O_NOFOLLOW, NO_SYMLINKS)).st_mode)
# What the kernel says of the other argument comes before what is said of the path.
for path in (f"{dev}/umad0", f"{ib}/node_guid", f"{dev}/none"):
    for wrong in ({"flags": 1 << 40}, {"mode": 0o600}, {"size": 16}, {"resolve": 1 << 20}, {"resolve": BENEATH | IN_ROOT}):
        fails(errno.EINVAL, openat2, here, path, **wrong)
    fails(errno.E2BIG, openat2, here, path, rest=bytes(7) + b"1")
    assert libc.openat2(here, path.encode(), None, ctypes.c_size_t(24)) < 0 and ctypes.get_errno() == errno.EFAULT
fails(errno.EACCES, openat2, here, f"{ib}/node_guid", os.O_WRONLY)
fails(errno.EACCES, openat2, here, f"{dev}/none", os.O_WRONLY | os.O_CREAT, mode=0o600)
fails(errno.ENOENT, openat2, here, f"{dev}/none")
# The class's entries are links, those of devices' files are not.
fails(errno.ELOOP, openat2, here, f"{ib}/node_guid", resolve=NO_SYMLINKS)
at = {path: os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in ("/", "/sys", "/sys/class", "/dev", dev, ib)}
for path in ("/", "/dev", dev):
    name = os.path.relpath(f"{dev}/umad0", path)
    for resolve in (BENEATH, IN_ROOT, BENEATH | NO_SYMLINKS):
        assert is_umad(openat2(at[path], name, os.O_RDWR, resolve)), (path, resolve)
    assert is_umad(openat2(at[path], f"/../{name}", os.O_RDWR, IN_ROOT)), path
    fails(errno.EXDEV, openat2, at[path], f"{dev}/umad0", os.O_RDWR, BENEATH)
assert is_umad(openat2(at["/dev"], "infiniband/../infiniband/umad0", os.O_RDWR, BENEATH | NO_XDEV))
fails(errno.EXDEV, openat2, at[dev], "../infiniband/umad0", os.O_RDWR, BENEATH)
fails(errno.ENOENT, openat2, at[dev], f"{dev}/umad0", os.O_RDWR, IN_ROOT)
name = "class/infiniband/mlx5_0/node_guid"
for resolve in (BENEATH, IN_ROOT, NO_XDEV):
    assert text(at["/sys"], name, resolve=resolve) == guid, resolve
# The link leads up out of the class's directory.
fails(errno.EXDEV, openat2, at["/sys/class"], "infiniband/mlx5_0/node_guid", resolve=BENEATH)
fails(errno.ENOENT, openat2, at["/sys/class"], "infiniband/mlx5_0/node_guid", resolve=IN_ROOT)
assert text(at["/sys/class"], "infiniband/mlx5_0/node_guid", resolve=NO_XDEV) == guid
assert text(at[ib], "node_guid", resolve=BENEATH | NO_SYMLINKS | NO_XDEV) == guid
fails(errno.EXDEV, openat2, at[ib], "../../numa_node", resolve=BENEATH)
for path in (f"{dev}/umad0", f"{ib}/node_guid"):
    fails(errno.EXDEV, openat2, here, path, resolve=NO_XDEV)
fd = os.open(f"{ib}/node_guid", os.O_PATH)
assert text(here, f"/proc/self/fd/{fd}") == guid
fails(errno.ELOOP, openat2, here, f"/proc/self/fd/{fd}", resolve=NO_MAGICLINKS)
# Elsewhere a root of the program's own is the machine's, whatever the names in it.
with tempfile.TemporaryDirectory() as other:
    os.makedirs(f"{other}{dev}")
    open(f"{other}{dev}/umad0", "w").write("a file")
    root = os.open(other, os.O_RDONLY)
    assert text(root, f"{dev}/umad0", resolve=IN_ROOT) == "a file"
    fails(errno.ENOENT, openat2, root, f"{ib}/node_guid", resolve=IN_ROOT)
"""

def script(text):
    return lambda session: session.run_ok("python3", "-c", BEGIN + text)


SETTINGS = """
import subprocess
path = "/proc/sys/net/rdma_ucm/max_backlog"
assert os.listdir("/proc/sys/net/rdma_ucm") == ["max_backlog"]
assert open(path).read() == "1024\\n" and os.stat(path).st_size == 0
fails(errno.EACCES, open, path, "w")
os.chdir("/proc/sys/net/rdma_ucm")
assert open("max_backlog").read() == open("../rdma_ucm/max_backlog").read() == "1024\\n"
os.chdir("/")
fails(errno.ENOENT, os.stat, "/proc/sys/net/rdma_ucm/none")
if os.path.exists("/usr/sbin/sysctl"):
    said = subprocess.run(["/usr/sbin/sysctl", "net.rdma_ucm.max_backlog"], capture_output=True, text=True)
    assert said.stdout == "net.rdma_ucm.max_backlog = 1024\\n", said
"""


def cases():
    return [
        ("files: device files by relative names", script(RELATIVE)),
        ("files: slashes behind links and files", script(SLASHES)),
        ("files: up behind a link", script(UP)),
        ("files: copies and descriptions of attributes", script(COPY)),
        ("files: events and numbers of devices", script(UEVENTS)),
        ("files: listings of what the machine has, too", script(LISTINGS)),
        ("files: settings below /proc/sys", script(SETTINGS)),
        ("files: walks of the C library", script(WALKS)),
        ("files: nobody changes the tree", script(CHANGES)),
        ("files: nobody changes the tree by descriptors", script(DESCRIPTORS)),
        ("files: openat2 and its limits", script(OPENAT2)),
        ("files: names of local sockets", script(SOCKETS)),
        ("files: real names", script(REAL_NAMES)),
        ("files: entries of directories by descriptors", script(ENTRIES)),
        ("files: places in directories", script(PLACES)),
        ("files: of programs that are spawned", script(SPAWN)),
        ("files: types and interfaces of GIDs", script(GIDS)),
        ("files: attributes that are written, streams of them", script(ATTRIBUTES)),
    ]
