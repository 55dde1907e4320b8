# SPDX-License-Identifier: BSD-2-Clause
"""Topologies in ibsim's file format: two hosts and a switch, a torus, a fat tree of 648 hosts, and one
with a host of two ports and a router.  Text in, text out; the order of nodes decides their GUIDs."""


def text(lines):
    return "\n".join(lines) + "\n"


def small():
    return text(['Switch 8 "S1"', '[1] "H1"[1]', '[2] "H2"[1]', "",
                 'Hca 1 "H1"', '[1] "S1"[1]', "",
                 'Hca 1 "H2"', '[1] "S1"[2]', ""])


def chain(switches):
    """Two hosts at the ends of a chain of switches."""
    lines = ['Hca 1 "H1"', '[1] "S1"[1]', "", 'Hca 1 "H2"', f'[1] "S{switches}"[1]', ""]
    for n in range(1, switches + 1):
        lines.append(f'Switch 8 "S{n}"')
        if n == 1:
            lines.append('[1] "H1"[1]')
        if n == switches:
            lines.append(f'[{1 if n > 1 else 2}] "H2"[1]')
        if n > 1:
            lines.append(f'[7] "S{n - 1}"[8]')
        if n < switches:
            lines.append(f'[8] "S{n + 1}"[7]')
        lines.append("")
    return text(lines)


def fat_tree(leaves=36, spines=18, hosts=18, ports=36):
    """Two levels: each leaf has a cable to each spine, and so many hosts."""
    lines = []
    for leaf in range(leaves):
        for host in range(hosts):
            lines += [f'Hca 1 "H{leaf}_{host}"', f'[1] "LF{leaf}"[{host + 1}]', ""]
    for spine in range(spines):
        lines.append(f'Switch {ports} "SP{spine}"')
        lines += [f'[{leaf + 1}] "LF{leaf}"[{hosts + 1 + spine}]' for leaf in range(leaves)]
        lines.append("")
    for leaf in range(leaves):
        lines.append(f'Switch {ports} "LF{leaf}"')
        lines += [f'[{host + 1}] "H{leaf}_{host}"[1]' for host in range(hosts)]
        lines += [f'[{hosts + 1 + spine}] "SP{spine}"[{leaf + 1}]' for spine in range(spines)]
        lines.append("")
    return text(lines)


def torus(columns=4, rows=4, hosts=2):
    """Ports 1 and 2 of a switch lead to the next and the last column, 3 and 4 to rows, then hosts."""
    def switch(x, y):
        return f"T{x % columns}{y % rows}"

    places = [(x, y) for x in range(columns) for y in range(rows)]
    lines = []
    for x, y in places:
        for host in range(hosts):
            lines += [f'Hca 1 "N{x}{y}_{host}"', f'[1] "{switch(x, y)}"[{5 + host}]', ""]
    for x, y in places:
        lines += [f'Switch 12 "{switch(x, y)}"',
                  f'[1] "{switch(x + 1, y)}"[2]', f'[2] "{switch(x - 1, y)}"[1]',
                  f'[3] "{switch(x, y + 1)}"[4]', f'[4] "{switch(x, y - 1)}"[3]']
        lines += [f'[{5 + host}] "N{x}{y}_{host}"[1]' for host in range(hosts)] + [""]
    return text(lines)


def router():
    """Two switches with two cables between them, a host with a port at each, and a router."""
    return text(['Hca 1 "A"', '[1] "S1"[1]', "",
                 'Hca 2 "B"', '[1] "S1"[2]', '[2] "S2"[2]', "",
                 'Hca 1 "C"', '[1] "S2"[1]', "",
                 "rtguid=0x300000", 'Rt 2 "R1"', '[1] "S1"[8]', '[2] "S2"[8]', "",
                 'Switch 8 "S1"', '[1] "A"[1]', '[2] "B"[1]', '[3] "S2"[3]', '[4] "S2"[4] w=1',
                 '[8] "R1"[1]', "",
                 'Switch 8 "S2"', '[1] "C"[1]', '[2] "B"[2]', '[3] "S1"[3]', '[4] "S1"[4] w=1',
                 '[8] "R1"[2]', ""])


class Node:
    def __init__(self, kind, ports, name):
        self.kind, self.ports, self.name = kind, ports, name
        self.links = {}  # port: (name, port) of the other end
        self.guid = 0

    def port_guid(self, port):
        return self.guid if self.kind == "Switch" else self.guid + port


def nodes(topology):
    """Nodes of a topology by name, with GUIDs as ibsim gives them out."""
    found, node = {}, None
    next_guid = {"Switch": 0x200000, "Hca": 0x100000}
    for line in topology.splitlines():
        words = line.replace("[", " ").replace("]", " ").replace('"', " ").split()
        if line.startswith("rtguid="):
            next_guid["Rt"] = int(line.split("=")[1], 0)
        elif "=" in line and not line.startswith("["):
            continue  # the vendor's numbers
        elif line.startswith("["):
            node.links[int(words[0])] = (words[1], int(words[2]))
        elif words:
            node = Node(words[0], int(words[1]), words[2])
            node.guid = next_guid[node.kind]
            next_guid[node.kind] += 1 if node.kind == "Switch" else node.ports + 1
            found[node.name] = node
    return found
