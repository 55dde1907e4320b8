/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an access to a key with signatures goes on. */
#pragma once

#include "adapter/memory/mkey_indirect.h"

/*
 * Where the latest access of one role of a queue pair left its key, so that the next packet, or an
 * access that follows on the last, goes on with the unit that was begun.  A packet that is sent
 * again, or any other access, begins anew.  All zero: nothing.  Its owner is under a lock.
 */
struct sig_resume {
	struct mkey_signed key;
	struct sig_stream stream;
	uint64_t next; /* offset in the wire's stream; 0: the stream is of no use */
};
