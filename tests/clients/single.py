# SPDX-License-Identifier: BSD-2-Clause
"""Stock programs that describe the devices."""
import re
import tempfile

from harness import expect, free_port

GUID = r"[0-9a-f]{4}:[0-9a-f]{4}:[0-9a-f]{4}:[0-9a-f]{4}"


def devices(session):
    out = session.run_ok("ibv_devices").out
    guids = dict(re.findall(r"^\s+(mlx5_\d)\s+([0-9a-f]{16})$", out, re.M))
    expect(set(guids) == {"mlx5_0", "mlx5_1"}, out)
    expect(len(set(guids.values())) == 2 and "0" * 16 not in guids.values(), out)


def devinfo(session, device):
    out = session.run_ok("ibv_devinfo", "-v", "-d", device).out
    fields = {}
    for line in out.splitlines():
        name, colon, value = line.strip().partition(":")
        if colon and name not in fields:
            fields[name] = value.strip()
    return out, fields


def expect_fields(fields, wanted):
    for name, pattern in wanted.items():
        expect(re.fullmatch(pattern, fields.get(name, "")),
               f"{name}: {fields.get(name)!r}, expected {pattern}")


COMMON = {
    "hca_id": r"mlx5_\d",
    "transport": r"InfiniBand \(0\)",
    "fw_ver": r"\d+\.\d+\.\d+",
    "node_guid": GUID,
    "sys_image_guid": GUID,
    "vendor_id": r"0x02c9",
    "vendor_part_id": r"41692",  # BlueField-3 network controller
    "board_id": r"MT_\d{10}",
    "phys_port_cnt": r"1",
    "max_qp": r"[1-9]\d{3,}",
    "max_sge": r"[1-9]\d*",
    "max_cqe": r"[1-9]\d{3,}",
    "max_qp_rd_atom": r"16",
    "atomic_cap": r"ATOMIC_HCA \(1\)",
    "state": r"PORT_ACTIVE \(4\)",
    "phys_state": r"LINK_UP \(5\)",
    "max_mtu": r"4096 \(5\)",
    "active_width": r"4X \(2\)",
}


def devinfo_ib(session):
    out, fields = devinfo(session, "mlx5_0")
    expect_fields(fields, COMMON)
    expect_fields(fields, {"link_layer": "InfiniBand", "port_lid": r"[1-9]\d*",
                           "active_mtu": r"4096 \(5\)"})
    expect(re.search(r"^\s+GID\[\s*0\]:\s+fe80:", out, re.M), out)


def devinfo_roce(session):
    out, fields = devinfo(session, "mlx5_1")
    expect_fields(fields, COMMON)
    expect_fields(fields, {"link_layer": "Ethernet", "port_lid": "0"})
    gids = re.findall(r"^\s+GID\[\s*(\d+)\]:\s+(\S+?),? (RoCE v\d)\s*$", out, re.M)
    expect(any(kind == "RoCE v2" for _, _, kind in gids), out)


def system_guids(session):
    """Devices of a card share a system image GUID, which verbs and sysfs say alike."""
    seen = set()
    for device in ("mlx5_0", "mlx5_1"):
        verbs = devinfo(session, device)[1]["sys_image_guid"]
        sysfs = session.run_ok("cat", f"/sys/class/infiniband/{device}/sys_image_guid").out.strip()
        expect(verbs == sysfs, f"{device}: {verbs} by verbs, {sysfs} in sysfs")
        seen.add(verbs)
    expect(len(seen) == 1, f"{seen}")


def ibstat(session):
    out = session.run_ok("ibstat").out
    blocks = re.split(r"^CA '", out, flags=re.M)[1:]
    expect(sorted(b.split("'")[0] for b in blocks) == ["mlx5_0", "mlx5_1"], out)
    for block in blocks:
        for wanted in (r"CA type: MT41692", r"State: Active", r"Physical state: LinkUp",
                       r"Rate: [1-9]\d+", r"Node GUID: 0x(?!0{16})[0-9a-f]{16}",
                       r"Firmware version: \d+\.\d+\.\d+"):
            expect(re.search(wanted, block), f"no '{wanted}' in\n{out}")
    expect("Link layer: InfiniBand" in out and "Link layer: Ethernet" in out, out)


def ibstat_list(session):
    expect(session.run_ok("ibstat", "-l").out.split() == ["mlx5_0", "mlx5_1"], "ibstat -l")


def sysfs_by_shell(session):
    """Programs that know nothing of RDMA see the same tree."""
    result = session.run_ok("cat", "/sys/class/infiniband/mlx5_0/ports/1/state")
    expect(result.out == "4: ACTIVE\n", repr(result.out))
    result = session.run_ok("ls", "/sys/class/infiniband")
    expect(result.out.split() == ["mlx5_0", "mlx5_1"], result.text())
    result = session.run_ok("sh", "-c", "cat /sys/class/infiniband/*/node_desc")
    expect(result.out.splitlines() == ["host1 mlx5_0", "host1 mlx5_1"], result.text())


def first_device(session):
    """mlx5_0 is the first device, although tmpfs lists what is newest first."""
    with tempfile.TemporaryDirectory(prefix="softhca-test.", dir="/dev/shm") as directory:
        env = session.env | {"XDG_RUNTIME_DIR": directory}
        try:
            out = session.run_ok("ibv_devices", env=env).out
            expect(re.findall("mlx5_.", out) == ["mlx5_0", "mlx5_1"], out)
        finally:
            session.tool("fabric", "down", env=env)


