/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channel that carries the answers of asynchronous DEVX queries: one message per answer, with
 * the work request's name and the output mailbox.  It is a socket of messages, because answers
 * differ in length and a read takes one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct devx_async;
struct ufile;

/* Returns the program's descriptor, or negative errno. */
int devx_async_create(struct ufile *f) must_check;
/* Finds the channel and takes a reference; -EBADF if fd is no such channel of this file. */
int devx_async_find(struct ufile *f, int64_t fd, struct devx_async **out) must_check;
void devx_async_put(struct devx_async *a);
/* -EAGAIN if the program has left too many unread. */
int devx_async_post(struct devx_async *a, uint64_t wr_id, const uint8_t *answer,
		    size_t len) must_check;
