// SPDX-License-Identifier: BSD-2-Clause
/*
 * A frame that a queue sends meets the rules for sent frames, then those of the
 * switch.  Without rules it goes to the wire.  A frame that a rule of the switch gives to the
 * host's port arrives there as if it had come from elsewhere.
 */
#include "adapter/ethernet/egress.h"

#include "adapter/core/device.h"
#include "adapter/ethernet/ethernet.h"
#include "adapter/ethernet/route.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "wire/bth.h"

#include <string.h>

/* A frame in one piece as a packet of its port. */

struct frame_pkt {
	struct run run;
	struct path path;
	struct pkt pkt;
};

static inline void frame_pkt_make(struct frame_pkt *f, struct adapter *a, uint32_t sqpn,
				  const uint8_t *frame, uint32_t bytes)
{
	f->run = (struct run){(void *)(uintptr_t)frame, bytes};
	f->path = (struct path){
		.src_port = wire_port_row(a->wire),
		.dst_port = SUBNET_NONE,
	};
	f->pkt = (struct pkt){
		.opcode = BTH_RAW | BTH_SEND_ONLY,
		.sqpn = sqpn,
		.dqpn = IB_MULTICAST_QPN,
		.npkts = 1,
		.path = &f->path,
		.payload_len = bytes,
		.nruns = 1,
		.runs = &f->run,
	};
	memcpy(f->path.dgid.raw, frame, 6);
}

/* How often a switch may send what it receives back into a switch, in one process. */
#define XMIT_NESTED 4u

static _Thread_local unsigned xmit_nested;

enum raw_verdict frame_to_wire(struct adapter *a, uint32_t sqpn, const uint8_t *frame,
			       uint32_t bytes)
{
	struct frame_pkt f;
	enum wire_verdict v;

	if (xmit_nested == XMIT_NESTED)
		return RAW_SENT; /* it is lost, because it goes round in circles */
	frame_pkt_make(&f, a, sqpn, frame, bytes);
	xmit_nested++;
	v = wire_xmit(a->wire, &f.pkt);
	xmit_nested--;
	return v == WIRE_BUSY ? RAW_BUSY : RAW_SENT;
}

/* The device number of the function itself; 0 is that of the wire. */
#define OWN_GVMI 1u

struct departure {
	struct frame_route route;
	struct qp *qp;
	enum raw_verdict verdict;
	bool ruled; /* a rule of the present stage has taken it */
};

static struct departure *departure_of(struct frame_route *r)
{
	return container_of(r, struct departure, route);
}

static void departure_dropped(struct frame_route *r, const char *why)
{
	trace(packet, dropped, departure_of(r)->qp->qpn, "SEND_ONLY", 0, departure_of(r)->qp->qpn,
	      why);
}

static void departure_to_wire(struct departure *d)
{
	d->verdict = frame_to_wire(d->route.adapter, d->qp->qpn, d->route.frame.bytes,
				   d->route.frame.len);
}

/* ---- the switch ---- */

static void departure_switched(struct frame_route *r, const struct steer_target *to)
{
	struct frame_pkt f;

	if (to->kind == STEER_VPORT && to->number == STEER_UPLINK) {
		departure_to_wire(departure_of(r));
	} else if (to->kind == STEER_VPORT && !to->number) {
		frame_pkt_make(&f, r->adapter, departure_of(r)->qp->qpn, r->frame.bytes,
			       r->frame.len);
		raw_receive_from_switch(r->adapter, &f.pkt);
	} else {
		departure_dropped(r, "no-object");
	}
}

/* Does what a rule of either stage says.  on: where the frame goes if the rule does nothing. */
static void departure_ruled(struct departure *d, const struct flow_action *action,
			    void (*on)(struct departure *d))
{
	d->ruled = true;
	if (action->counter)
		flow_counter_add(action->counter, d->route.frame.len);
	if (action->modify && !route_modify(&d->route, action->modify))
		return;
	if (action->pass)
		on(d);
	else if (action->table)
		route_to_table(&d->route, action->table);
	else
		departure_dropped(&d->route, "by-rule");
}

/* Only the first rule counts, because a frame leaves once. */
static void switch_rule(void *user, const struct flow_action *action)
{
	struct departure *d = user;

	if (!d->ruled)
		departure_ruled(d, action, departure_to_wire);
}

static void departure_to_switch(struct departure *d)
{
	struct steering *rules = &d->route.adapter->ethernet->rules[FLOW_FDB];
	const struct flow_key key = d->route.frame.key; /* a table may change the frame */
	const struct steering_frame frame = {&key, d->route.frame.bytes, d->route.frame.len};

	d->ruled = false;
	d->route.arrive = departure_switched;
	if (steering_any(rules))
		steering_find(rules, &frame, switch_rule, d);
	if (!d->ruled)
		departure_to_wire(d);
}

/* ---- the rules for sent frames ---- */

static void departure_allowed(struct frame_route *r, const struct steer_target *to)
{
	if (to->kind == STEER_ALLOW)
		departure_to_switch(departure_of(r));
	else
		departure_dropped(r, "no-object");
}

static void send_rule(void *user, const struct flow_action *action)
{
	struct departure *d = user;

	/* A later rule for sent frames does not count, even when the frame is at the switch
	 * already. */
	if (!d->ruled && d->route.arrive == departure_allowed)
		departure_ruled(d, action, departure_to_switch);
}

enum raw_verdict egress_send(struct qp *qp, uint8_t *frame, uint32_t bytes)
{
	struct adapter *a = qp->adapter;
	struct departure d = {
		.route = {.adapter = a,
			  .sent = true,
			  .frame = {.bytes = frame,
				    .len = bytes,
				    .room = frame,
				    .room_bytes = FRAME_MAX,
				    .format = a->attr.steering_format,
				    .sqn = qp->qpn,
				    .gvmi = OWN_GVMI,
				    .local = true},
			  .arrive = departure_allowed,
			  .dropped = departure_dropped},
		.qp = qp,
		.verdict = RAW_SENT,
	};
	struct flow_key key;
	const struct steering_frame sent = {&key, frame, bytes};
	bool ruled;

	ste_frame_parse(&d.route.frame);
	key = d.route.frame.key;
	hazard_enter();
	steering_find(&a->ethernet->rules[FLOW_NIC_TX], &sent, send_rule, &d);
	ruled = d.ruled || d.route.arrive != departure_allowed;
	if (!ruled)
		departure_to_switch(&d);
	hazard_leave();
	return d.verdict;
}
