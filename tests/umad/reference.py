# SPDX-License-Identifier: BSD-2-Clause
"""Discovery and OpenSM's work on three topologies, compared with what the same programs print on ibsim.

reference.tsv has the number of lines and the SHA-256 of each output; those of the smallest topology
are in reference/small in full.  What is taken out before: the date, and the identity of the vendor.
"""
import difflib
import hashlib
import pathlib
import re

import nets
from harness import expect
from subnet import Subnet

HERE = pathlib.Path(__file__).resolve().parent
LEFT_OUT = re.compile(r"^(# Topology file: generated.*|vendid=.*|devid=.*)\n", re.MULTILINE)
BEFORE = {"ibnetdiscover.before": ["ibnetdiscover"]}
AFTER = {
    "ibnetdiscover.after": ["ibnetdiscover"],
    "ibnetdiscover.ports": ["ibnetdiscover", "-p"],
    "iblinkinfo": ["iblinkinfo"],
    "ibhosts": ["ibhosts"],
    "ibswitches": ["ibswitches"],
    "ibrouters": ["ibrouters"],
    "dump_fts": ["dump_fts"],
    "ibroute.switch": ["ibroute", "-D", "0,1"],
}
# name: text of the topology, and the host whose OpenSM chose the LIDs
TOPOLOGIES = {
    "small": (nets.small, "H1"),
    "torus": (nets.torus, "N00_0"),
    "ft648": (nets.fat_tree, "H0_0"),
}


def compared_text(text):
    return LEFT_OUT.sub("", text)


def recorded():
    rows = (line.split("\t") for line in (HERE / "reference.tsv").read_text().splitlines()
            if not line.startswith("#"))
    return {(net, output): (int(lines), digest) for net, output, lines, digest in rows}


def compare(net, output, text):
    text = compared_text(text)
    lines, digest = recorded()[net, output]
    if hashlib.sha256(text.encode()).hexdigest() == digest:
        return
    whole = HERE / "reference" / net / output
    story = text[:3000]
    if whole.exists():
        story = "\n".join(difflib.unified_diff(whole.read_text().splitlines(), text.splitlines(),
                                               "reference", "here", lineterm=""))
    expect(False, f"{output} of {net} is another: {text.count(chr(10))} lines, {lines} expected\n"
           f"{story}")


def discovery(net):
    def test(session):
        topology, host = TOPOLOGIES[net]
        with Subnet(session, topology(), "external") as subnet:
            for output, command in BEFORE.items():
                compare(net, output, subnet.ok(host, *command))
    return test


def sweep(net):
    """OpenSM brings the subnet up, once and again; then everything is where it is on ibsim."""
    def test(session):
        topology, host = TOPOLOGIES[net]
        with Subnet(session, topology(), "external") as subnet:
            subnet.opensm_once(host, "-R", "minhop")
            subnet.opensm_once(host, "-R", "minhop", log="second.log")
            for output, command in AFTER.items():
                compare(net, output, subnet.ok(host, *command))
    return test


def cases():
    return ([(f"reference: {net}, discovery", discovery(net)) for net in TOPOLOGIES] +
            [(f"reference: {net}, after OpenSM", sweep(net)) for net in TOPOLOGIES])
