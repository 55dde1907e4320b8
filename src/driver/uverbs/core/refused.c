// SPDX-License-Identifier: BSD-2-Clause
#include "driver/uverbs/core/refused.h"

#include <stdint.h>
#include <string.h>

#include "base/explain.h"
#include "base/trace.h"

/* Libraries probe with operations that are refused, so this explains only refusals that somebody
 * gave a reason for. */
int uverbs_refused(const char *name, int err, const char *why)
{
	const char *reason;

	trace(uverbs, refused, name, trace_errno(err), why);
	if (!explaining())
		return err;
	reason = explain_reason(strcmp(why, "inherited-by-fork")
					? ""
					: "the device was opened before fork(2), and the child "
					  "cannot use it");
	if (*reason)
		explain_line((uintptr_t)name, "%s is refused (%s): %s", name, trace_errno(err),
			     reason);
	return err;
}
