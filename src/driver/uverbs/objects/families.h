/* SPDX-License-Identifier: BSD-2-Clause */
/* The families of objects.  The end of each file says which requests its family takes. */
#pragma once

#include "driver/uverbs/core/spec.h"

extern const struct uverbs_family uadvise_family;
extern const struct uverbs_family uah_family;
extern const struct uverbs_family ucounters_family;
extern const struct uverbs_family ucq_family;
extern const struct uverbs_family udm_family;
extern const struct uverbs_family uflow_family;
extern const struct uverbs_family uflow_action_family;
extern const struct uverbs_family umatcher_family;
extern const struct uverbs_family umcast_family;
extern const struct uverbs_family umr_family;
extern const struct uverbs_family umw_family;
extern const struct uverbs_family upd_family;
extern const struct uverbs_family uqp_family;
extern const struct uverbs_family uqp_object_family;
extern const struct uverbs_family uqp_attr_family;
extern const struct uverbs_family usrq_family;
extern const struct uverbs_family uuar_family;
extern const struct uverbs_family uwq_family;
extern const struct uverbs_family uxrcd_family;
