# SPDX-License-Identifier: BSD-2-Clause
"""Links that lose, double and delay MADs, as softhca fabric impair says."""
import os

import nets
from checklist import path_of
from diags import Discovered, expected_links
from harness import expect
from subnet import NAME, Subnet

MESSAGE = (8 if os.environ.get("UMAD_LONG") else 1) << 20


def impair(session, *words):
    result = session.tool("fabric", "impair", "--fabric", NAME, *words)
    expect(result.status == 0 and not result.text(), f"{words}: {result.text()}")


def one_link_loses_all(session):
    """What goes over it times out, in both directions; what does not arrives; and then it does again."""
    with Subnet(session, nets.small()) as subnet:
        def reaches(host, route):
            return subnet.run(host, "smpquery", "-t", "100", "-D", "nodeinfo", route).status == 0

        impair(session, "loss=100", "S1", "2")
        expect(reaches("H1", "0,1") and not reaches("H1", "0,1,2"), "from H1")
        expect(not reaches("H2", "0,1") and reaches("H2", "0"), "from H2")
        impair(session, "loss=0", "H2", "1")
        expect(reaches("H1", "0,1,2") and reaches("H2", "0,1"), "without the fault")


def discovery_bears_it(session):
    """Doubled and late answers change no link that ibnetdiscover tells of."""
    with Subnet(session, nets.torus(), "external") as subnet:
        for faults in (["duplicate=50", "seed=5"], ["delay=300"], ["duplicate=20", "delay=100"]):
            impair(session, *faults)
            found = Discovered(subnet.ok("N00_0", "ibnetdiscover"))
            expect(found.links == expected_links(nets.torus()), f"{faults}: {found.links}")


def opensm_bears_losses(session):
    """One MAD in twenty is lost on each of its links; OpenSM asks again."""
    with Subnet(session, nets.chain(3), "external") as subnet:
        conf = subnet.directory / "conf"
        conf.write_text("transaction_retries 10\n")
        impair(session, "loss=5", "seed=11")
        subnet.opensm_once("H1", "-F", str(conf))
        impair(session, "loss=0")
        text = subnet.ok("H1", "iblinkinfo")
        expect(text.count("Active/  LinkUp") == 8, text)


def opensm_bears_many_losses(session):
    """One in five; now and then all eleven tries are lost, and OpenSM sweeps again."""
    with Subnet(session, nets.chain(2), "external") as subnet:
        conf = subnet.directory / "conf"
        conf.write_text("transaction_retries 10\ntransaction_timeout 50\n")
        impair(session, "loss=20", "seed=12")
        process = subnet.opensm_resident("H1", "-F", str(conf))
        impair(session, "loss=0")
        text = subnet.ok("H1", "iblinkinfo")
        expect(text.count("Active/  LinkUp") == 6, text)
        subnet.end(process)


def long_messages_bear_losses(session):
    """Of messages of a MiB each packet and each acknowledgement is lost with one in ten."""
    with Subnet(session, nets.small()) as subnet:
        lid = subnet.ok("H2", "cat", "/sys/class/infiniband/mlx5_0/ports/1/lid").strip()
        server = subnet.begin("H2", path_of(session, "bulk_mads"), "serve")
        ask = [path_of(session, "bulk_mads"), "ask", str(int(lid, 0))]
        subnet.ok("H1", *ask, "1000", "1", "1000", "10")
        impair(session, "loss=5", "seed=13")
        subnet.ok("H1", *ask, str(MESSAGE), "2", "5", "100", limit=120)
        expect(server.poll() is None, "the server has ended")


def words_that_are_wrong(session):
    """Each is refused with words, and changes nothing."""
    with Subnet(session, nets.small()):
        for words, status in ((["loss=101"], 2), (["loss=x"], 2), (["los=1"], 2),
                              (["loss=1e9"], 2), (["loss=1", "S1"], 2), (["loss=1", "S1", "x"], 2),
                              (["delay=99999999"], 2), (["loss=1", "S9", "1"], 125),
                              (["loss=1", "S1", "5"], 125), (["loss=1", "S1", "77"], 125)):
            result = session.tool("fabric", "impair", "--fabric", NAME, *words)
            expect(result.status == status and result.err and not result.out,
                   f"{words}: status {result.status}\n{result.text()}")


def cases():
    return [(f"impair: {test.__name__.replace('_', ' ')}", test) for test in (
        one_link_loses_all, discovery_bears_it, opensm_bears_losses, opensm_bears_many_losses,
        long_messages_bear_losses, words_that_are_wrong)]
