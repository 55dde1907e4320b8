# SPDX-License-Identifier: BSD-2-Clause
"""What devices and ports say of themselves: by verbs, in sysfs and in PortInfo, for each model.

The values are those of public dumps of the cards; docs/fidelity.md names them."""
import re

from harness import expect

# Speed of a lane by verbs, rate in sysfs, hardware revision, clock
MODELS = {
    "connectx-5": ("25.0 Gbps (32)", "100 Gb/sec (4X EDR)", "0x0", 78125),
    "connectx-6": ("50.0 Gbps (64)", "200 Gb/sec (4X HDR)", "0x0", 156250),
    "connectx-6dx": ("25.0 Gbps (32)", "100 Gb/sec (4X EDR)", "0x0", 1000000),
    "connectx-7": ("100.0 Gbps (128)", "400 Gb/sec (4X NDR)", "0x0", 1000000),
    "bluefield-2": ("25.0 Gbps (32)", "100 Gb/sec (4X EDR)", "0x1", 1000000),
    "bluefield-3": ("100.0 Gbps (128)", "400 Gb/sec (4X NDR)", "0x1", 1000000),
}
LOOK = """
for device in mlx5_0 mlx5_1; do
    echo "== $device"
    ibv_devinfo -v -d $device
    echo "== sysfs of $device"
    cd /sys/class/infiniband/$device
    grep . sys_image_guid hw_rev board_id ports/1/rate ports/1/cap_mask ports/1/phys_state \\
        ports/1/state ports/1/sm_sl ports/1/lid ports/1/sm_lid
    ls ports/1/pkeys | wc -l
done
echo == portinfo
smpquery portinfo "$(cat /sys/class/infiniband/mlx5_0/ports/1/lid)"
"""


