/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why the device refuses a command: which field it is, its value and what would do.  The line about
 * the refusal (base/explain.h) says so.  Fields have the names that the kernel gives them.
 */
#pragma once

#include "base/explain.h"
#include "driver/devx/devx.h"

/* Evaluates to err. */
#define devx_refuse(err, field, value, wanted) \
	explained(err, "%s is 0x%llx: %s", (field), (unsigned long long)(value), (wanted))

/* A field whose feature the device does not have. */
struct devx_lack {
	struct prm_field field;
	const char *name;
};

/* -EOPNOTSUPP if one of these fields of the context is not 0. */
int devx_check_lacks(const uint8_t *context, const struct devx_lack *lacks, size_t n) must_check;
#define devx_lacks(context, lacks) devx_check_lacks(context, lacks, array_size(lacks))

/* The ring and the doorbell record that a work queue context (WQ_...) names. */
struct devx_part devx_wq_ring(const uint8_t *wq);
struct devx_part devx_wq_record(const uint8_t *wq, uint64_t bytes);
/* -EOPNOTSUPP if the context wants what no ring here has. */
int devx_wq_check_lacks(const uint8_t *wq) must_check;
/* -EOPNOTSUPP unless the context is that of a plain cyclic ring. */
int devx_raw_check_ring(const uint8_t *wq) must_check;
/* -EOPNOTSUPP unless frames go through the file's port. */
int devx_raw_check_port(const struct ufile *f) must_check;

/* -EINVAL if the value is above max. */
int devx_at_most(const char *field, uint64_t value, uint64_t max) must_check;

/* Finds the object that a field names (devx_find), or refuses the command with -EINVAL. */
int devx_named(struct ufile *f, const struct devx_class *class, uint32_t number, const char *field,
	       struct uobj **obj) must_check;
