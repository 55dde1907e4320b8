/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of trace points, without #pragma once.  A file that includes it first defines
 *
 *   TRACE_POINT(group, name, text, (kind, argument), ...)
 *
 * The point's name is "group.name"; text says what happened, for SOFTHCA_TRACE=help.  The kind of
 * an argument is its type and how it is printed: HEX or NUM (a number), NAME (a string, of one word
 * where that is possible).  Values of an enumeration are passed by name, by a function that stands
 * beside the enumeration.  A point has one to eight arguments.
 */

/* Queue pairs and their requests. */
TRACE_POINT(qp, state, "a queue pair changes its state", (HEX, qpn), (NAME, from), (NAME, to),
	    (NAME, why))
TRACE_POINT(qp, event, "a queue pair raises an asynchronous event", (HEX, qpn), (NAME, event))
TRACE_POINT(path, state, "a queue pair changes its state of path migration", (HEX, qpn),
	    (NAME, from), (NAME, to), (NAME, why))
TRACE_POINT(sq, drain, "a send queue begins to drain", (HEX, qpn), (NAME, why))
TRACE_POINT(sq, drained, "a send queue has drained", (HEX, qpn))
TRACE_POINT(send, error, "a send request completes in error", (HEX, qpn), (HEX, peer), (NUM, wqe),
	    (NAME, opcode), (NAME, syndrome))
TRACE_POINT(send, flush, "a send request is flushed", (HEX, qpn), (NUM, wqe), (NAME, opcode))
TRACE_POINT(recv, error, "a receive completes in error", (HEX, qpn), (NUM, wqe), (NAME, syndrome))
TRACE_POINT(recv, flush, "a receive is flushed", (HEX, qpn), (NUM, wqe))
TRACE_POINT(post, send, "a program posts a send request", (HEX, qpn), (HEX, wr_id))
TRACE_POINT(post, built, "a program posts the requests that it has built (ibv_wr_complete)",
	    (HEX, qpn))
TRACE_POINT(post, refused, "the library does not post the last requests of a list", (HEX, qpn),
	    (NAME, queue), (NUM, requests))
TRACE_POINT(post, recv, "a program posts a receive to a queue pair", (HEX, qpn), (HEX, wr_id))
TRACE_POINT(srq, posted, "a program posts a receive to a shared receive queue", (HEX, srqn),
	    (NUM, count), (HEX, wr_id))
TRACE_POINT(srq, taken, "a queue pair takes a receive of a shared receive queue", (HEX, qpn),
	    (HEX, srqn), (NUM, count))
TRACE_POINT(wqe, taken, "the device takes a send request from the ring", (HEX, qpn), (NUM, wqe),
	    (NAME, opcode), (NUM, bytes))
TRACE_POINT(wqe, done, "a send request ends without a completion", (HEX, qpn), (NUM, wqe),
	    (NAME, status))
TRACE_POINT(cqe, written, "the device writes a completion", (HEX, cqn), (HEX, qpn), (NUM, wqe),
	    (NAME, queue), (NAME, opcode), (NAME, status))
TRACE_POINT(cq, polled, "a program polls a completion", (HEX, qpn), (HEX, wr_id), (NAME, queue),
	    (NUM, status))
TRACE_POINT(cq, compressed, "completions are written as one", (HEX, cqn), (NUM, completions))
TRACE_POINT(cq, overrun, "a completion queue is full", (HEX, cqn), (NUM, entries))
TRACE_POINT(eq, fired, "the vector of a program's event queue fires", (HEX, eqn), (NUM, produced))

/* Threads of the DPA. */
TRACE_POINT(dpa, enter, "a thread of the DPA begins to run device code", (NUM, thread),
	    (HEX, function))
TRACE_POINT(dpa, leave, "device code has ended", (NUM, thread), (NAME, outcome))

TRACE_POINT(emulation, rung, "a driver rings a doorbell of an emulated function", (NUM, function),
	    (NUM, queue), (HEX, value))
TRACE_POINT(emulation, interrupt, "an emulated function sends an interrupt", (NUM, function),
	    (NUM, count))

TRACE_POINT(flow, begin, "the congestion of a flow is controlled from now on", (HEX, qpn),
	    (HEX, peer))

/* The reliable transport. */
TRACE_POINT(retry, begin, "a requester sends again", (HEX, qpn), (HEX, peer), (NAME, why),
	    (HEX, psn), (NUM, left))
TRACE_POINT(retry, deferred, "a requester waits on", (HEX, qpn), (HEX, peer), (NAME, why))
TRACE_POINT(retry, exhausted, "a requester gives up", (HEX, qpn), (HEX, peer), (NAME, why))
TRACE_POINT(nak, sent, "a responder refuses a packet", (HEX, qpn), (HEX, peer), (NAME, syndrome),
	    (HEX, psn))
TRACE_POINT(nak, received, "a requester is told of a refusal", (HEX, qpn), (HEX, peer),
	    (NAME, syndrome), (HEX, psn))
TRACE_POINT(rnr, sent, "a responder has no receive", (HEX, qpn), (HEX, peer), (HEX, psn),
	    (NUM, delay_us))