def sections(text):
    parts = re.split(r"^== (.*)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def verbs_fields(text):
    fields = {}
    for line in text.splitlines():
        name, colon, value = line.strip().partition(":")
        if colon and name not in fields:
            fields[name] = value.strip()
    return fields


def look(session, model):
    """Returns what programs print on a fabric of its own: the sections of LOOK."""
    result = session.tool("run", "--model", model, "--fabric", model, "--", "sh", "-c", LOOK)
    expect(result.status == 0, result.text())
    return sections(result.out)


def same(what, got, wanted):
    expect(got == wanted, f"{what}: {got!r}, expected {wanted!r}")


def check_port(model, device, verbs, sysfs):
    """Verbs and sysfs agree, and the speed is the card's."""
    speed, rate, revision, _ = MODELS[model]
    same(f"{device} active_speed", verbs["active_speed"], speed)
    same(f"{device} active_width", verbs["active_width"], "4X (2)")
    same(f"{device} rate", sysfs["ports/1/rate"], rate)
    same(f"{device} hw_ver", verbs["hw_ver"], revision)
    same(f"{device} hw_rev", f"0x{sysfs['hw_rev']}", revision)
    same(f"{device} board_id", verbs["board_id"], sysfs["board_id"])
    same(f"{device} state", verbs["state"].split()[0], "PORT_" + sysfs["ports/1/state"].split()[1])
    same(f"{device} phys_state", verbs["phys_state"].split()[0].replace("_", ""),
         sysfs["ports/1/phys_state"].split()[1].upper())
    same(f"{device} sm_sl", verbs["sm_sl"], sysfs["ports/1/sm_sl"])
    same(f"{device} port_lid", int(verbs["port_lid"]), int(sysfs["ports/1/lid"], 16))
    same(f"{device} sm_lid", int(verbs["sm_lid"]), int(sysfs["ports/1/sm_lid"], 16))
    # Bit 26 means IP-based GIDs in verbs.
    same(f"{device} capabilities", int(verbs["port_cap_flags"], 16) & ~(1 << 26),
         int(sysfs["ports/1/cap_mask"], 16) & ~(1 << 26))


def check_port_info(verbs, sysfs, info):
    same("CapMask", info["CapMask"], sysfs["ports/1/cap_mask"])
    same("CapabilityMask2", int(info["CapabilityMask2"], 16), int(verbs["port_cap_flags2"], 16))
    same("SubnetTimeout", info["SubnetTimeout"], verbs["subnet_timeout"])
    same("VLCap", info["VLCap"], "VL0-7")
    same("max_vl_num", verbs["max_vl_num"], "8 (4)")
    same("MtuCap", info["MtuCap"], verbs["max_mtu"].split()[0])
    same("NeighborMTU", info["NeighborMTU"], verbs["active_mtu"].split()[0])
    same("LinkWidthActive", info["LinkWidthActive"], verbs["active_width"].split()[0])
    same("SMSL", info["SMSL"], verbs["sm_sl"])


def ports(session, model):
    found = look(session, model)
    info = dict(re.findall(r"^(\w+):\.*(.*)$", found["portinfo"], re.M))
    for device in ("mlx5_0", "mlx5_1"):
        verbs = verbs_fields(found[device])
        sysfs = dict(re.findall(r"^([\w/]+):(.*)$", found[f"sysfs of {device}"], re.M))
        check_port(model, device, verbs, sysfs)
        if device == "mlx5_0":
            check_port_info(verbs, sysfs, info)


# What cards have and the device has, too (device_cap_flags_ex); docs/fidelity.md has the rest.
FLAGS = {"mlx5_0": 0x1001321c36, "mlx5_1": 0x1025321c36}
DEVICE = {
    "max_cqe": "4194303", "max_srq": "8388608", "max_srq_wr": "32767", "max_srq_sge": "31",
    "max_ah": "2147483647", "max_pkeys": "128", "max_mcast_grp": "2097152",
    "max_mcast_qp_attach": "240", "max_total_mcast_qp_attach": "503316480",
    "max_qp_wr": "32768", "max_sge": "30", "max_cq": "16777216", "max_mr": "16777216",
    "max_mw": "16777216", "max_pd": "8388608", "max_qp_rd_atom": "16",
    "local_ca_ack_delay": "16", "completion timestamp_mask": "0x7fffffffffffffff",
    "page_size_cap": "0xfffffffffffff000",
}
ODP = {
    "rc_odp_caps": {"SUPPORT_SEND", "SUPPORT_RECV", "SUPPORT_WRITE", "SUPPORT_READ",
                    "SUPPORT_ATOMIC", "SUPPORT_SRQ"},
    "uc_odp_caps": {"NO SUPPORT"},
    "ud_odp_caps": {"SUPPORT_SEND"},
    "xrc_odp_caps": {"SUPPORT_SEND", "SUPPORT_WRITE", "SUPPORT_READ", "SUPPORT_ATOMIC",
                     "SUPPORT_SRQ"},
}


def attributes(session):
    for device in ("mlx5_0", "mlx5_1"):
        out = session.run_ok("ibv_devinfo", "-v", "-d", device).out
        verbs = verbs_fields(out)
        for name, wanted in DEVICE.items():
            same(f"{device} {name}", verbs.get(name), wanted)
        same(f"{device} flags", int(verbs["device_cap_flags_ex"], 16), FLAGS[device])
        for transport, wanted in ODP.items():
            lines = re.search(rf"{transport}:\n((?:\s+(?:NO )?SUPPORT\w*\n)+)", out).group(1)
            same(f"{device} {transport}", {line.strip() for line in lines.splitlines()}, wanted)
        if device == "mlx5_0":
            same("pkey_tbl_len", verbs["pkey_tbl_len"], verbs["max_pkeys"])


def clock(session, model):
    program = str(session.build / "tests/traffic/clock")
    khz = str(MODELS[model][3])
    for device in ("mlx5_0", "mlx5_1"):
        result = session.tool("run", "--model", model, "--fabric", model, "--", program, device, khz)
        expect(result.status == 0, f"{model} {device}: {result.text()}")


SWITCH = """
lid=$(ibswitches | sed -n 's/.* lid \\([0-9]*\\).*/\\1/p' | head -1)
"$SOFTHCA_TOOL" fabric port mlx5_0 down
"$SOFTHCA_TOOL" fabric port mlx5_0 up
until [ "$(cat /sys/class/infiniband/mlx5_0/ports/1/state)" = "4: ACTIVE" ]; do sleep 0.1; done
perfquery $lid 1
echo == extended
perfquery -x $lid 1
perfquery -x -R $lid 1
echo == cleared
perfquery -x $lid 1
echo == basic
perfquery $lid 1
"""


def switch_errors(session):
    """A switch counts errors in both attributes, as ClassPortInfo says, and each is cleared alone."""
    session.env["SOFTHCA_TOOL"] = session.softhca
    try:
        result = session.run_ok("sh", "-c", SWITCH)
    finally:
        del session.env["SOFTHCA_TOOL"]
    found = sections("== first\n" + result.out)
    for name, wanted in (("first", 1), ("extended", 1), ("cleared", 0), ("basic", 1)):
        downed = re.search(r"^LinkDownedCounter:\.*(\d+)$", found[name], re.M)
        expect(downed and int(downed[1]) == wanted, f"{name}, {wanted} expected: {result.text()}")
    expect("CapMask2: 0x0000002" in found["extended"], result.text())


def cases():
    per_model = [(f"{what} of {model}", lambda session, test=test, model=model: test(session, model))
                 for model in MODELS for what, test in (("ports", ports), ("clock", clock))]
    return [("attributes of devices", attributes), ("errors of a switch's port", switch_errors),
            *per_model]
