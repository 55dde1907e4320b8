# SPDX-License-Identifier: BSD-2-Clause
"""Descriptions that programs give their nodes, by the file that rdma-ndd and set_nodedesc.sh write."""
import json
import re

import nets
from harness import expect, within
from subnet import NAME, Subnet

FILE = "/sys/class/infiniband/mlx5_0/node_desc"


def everybody_sees(session):
    """However it is written, the file, the port's agent and the built-in SM's records have the new text."""
    with Subnet(session, nets.router()) as subnet:
        for n, write in enumerate((f"echo -n {{}} > {FILE}", f"/bin/echo -n {{}} >> {FILE}",
                                   f"cd $(dirname {FILE}); printf %s {{}} > node_desc",
                                   f"exec 7<>{FILE}; read -r old <&7; /bin/echo -n {{}} >&7",
                                   f"python3 -c 'open(\"{FILE}\", \"w\").write(\"{{}}\")'")):
            name = f"named-{n}"
            text = subnet.ok("C", "bash", "-c", write.format(name) + f"; cat {FILE}")
            expect(text == f"{name}\n", f"{write}: '{text}'")
            expect(f"..{name}\n" in subnet.ok("C", "smpquery", "-D", "nodedesc", "0"), write)
        expect(re.search(f'^Ca.*# "{name}"$', subnet.ok("A", "ibnetdiscover"), re.MULTILINE), name)
        expect(name in subnet.ok("A", "saquery"), "records")
        # As the kernel does it: 64 bytes of it, the newline among them if there is room.
        subnet.ok("C", "bash", "-c", f"echo short > {FILE}")
        expect(subnet.ok("C", "cat", FILE) == "short\n\n", "newline")
        subnet.ok("C", "bash", "-c", f"printf %070d 0 > {FILE}")
        expect(subnet.ok("C", "cat", FILE) == 64 * "0" + "\n", "64 bytes")
        shown = json.loads(session.tool("fabric", "show", "--fabric", NAME, "--json").out)
        expect(64 * "0" in [node["name"] for node in shown["nodes"]], "fabric show")


def opensm_hears(session):
    """Trap 144 makes a resident OpenSM, which sweeps by itself never, read the new text."""
    with Subnet(session, nets.router(), "external") as subnet:
        subnet.opensm_resident("A", "-s", "0")
        for host, name in (("C", "first"), ("S2", "second"), ("A", "third")):
            device = "switch0" if host == "S2" else "mlx5_0"
            subnet.ok(host, "bash", "-c", f"echo -n {name} > /sys/class/infiniband/{device}/node_desc")
            expect(within(30, lambda: name in subnet.ok("B", "saquery")), f"{host}: {subnet.log()}")


def called():
    """Descriptions with blanks and quotes, and two that are the same."""
    return nets.text(['Switch 8 "S1"\t# "leaf switch 1"', '[1] "H1"[1]', '[2] "H2"[1]', '[3] "H3"[1]', "",
                      'Hca 1 "H1"\t# node \'A\' mlx5_0', '[1] "S1"[1]', "",
                      'Hca 1 "H2"\t# "spare node"', '[1] "S1"[2]', "",
                      'Hca 1 "H3"\t# "spare node"', '[1] "S1"[3]', ""])


def hosts_by_any_name(session):
    """--host takes name, GUIDs, id and description; of several with one description none, but tells them."""
    with Subnet(session, called()) as subnet:
        for guid, names in {
                0x100001: ("H1", "0x100000", "0x100001", f"{0x100001:016x}", "node 'A' mlx5_0"),
                0x100003: ("H2", "0x100002", f"{0x100003:016X}"), 0x200000: ("S1", "leaf switch 1", "0x200000")}.items():
            for name in names:
                out = subnet.ok(name, "ibstat", "-p")
                expect(out.strip() == f"0x{guid:016x}", f"{name}: {out}")
        for command in (("run", "--fabric", NAME, "--host", "spare node", "--", "true"),
                        ("devices", "--fabric", NAME, "--host", "spare node"),
                        ("fabric", "link", "--fabric", NAME, "down", "spare node", "1")):
            result = session.tool(*command)
            expect(result.status == 125 and "H2 (0x100002), H3 (0x100004)" in result.err, result.text())
        for name in ("nobody", "0x100009", "spare"):
            result = subnet.run(name, "true")
            expect(result.status == 125 and f"no host '{name}'" in result.err, result.text())


def cases():
    return [(f"names: {test.__name__.replace('_', ' ')}", test) for test in (
        everybody_sees, opensm_hears, hosts_by_any_name)]
