/* SPDX-License-Identifier: BSD-2-Clause */
/* What the file's port says of itself, for any request that asks. */
#pragma once

#include "driver/uverbs/core/file.h"

/*
 * Port 1, which speaks for all ports of a device in what they share: link layer, sizes of tables.
 */
const struct subnet_port *ufile_port(const struct ufile *f);
/* Tells whether the device has a port of that number; they count from 1. */
bool ufile_has_port(const struct ufile *f, uint64_t number) must_check;
/* Row of a port that the device has. */
uint32_t ufile_port_row(const struct ufile *f, uint32_t number);
uint32_t ufile_port_state(const struct ufile *f, uint32_t number); /* enum ib_port_state */
uint8_t ufile_phys_state(const struct ufile *f, uint32_t number);  /* enum smp_phys_state */
uint32_t uverbs_comp_vectors(void);
/* Checks that what mask chooses of attr is within the device's limits: 0 or -EINVAL. */
int ufile_check_qp_attr(const struct ufile *f, const struct qp_attr *attr,
			uint32_t mask) must_check;
