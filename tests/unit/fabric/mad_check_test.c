/* SPDX-License-Identifier: BSD-2-Clause */
/* What an agent may not send, by its registration: the program hears of it, and the daemon drops it. */
#include "fabric/umad.h"

#include <errno.h>

#include "check.h"
#include "prm/mad.h"

#define GIDS   8u
#define VENDOR 0x32

static const struct row {
	bool rmpp, user_rmpp; /* of the agent */
	bool active;	      /* of the MAD */
	uint8_t class, sl;
	int gid_index;
	size_t length;
	int ret;
	bool packets; /* the message is made into packets */
} rows[] = {
	{false, false, false, MAD_CLASS_PERF, 0, -1, MAD_BYTES, 0, false},
	{false, false, false, MAD_CLASS_PERF, 15, 7, MAD_RMPP_BYTES, 0, false},
	{false, false, false, MAD_CLASS_PERF, 16, -1, MAD_BYTES, -EINVAL, false},
	{false, false, false, MAD_CLASS_PERF, 0, 8, MAD_BYTES, -EINVAL, false},
	{false, false, false, MAD_CLASS_PERF, 0, 255, MAD_BYTES, -EINVAL, false},
	/* at least the headers of the class */
	{false, false, false, MAD_CLASS_SA, 0, -1, 56, 0, false},
	{false, false, false, MAD_CLASS_SA, 0, -1, 55, -EINVAL, false},
	{false, false, false, MAD_CLASS_DEV_MGMT, 0, -1, 64, 0, false},
	{false, false, false, MAD_CLASS_DEV_MGMT, 0, -1, 63, -EINVAL, false},
	{false, false, false, VENDOR, 0, -1, 40, 0, false},
	{false, false, false, VENDOR, 0, -1, 39, -EINVAL, false},
	/* several packets only of an agent that has asked for them, by a MAD that says so */
	{true, false, true, MAD_CLASS_SA, 0, -1, 56, 0, true},
	{true, false, true, MAD_CLASS_SA, 0, -1, 100000, 0, true},
	{true, false, true, MAD_CLASS_SA, 0, -1, 55, -EINVAL, true},
	{true, false, true, VENDOR, 0, -1, MAD_BYTES + 1, 0, true},
	{true, false, false, MAD_CLASS_SA, 0, -1, MAD_BYTES + 1, -EINVAL, false},
	{false, false, true, MAD_CLASS_SA, 0, -1, MAD_BYTES + 1, -EINVAL, false},
	{true, true, true, MAD_CLASS_SA, 0, -1, MAD_BYTES, 0, false},
	{true, true, true, MAD_CLASS_SA, 0, -1, MAD_BYTES + 1, -EINVAL, false},
	/* such an agent sends classes with RMPP only */
	{true, false, false, MAD_CLASS_SA, 0, -1, MAD_BYTES, 0, false},
	{true, false, false, MAD_CLASS_PERF, 0, -1, MAD_BYTES, -EINVAL, false},
	{true, true, false, MAD_CLASS_PERF, 0, -1, MAD_BYTES, -EINVAL, false},
	{true, false, true, MAD_CLASS_PERF, 0, -1, MAD_BYTES, -EINVAL, false},
};

int main(void)
{
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *r = &rows[i];
		const struct mad_sender sender = {GIDS, r->rmpp, r->user_rmpp};
		uint8_t mad[MAD_RMPP_BYTES] = {0};

		mad[MAD_AT_CLASS] = r->class;
		mad[MAD_AT_RMPP_FLAGS] = r->active ? MAD_RMPP_ACTIVE : 0;
		CHECK_SAY(mad_send_check(&sender, r->sl, r->gid_index, mad, r->length) == r->ret,
			  "row %zu", i);
		CHECK_SAY(mad_sends_rmpp(&sender, mad) == r->packets, "row %zu", i);
	}
	return 0;
}