def counters_by_shell(session):
    path = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"
    result = session.run_ok("cat", path)
    expect(re.fullmatch(r"\d+\n", result.out), repr(result.out))


REREAD = """
import ctypes, os, subprocess, sys, time
path, port = sys.argv[1:]
fd = os.open(path, os.O_RDONLY)
other = os.dup(fd)
def traffic():
    command = ["ibv_rc_pingpong", "-d", "mlx5_0", "-p", port]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(50):
        time.sleep(0.1)
        if not subprocess.call([*command, "127.0.0.1"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL):
            break
    assert server.wait() == 0
values = [int(os.read(fd, 64))]
traffic()
assert os.read(fd, 64) == b"", "the rest of a text that has been read"
values.append(int(os.pread(fd, 64, 0)))
os.lseek(other, 0, os.SEEK_SET) # long before the read
traffic()
values.append(int(os.read(fd, 64)))
assert values[0] < values[1] < values[2], values
# A number that a close inside libc has freed belongs to the next file.
ctypes.CDLL(None).syscall(3 if os.uname().machine == "x86_64" else 57, fd)
next_file = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR)
assert next_file == fd
assert os.write(next_file, b"mine") == 4
os.lseek(next_file, 0, os.SEEK_SET)
assert os.read(next_file, 64) == b"mine"
"""


def counters_reread(session):
    """One descriptor follows a counter, as a file of sysfs does."""
    path = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"
    session.run_ok("python3", "-c", REREAD, path, str(free_port()))


PCI_VIEW = r"""
import os, re
bus, net = "/sys/bus/pci/devices", "/sys/class/net"
def text(path):
    with open(path, encoding="ascii") as f:
        return f.read()
found = {}
for address in os.listdir(bus):
    assert os.path.realpath(f"{bus}/{address}", strict=True).endswith("/" + address), address
    if os.path.isdir(f"{bus}/{address}/infiniband"):
        found[os.listdir(f"{bus}/{address}/infiniband")[0]] = address
assert sorted(found) == ["mlx5_0", "mlx5_1"], found
for name, address in found.items():
    function = f"/sys/class/infiniband/{name}/device"
    assert os.path.realpath(function) == os.path.realpath(f"{bus}/{address}"), name
    assert os.path.realpath(f"{function}/driver") == "/sys/bus/pci/drivers/mlx5_core", name
    assert address in os.listdir(f"{function}/driver"), name
    assert os.path.basename(os.path.realpath(f"{function}/subsystem")) == "pci", name
    events = dict(line.split("=") for line in text(f"{function}/uevent").splitlines())
    vendor, device, kind = (int(text(f"{function}/{n}"), 16) for n in ("vendor", "device", "class"))
    assert events["DRIVER"] == "mlx5_core" and events["PCI_SLOT_NAME"] == address, events
    assert events["PCI_ID"] == "%04X:%04X" % (vendor, device), events
    assert events["PCI_CLASS"] == "%X" % kind and events["MODALIAS"] + "\n" == text(f"{function}/modalias"), events
    lines = text(f"{function}/resource").splitlines()
    assert len(lines) == 7 and all(re.fullmatch("(0x[0-9a-f]{16} ?){3}", line) for line in lines), lines
    with open(f"{function}/config", "rb") as f:
        config = f.read()
    assert int.from_bytes(config[0:2], "little") == vendor and int.from_bytes(config[2:4], "little") == device
netdev = text("/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0").strip()
assert os.path.realpath(f"{net}/{netdev}/device") == os.path.realpath(f"{bus}/{found['mlx5_1']}"), netdev
assert os.listdir(f"{net}/{netdev}/device/infiniband") == ["mlx5_1"], netdev
assert text(f"{net}/{netdev}/dev_port") == "0\n", netdev
assert int(text(f"{net}/{netdev}/ifindex")) > 0, netdev
print("ours", *sorted(found.values()))
"""

PCI_LIST = """
import os
bus = "/sys/bus/pci/devices"
for name in sorted(os.listdir(bus)) if os.path.isdir(bus) else []:
    print(name, os.path.realpath(f"{bus}/{name}"), open(f"{bus}/{name}/uevent").read().split())
print("net", sorted(os.listdir("/sys/class/net")))
"""


def pci_view(session):
    """From the PCI bus and from the network interface, programs find the same devices."""
    addresses = session.run_ok("python3", "-c", PCI_VIEW).out.split()[1:]
    # What the machine has is seen, too, and no address is given out twice.
    machine = session.call("python3", "-c", PCI_LIST).out.splitlines()
    seen = session.run_ok("python3", "-c", PCI_LIST).out.splitlines()
    expect([line for line in seen if line.split()[0] not in addresses] == machine, f"{machine}\n{seen}")


def cases():
    return [
        ("ibv_devices", devices),
        ("ibv_devinfo ib", devinfo_ib),
        ("ibv_devinfo roce", devinfo_roce),
        ("system image GUID", system_guids),
        ("ibstat", ibstat),
        ("ibstat -l", ibstat_list),
        ("cat and ls of sysfs", sysfs_by_shell),
        ("the first device", first_device),
        ("PCI view", pci_view),
        ("cat of a live counter", counters_by_shell),
        ("a live counter read again", counters_reread),
    ]
