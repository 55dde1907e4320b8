/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program of the wqe target does beside posting: memory that changes, groups and rules. */
#pragma once

#include "fuzz_device.h"

union ib_gid life_group_gid(unsigned n);
void life_reregister(struct fuzz_device *d, struct input *in);
void life_group(struct fuzz_qp *q, struct input *in);
void life_flow(struct fuzz_device *d, struct fuzz_qp *q, struct input *in);
