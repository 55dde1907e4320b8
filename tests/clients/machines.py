# SPDX-License-Identifier: BSD-2-Clause
"""Fabrics that are machines of their own, joined by RoCE v2 over UDP: `softhca fabric tie PORT udp`."""
import ties


def row(name, step):
    """Each step has a user and network namespace of its own, so nothing here needs root, or uses a port of this machine."""
    def test(session):
        ties.inside(session, "machines_inside.py", step)
    return f"machines: {name}", test


def cases():
    return [row("loopback addresses", "loopback"), row("namespaces", "namespaces"), row("connections", "connections"),
            row("the network changes", "network"), row("strangers", "strangers"), row("killed", "killed"),
            row("peers in status", "peers"), row("silence explained", "explained"), row("translated addresses", "translated"),
            row("congestion", "congestion"), row("up and tied at once", "listen"),
            row("groups", "groups"),
            row("lossy traffic", "traffic"), row("bad words", "bad_words")]
