// SPDX-License-Identifier: BSD-2-Clause
/* Sends of several packets: the sending machine, with packets and timers; see rmpp_glue.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/rmpp_glue.h"
#include "fabric/daemon/mad/rmpp_recv.h"

#define BURST 256u /* packets */

struct rmpp_transfer {
	struct rmpp_send machine;
	uint32_t retries;  /* left, since the last acknowledgement */
	uint8_t message[]; /* the one that it sends */
};

int rmpp_transfer_new(struct mad_send *send, const struct mad_send_attr *s)
{
	struct rmpp_transfer *t = malloc(sizeof(*t) + s->length);

	if (!t)
		return -ENOMEM;
	memcpy(t->message, s->mad, s->length);
	/* The headers as they travel: a request's TID differs. */
	memcpy(t->message, send->mad, MAD_HEADER_BYTES);
	if (!rmpp_send_init(&t->machine, t->message, s->length)) {
		free(t);
		return -EINVAL;
	}
	t->machine.window = rmpp_recv_window(send);
	t->machine.response_due = s->timeout_ms != 0;
	t->retries = s->retries;
	send->rmpp = t;
	return 0;
}

void rmpp_transfer_free(struct rmpp_transfer *t)
{
	free(t);
}

static bool transfer_acked(const struct rmpp_transfer *t)
{
	return t->machine.acked == t->machine.message.segments;
}

static void transfer_timer_arm(struct mad_send *send)
{
	struct loop *l = send->agent->fabric->loop;
	uint32_t ms = send->timeout_ms;

	if (!transfer_acked(send->rmpp) && (!ms || ms > RMPP_ACK_MS))
		ms = RMPP_ACK_MS;
	loop_timer_arm(l, &send->timer, loop_now(l) + ms * 1000000ull);
}

/*
 * Emits a burst of what the window allows; the next follows when the last packet of this has left.
 */
static void transfer_emit(struct mad_send *send)
{
	struct mad_fabric *f = send->agent->fabric;
	struct rmpp_send *s = &send->rmpp->machine;

	if (send->packet)
		return;
	for (uint32_t n = 1; n <= BURST; n++) {
		struct mad_packet *p = send_packet(send);

		if (p && rmpp_send_next(s, p->mad)) {
			if (n == BURST || !rmpp_send_allowed(s)) {
				send_emit(send, p);
				return;
			}
			mad_emit(f, p);
			continue;
		}
		if (p)
			mad_packet_put(f, p);
		break;
	}
	transfer_timer_arm(send);
}

void rmpp_transfer_begin(struct mad_send *send)
{
	send->waiting = send->timeout_ms != 0;
	transfer_emit(send);
}

void rmpp_transfer_left(struct mad_send *send)
{
	if (rmpp_send_allowed(&send->rmpp->machine))
		transfer_emit(send);
	transfer_timer_arm(send);
}

bool rmpp_transfer_again(struct mad_send *send)
{
	struct rmpp_transfer *t = send->rmpp;

	if (!t->retries || transfer_acked(t))
		return false;
	t->retries--;
	rmpp_send_rewind(&t->machine);
	transfer_emit(send);
	return true;
}

void rmpp_reply(struct mad_fabric *f, const struct mad_packet *p, const uint8_t out[MAD_BYTES])
{
	struct mad_packet *reply = mad_packet_get(f);

	if (!reply) {
		f->dropped++;
		return;
	}
	*reply = *p;
	reply->send = NULL;
	memcpy(reply->mad, out, MAD_BYTES);
	mad_turn(f, reply);
	mad_emit(f, reply);
}

/* Tells whether a control packet is for the send: it goes against the direction of the data. */
static bool control_is_to(const struct mad_send *send, const struct mad_packet *p)
{
	if (!send->rmpp || send->mad[MAD_AT_CLASS] != p->mad[MAD_AT_CLASS] ||
	    send->mad[MAD_AT_CLASS_VERSION] != p->mad[MAD_AT_CLASS_VERSION] ||
	    (send->mad[MAD_AT_METHOD] ^ p->mad[MAD_AT_METHOD]) != MAD_RESPONSE ||
	    send->to.grh != p->grh)
		return false;
	return p->grh ? !memcmp(&send->to.gid, &p->sgid, sizeof(p->sgid)) : send->to.lid == p->slid;
}

static void transfer_control(struct mad_send *send, const struct mad_packet *p)
{
	struct rmpp_transfer *t = send->rmpp;
	uint32_t acked = t->machine.acked;
	bool reply;
	uint8_t out[MAD_BYTES], status = 0;
	enum rmpp_outcome outcome = rmpp_send_control(&t->machine, p->mad, out, &reply, &status);

	if (reply)
		rmpp_reply(send->agent->fabric, p, out);
	if (outcome != RMPP_GO_ON) {
		send_detach(send);
		send_report(send, outcome == RMPP_DONE ? 0 : -EPROTO);
		return;
	}
	if (t->machine.acked == acked)
		return;
	t->retries = send->retries;
	if (!transfer_acked(t))
		transfer_emit(send);
	else
		transfer_timer_arm(send); /* from now on for the answer */
}

void rmpp_transfer_control(struct mad_agent *a, const struct mad_packet *p)
{
	struct mad_send *send = send_first(a->fabric, mad_get64(p->mad, MAD_AT_TID));
	uint8_t out[MAD_BYTES], why;

	while (send && (send->agent != a || !control_is_to(send, p)))
		send = send_next(send);
	if (send) {
		transfer_control(send, p);
		return;
	}
	/* A packet that no receiver would send is refused, whatever send it is for. */
	why = rmpp_control_check(p->mad);
	if (why) {
		rmpp_abort(p->mad, why, out);
		rmpp_reply(a->fabric, p, out);
	} else if (p->mad[MAD_AT_RMPP_TYPE] == MAD_RMPP_ACK &&
		   !mad_get32(p->mad, MAD_AT_RMPP_SEGMENT)) {
		rmpp_recv_turned(a, p);
	}
}
