/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of RDMA netlink (rdma/rdma_netlink.h).  What the program gets is a datagram socket that is
 * connected to itself: a request is answered in the call that sends it, and the answers wait in the
 * socket's own queue.  So poll, non-blocking reads, MSG_PEEK, fork and a full buffer are the kernel's
 * affair, and no thread or daemon has a part in it.
 *
 * The preload library turns calls on such a socket into these.  Each returns 0 or a size, or a
 * negative errno, and may be called by several threads.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"

/* Makes a socket; type is that of socket(2), with its flags.  Returns its descriptor. */
int netlink_open(int type) must_check;
/* Is fd such a socket?  Safe for any int. */
bool netlink_is(int fd) must_check;
/* As bind(2), once the address has been read. */
int netlink_bind(int fd, const struct sockaddr_nl *address) must_check;
/* The address that answers come to. */
int netlink_address(int fd, struct sockaddr_nl *out) must_check;
/* As setsockopt(2) and getsockopt(2) at the level SOL_NETLINK. */
int netlink_set_option(int fd, int option, int value) must_check;
int netlink_get_option(int fd, int option, int *value) must_check;
/* The type that the socket was opened with: SOCK_RAW or SOCK_DGRAM. */
int netlink_type(int fd) must_check;
/* Executes the requests in a datagram of n bytes.  Returns n: what is wrong with a request, its
 * answer says.  Or a negative errno: there was no memory or no room for an answer, which is lost. */
ssize_t netlink_send(int fd, const void *datagram, size_t n) must_check;
/* Called before a read: puts answers that wait into the socket's queue, if it has room.  Returns 0, or a
 * negative errno with which the read fails, because answers have been lost. */
int netlink_read_begin(int fd) must_check;
/* Called after a read, which has made room for others who wait. */
void netlink_read_end(int fd);