TRACE_POINT(rnr, received, "a requester is told that there is no receive", (HEX, qpn), (HEX, peer),
	    (HEX, psn), (NUM, delay_us), (NUM, left))
TRACE_POINT(packet, duplicate, "a responder has seen the packet before", (HEX, qpn), (NAME, op),
	    (HEX, psn), (HEX, expected))
TRACE_POINT(packet, refused, "a responder does not execute a request", (HEX, qpn), (NAME, op),
	    (HEX, psn), (HEX, peer), (NAME, why))
TRACE_POINT(packet, dropped, "a queue pair drops a packet", (HEX, qpn), (NAME, op), (HEX, psn),
	    (HEX, peer), (NAME, why))
TRACE_POINT(packet, lost, "the wire does not carry a packet", (HEX, qpn), (HEX, peer), (NAME, op),
	    (HEX, psn), (NAME, why))
TRACE_POINT(send, injected, "a request fails on demand", (HEX, qpn), (HEX, peer), (NAME, opcode),
	    (NAME, syndrome))
TRACE_POINT(recv, injected, "a receive fails on demand", (HEX, qpn), (NUM, index), (NAME, syndrome))
TRACE_POINT(object, injected, "something happens to an object on demand", (NAME, object),
	    (HEX, number), (NAME, what))
TRACE_POINT(packet, fault, "a fault on demand takes a packet away", (HEX, qpn), (NAME, op),
	    (HEX, psn), (HEX, peer), (NAME, fault))

/* Access to memory. */
TRACE_POINT(access, remote, "a key refuses what a peer asks for", (HEX, qpn), (HEX, rkey),
	    (HEX, va), (NUM, bytes), (NAME, right), (NAME, verdict))
TRACE_POINT(access, local, "a key refuses what a work request asks for", (HEX, qpn), (NAME, what),
	    (NUM, wqe), (NUM, bytes), (NAME, verdict))
TRACE_POINT(access, key, "a key refuses a piece of what a work request lists", (HEX, lkey),
	    (HEX, va), (NUM, bytes), (NAME, right), (NAME, verdict))
TRACE_POINT(access, list, "a key in the list of an indirect key refuses", (HEX, key), (HEX, va),
	    (NUM, bytes), (NAME, verdict), (NUM, depth))

/* Ways to a peer. */
TRACE_POINT(bypass, taken, "requests are executed without packets", (HEX, qpn), (HEX, peer),
	    (NAME, opcode), (NUM, requests), (NUM, bytes), (NAME, way))
TRACE_POINT(bypass, left, "a request takes packets", (HEX, qpn), (HEX, peer), (NAME, opcode),
	    (NUM, bytes), (NAME, why))
TRACE_POINT(bypass, revoked, "peers must ask again before they reach into a queue pair", (HEX, qpn),
	    (HEX, peer), (NUM, epoch))
TRACE_POINT(peer, payload, "how large payloads travel", (NUM, slot), (NAME, direction), (NAME, way))
TRACE_POINT(peer, exposed, "whether a peer's exposed memory is used", (NUM, slot), (NAME, way))
TRACE_POINT(channel, open, "a channel to another process is open", (NUM, slot), (NUM, bytes))
TRACE_POINT(channel, refused, "no channel to another process", (NUM, slot), (NAME, error),
	    (NAME, why))
TRACE_POINT(channel, broken, "a channel is not used any more", (NUM, slot), (NAME, why))
TRACE_POINT(channel, gone, "the process at a channel's other end has gone", (NUM, slot))
TRACE_POINT(fabric, joined, "the daemon has given this process a slot", (NUM, slot), (NUM, ports))
TRACE_POINT(fabric, refused, "the daemon refuses a request", (NAME, request), (NAME, error))
TRACE_POINT(fabric, lost, "the connection to the daemon has ended", (NAME, error))
TRACE_POINT(port, event, "a port changes its state", (NUM, row), (NAME, event), (NAME, why))

/* The driver. */
TRACE_POINT(uverbs, refused, "a uverbs method or command is refused", (NAME, method), (NAME, error),
	    (NAME, why))
TRACE_POINT(uverbs, unknown, "there is no such uverbs method", (HEX, object), (HEX, method))
TRACE_POINT(devx, refused, "a DEVX method is refused", (NAME, command), (HEX, opcode),
	    (NAME, error), (NAME, why))
TRACE_POINT(prm, refused, "a command of the PRM ends with a status", (NAME, command),
	    (NAME, status), (NAME, error))
TRACE_POINT(doorbell, noticed, "a doorbell is noticed", (NAME, how), (NAME, queue), (HEX, number))
TRACE_POINT(engine, sleep, "the engine thread goes to sleep", (NAME, how), (NUM, timer_us))
TRACE_POINT(engine, wake, "the engine thread is awake", (NAME, from))
TRACE_POINT(engine, lingered, "a thread that has rung has waited for an answer", (NAME, how),
	    (NUM, rings_to_skip))
TRACE_POINT(share, refused, "peers reach registered memory by a slower way", (HEX, addr),
	    (NUM, bytes), (NAME, why))

#undef TRACE_POINT
