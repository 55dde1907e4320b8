/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads and outboxes of a DPA, which are general objects.  The layouts are ours, like those of
 * prm/cmd_dpa.h. */
#pragma once

#include "prm/cmd.h"

/* Execution units that threads may ask for by number. */
#define DPA_EUS 254u

/* ---- threads: event handlers ---- */

#define DPA_THREAD_PROCESS	 PRM_FIELD(0x80, 32) /* number of the object */
#define DPA_THREAD_CONTINUABLE	 PRM_FIELD(0xa0, 1)
#define DPA_THREAD_STRICT	 PRM_FIELD(0xa1, 1)   /* it runs on this one execution unit */
#define DPA_THREAD_GROUP	 PRM_FIELD(0xa2, 1)   /* it runs on one unit of this group */
#define DPA_THREAD_EU		 PRM_FIELD(0x140, 32) /* an execution unit, or a group */
#define DPA_THREAD_FUNCTION	 PRM_FIELD(0xc0, 64)  /* its address */
#define DPA_THREAD_LOCAL_STORAGE PRM_FIELD(0x100, 64)
#define DPA_THREAD_IN_BYTES	 0x30u

/* MODIFY_GENERAL_OBJECT makes events start the thread. */
#define DPA_THREAD_ARG	     PRM_FIELD(0x80, 64)
#define DPA_THREAD_RUN_BYTES 0x18u

/* ---- outboxes ---- */

#define DPA_OUTBOX_PROCESS  PRM_FIELD(0x80, 32) /* number of the object */
#define DPA_OUTBOX_UAR	    PRM_FIELD(0xa0, 32) /* number of a DUAR */
#define DPA_OUTBOX_INITIAL  PRM_FIELD(0xc0, 1)	/* threads begin with it */
#define DPA_OUTBOX_PCC	    PRM_FIELD(0xc1, 1)	/* congestion control rings through it */
#define DPA_OUTBOX_IN_BYTES 0x20u
