/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC: domains, which contexts of the process share by opening the same inode, and the target QPs
 * of a domain, which they share by number.
 *
 * A domain and what hangs on it belong to the device, not to a file.  hca->xrc_lock guards them,
 * and is taken with a file's lock held.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <uthash.h>

#include "adapter/adapter.h"
#include "base/compiler.h"
#include "base/spin.h"
#include "driver/uverbs/objects/objects.h"

struct uxrcd {
	struct uobj uobj;
	struct xrc_domain *domain;
};

struct xrc_domain {
	uint32_t openers;
	uint32_t xrcdn;
	/* What other contexts find it by, unless it is private: device and number of an inode. */
	bool shared;
	unsigned __int128 inode;
	UT_hash_handle hh;
	void *pin; /* a mapping, so that the inode's number is not given to another file */
	struct xrc_target *targets; /* by number */
};

/* A target QP: one queue pair, and a handle in each file that created or opened it. */
struct xrc_target {
	UT_hash_handle hh;
	uint32_t qpn;
	struct xrc_domain *domain;
	struct qp *qp;
	struct spin lock; /* guards the list of handles, for upcalls */
	struct uqp *handles;
};

/* The device's number of the domain. */
uint32_t uxrcd_number(const struct uxrcd *xrcd);

/* Fills handle->qp and handle->target.  attr has all but the domain and the upcall. */
int xrc_target_create(struct uqp *handle, struct hca *hca, struct uxrcd *xrcd,
		      struct qp_create_attr *attr) must_check;
/* The same for a QP that exists in the domain; -EINVAL if there is none. */
int xrc_target_open(struct uqp *handle, struct hca *hca, struct uxrcd *xrcd,
		    uint32_t qpn) must_check;
/* Closes a handle; the last one destroys the QP. */
void xrc_target_close(struct uqp *handle, struct hca *hca);
