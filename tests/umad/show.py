# SPDX-License-Identifier: BSD-2-Clause
"""softhca fabric show: the same subnet in four forms."""
import json
import re
import xml.dom.minidom

from harness import expect
from subnet import NAME, Subnet

HOSTS = 40  # more than a switch has ports


def shown(session, *form):
    result = session.tool("fabric", "show", "--fabric", NAME, *form)
    expect(result.status == 0 and not result.err, f"{form}: {result.text()}")
    return result.out


def four_forms_agree(session):
    """Hosts, switches and links between them are the same as text, JSON, for graphviz and drawn; a link
    that is down is in none of them."""
    with Subnet(session, options=("--hosts", str(HOSTS))):
        for down in (0, 1):
            if down:
                session.tool("fabric", "port", "--fabric", NAME, "host2/mlx5_0", "down")
            found = json.loads(shown(session, "--json"))
            switches = sum(node["type"] == "switch" for node in found["nodes"])
            links = found["links"]
            expect(len(found["nodes"]) == HOSTS + switches and switches > 1, f"{switches} switches")
            ends = {(link[end]["node"], link[end]["port"]) for link in links for end in "ab"}
            expect(len(ends) == 2 * len(links), "a port has two links")
            at_hosts = [link for link in links if "host" in link["a"]["node"] + link["b"]["node"]]
            expect(len(at_hosts) == HOSTS - down, f"{len(at_hosts)} links of hosts")
            expect(all(link["state"] == "Active" for link in links), "states")
            text = shown(session)
            expect(f"{switches} switches, {HOSTS} other nodes, {len(links)} links" in text, text)
            expect(len(re.findall(r"^ +\d+  Active", text, re.M)) == 2 * len(links), "lines of ports")
            expect(shown(session, "dot").count(" -- ") == len(links), "edges")
            drawing = xml.dom.minidom.parseString(shown(session, "svg"))
            expect(len(drawing.getElementsByTagName("path")) == len(links), "lines")
            expect(len(drawing.getElementsByTagName("circle")) == HOSTS, "circles")
    result = session.tool("fabric", "show", "pdf")
    expect(result.status == 2 and "text, dot or svg" in result.err, result.text())


def cases():
    return [("show: four forms agree", four_forms_agree)]
