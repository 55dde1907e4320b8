# SPDX-License-Identifier: BSD-2-Clause
"""What ports count of frames of device code: of the one that sends them, and of another host's that takes them."""
from harness import expect
from switch import ended, fabric, program

# As host_counters.c has them: how many frames of how many bytes go to one station, and to a group.
ONE, GROUP = (19, 996), (8, 60)
CHECK_SEQUENCE = 4  # bytes behind each frame
COUNTERS = ("data", "packets")
KINDS = ("port", "unicast", "multicast")


def counters(session, host):
    """Names and values of the files of the host's Ethernet port."""
    names = [f"{kind}_{way}_{what}" for way in ("xmit", "rcv") for kind in KINDS for what in COUNTERS
             if kind == "port" or what == "packets"]
    files = [f"/sys/class/infiniband/mlx5_1/ports/1/counters/{name}" for name in names]
    result = session.tool("run", "--host", host, "--", "cat", *files)
    expect(result.status == 0, f"the counters of {host}\n{result.text()}")
    return dict(zip(names, map(int, result.out.split())))


def moved(way):
    """By how much they move if all frames go this way."""
    packets = ONE[0] + GROUP[0]
    octets = sum(count * (size + CHECK_SEQUENCE) for count, size in (ONE, GROUP))
    return octets, {f"port_{way}_data": octets // 4, f"port_{way}_packets": packets,
                    f"unicast_{way}_packets": ONE[0], f"multicast_{way}_packets": GROUP[0]}


def counted(session):
    with fabric(session):
        before = {host: counters(session, host) for host in ("host1", "host2")}
        with program(session, "counted_takes", "host2") as taker:
            with program(session, "counted_sends", ready=False) as sender:
                sent = ended(session, sender)
            taken = ended(session, taker)
        octets, by_sender = moved("xmit")
        wanted = {"host1": by_sender, "host2": moved("rcv")[1]}
        for host, old in before.items():
            new = {name: value - old[name] for name, value in counters(session, host).items()}
            # A port counts nothing that went the other way.
            want = {name: wanted[host].get(name, 0) for name in new}
            expect(new == want, f"{host} counts {new}\nand not {want}")
        expect(sent == f"0 {octets}\n", f"device code that sends reads {sent}, not {octets}")
        expect(taken == f"{octets} 0\n", f"device code that takes reads {taken}, not {octets}")


def cases():
    return [("network: ports count the frames that device code sends and takes P288", counted)]
