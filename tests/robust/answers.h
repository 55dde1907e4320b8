/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that answers each message, told of it by a completion channel, and one that sends them in rows. */
#pragma once

#include "pair.h"

#define ANSWERS_ROUNDS	 40u
#define ANSWERS_BURST	 16u /* the longest row of messages */
#define ANSWERS_RECEIVES 8u
#define ANSWERS_BYTES	 4096u

/* The queue pair again, with a queue that has a channel. */
void answers_use_channel(struct pair *p, struct ibv_comp_channel *channel);
void answers_post_receive(struct pair *p);
void answers_post_send(struct pair *p);
/* Polls for all that is there: messages, which it answers, and ends of answers. */
void answers_give(struct pair *p, unsigned *messages, unsigned *answered);
/* The other: asks for a row of messages; sends as it is asked. */
void answers_ask(struct pair *p, unsigned burst);
int answers_send_all(struct pair *p);
/* DEVICE listen|connect TCP-PORT: connects both, and is the one or the other to its end.  listen is called with the
 * channel; threads of it may still wait there when it returns, so the process ends then. */
int answers_main(struct pair *p, char **argv,
		 int (*listen)(void *user, struct ibv_comp_channel *channel), void *user);
