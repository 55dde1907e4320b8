/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the next access to a signed key continues. */
#pragma once

#include "adapter/memory/mkey_indirect.h"

/*
 * Where the latest access by one role of a queue pair left its signed key.  The next packet, or an
 * access that follows on the last one, continues with the unit that was begun there.  A packet that
 * is sent again, and any other access, begins anew.  All zero: there is nothing to continue.  The
 * role's lock guards it.
 */
struct sig_resume {
	struct mkey_signed key;
	struct sig_stream stream;
	uint64_t next; /* offset in the wire's stream; 0: the stream is unusable */
};
