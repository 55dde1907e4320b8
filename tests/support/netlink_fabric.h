/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric for RDMA netlink, in memory: a host with an InfiniBand device of two ports and an Ethernet
 * device of one, and programs whose exposures the test writes.  The test links with --wrap for
 * fabric_view_open, fabric_view_close, fabric_port_counters, fabric_cm_ids, look_at and look_free.
 */
#pragma once

#include "driver/netlink/answers.h"
#include "driver/netlink/request.h"
#include "exposure/look.h"

#define NETLINK_PROGRAMS 2u
#define NETLINK_PORTS	 3u

/* Called for each look at a program (0 or 1), with memory that is zero, which it fills in by the
 * functions below. */
extern void (*netlink_look)(uint32_t program, struct look *l);

/* The first so many programs run. */
void netlink_programs(uint32_t n);
void netlink_fabric_open(void);
/* Writes an object into a row, with its number as its only figure. */
void netlink_object(struct look *l, uint32_t row, const struct object_about *about);
/* Writes a key into a row, as peers may use it or as a mere note. */
void netlink_key(struct look *l, uint32_t row, const struct key_block *key);
void netlink_key_note(struct look *l, uint32_t row, const struct expose_note *note);

/* Executes a datagram.  It lies at the end of its memory, where a sanitizer sees one byte too many. */
int netlink_try(struct answers *a, const void *datagram, size_t n, bool capped);
/* The same where there is memory. */
void netlink_execute(struct answers *a, const void *datagram, size_t n, bool capped);

/* The message at *at, checked with all of its attributes; NULL: it is the end.  Moves on. */
const struct nlmsghdr *netlink_next(const struct answers *a, size_t *at);
/* The number of attributes of that type in the message, nested ones too. */
unsigned netlink_attrs(const struct nlmsghdr *head, uint16_t type);
/* Checks how the answers are cut into datagrams. */
void netlink_check_datagrams(const struct answers *a);
