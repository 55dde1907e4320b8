/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What pipelining costs when a block is bad, mlx5dv_qp_cancel_posted_send_wrs(3).  The adapter has
 * stopped the send queue behind the bad transfer, and in front of the good response that was posted
 * with it:
 *
 *	RTS  ...  [key][WRITE of bad data]  |  [good response, fenced]  [key][WRITE] ...
 *	                                    ^ SQD: nothing beyond here has run
 *
 * The good response becomes a NOP, the queue goes on, and a bad response is posted behind all.
 */
#include "session.h"

#include <string.h>

/* Finds the slots whose data are bad and takes back their responses. */
static void cancel_responses(struct session *s)
{
	for (uint32_t i = 0; i < s->wishes.depth && !s->over; i++) {
		struct slot *slot = &s->slots[i];
		struct dif_error error;
		int cancelled;

		if (slot->state != SLOT_SENDING)
			continue;
		if (!key_check(slot->key, &slot->use, &error)) {
			session_give_up(s, "a key could not be checked");
			return;
		}
		if (error.part == DIF_NO_ERROR)
			continue;
		cancelled = mlx5dv_qp_cancel_posted_send_wrs(s->e.dv, work_id(WORK_RESPONSE, i));
		if (cancelled != 1) {
			/* Sent already, against the fence: the client would take bad data for
			 * good. */
			session_give_up(s, "cannot take back a response: %s",
					cancelled < 0 ? strerror(-cancelled)
						      : "it is no longer in the queue");
			return;
		}
		slot_spoil(s, slot, &error);
		slot->state = SLOT_CANCELLED;
	}
}

static void resume(struct session *s)
{
	/* CUR_STATE: the library believes that the QP is in RTS, where the adapter has left it. */
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};
	int error = ibv_modify_qp(s->e.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE);

	if (error)
		session_give_up(s, "cannot start the queue pair again: %s", strerror(error));
}

static void send_bad_responses(struct session *s)
{
	for (uint32_t i = 0; i < s->wishes.depth && !s->over; i++)
		if (s->slots[i].state == SLOT_CANCELLED)
			slot_answer(s, &s->slots[i], WORK_BAD_RESPONSE);
}

void drain_handle(struct session *s)
{
	s->counts.drains++;
	/* Until none is left: only then has every key heard of its error. */
	session_poll(s);
	if (!s->over)
		cancel_responses(s);
	if (!s->over)
		resume(s);
	send_bad_responses(s);
}
