/* SPDX-License-Identifier: BSD-2-Clause */
/* RMPP's machines with packets and time, for the files of this folder. */
#pragma once

#include "fabric/daemon/mad/rmpp.h"
#include "fabric/daemon/mad/send.h"

#define RMPP_REPLY_RETRIES 3u /* for answers that we give ourselves */

/* ---- rmpp_transfer.c: a send of several packets ---- */

int rmpp_transfer_new(struct mad_send *send, const struct mad_send_attr *s) must_check;
void rmpp_transfer_free(struct rmpp_transfer *t);
void rmpp_transfer_begin(struct mad_send *send);
/* A packet of the send has left: time runs for its acknowledgement, or for the answer. */
void rmpp_transfer_left(struct mad_send *send);
/* Time is over: sends again, or returns false. */
bool rmpp_transfer_again(struct mad_send *send) must_check;
/* An ACK, STOP or ABORT, or a packet of no such type, has come for one of the agent's sends. */
void rmpp_transfer_control(struct mad_agent *a, const struct mad_packet *p);

/* Sends these bytes back to where a packet came from. */
void rmpp_reply(struct mad_fabric *f, const struct mad_packet *p, const uint8_t out[MAD_BYTES]);

/* ---- rmpp_receive.c ---- */

/* A packet of RMPP has come. */
void rmpp_receive(struct mad_agent *a, const struct mad_packet *p);
/* The agent ends. */
void rmpp_receives_end(struct mad_agent *a);
