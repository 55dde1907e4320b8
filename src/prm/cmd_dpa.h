/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DPA: its capability page, its general objects, and one general command for everything else.
 * The types of objects are those of the public headers, where these have them.  The layouts are
 * ours, and only libflexio sends them.
 *
 * Addresses "of the program" are virtual addresses of the process that sends the command.
 */
#pragma once

#include "prm/cmd.h"

/* This opcode is in the range that the kernel's driver lets pass as general commands. */
#define PRM_OP_DPA 0xbda

/* ---- the page of capabilities ---- */

#define DPA_CAP_VERSION	   PRM_FIELD(0x00, 16) /* version of these layouts */
#define DPA_CAP_EUS	   PRM_FIELD(0x10, 16) /* execution units that threads may ask for */
#define DPA_CAP_HEAP_BYTES PRM_FIELD(0x40, 64)
#define DPA_CAP_CALL_BYTES PRM_FIELD(0x80, 32) /* most bytes of a call's arguments */

#define DPA_LAYOUT_VERSION 2u

/* How many threads a process can have: event handlers, workers of command queues, and those that
 * answer calls. */
#define DPA_THREADS 1024u

/* Where a command names an umem, this plus the number of a DPA process names that process's
 * memory. */
#define DPA_UMEM 0x800000u

/* ---- processes: a general object ---- */

#define DPA_PROCESS_ELF	      PRM_FIELD(0x80, 64) /* address in the program */
#define DPA_PROCESS_ELF_BYTES PRM_FIELD(0xc0, 64)
#define DPA_PROCESS_PCC	      PRM_FIELD(0x100, 1) /* it controls congestion for the port's flows */
#define DPA_PROCESS_IN_BYTES  0x28u

/*
 * ---- streams: a general object of this device only ----
 *
 * The lowest 8 bits of its number are the number by which device code knows it.
 */

#define DPA_STREAM_PROCESS	PRM_FIELD(0x80, 32)
#define DPA_STREAM_MODE		PRM_FIELD(0xa0, 8)  /* enum flexio_log_dev_sync_mode */
#define DPA_STREAM_LEVEL	PRM_FIELD(0xa8, 8)  /* flexio_msg_dev_level */
#define DPA_STREAM_ONLY_DEFAULT PRM_FIELD(0xb0, 1)  /* it must become the default stream */
#define DPA_STREAM_BUFFER	PRM_FIELD(0xc0, 64) /* bytes */
#define DPA_STREAM_IN_BYTES	0x20u
/* A read must have room for at least this many bytes. */
#define DPA_STREAM_READ_BYTES 2048u

/* ---- aliases: a general object of this device only ---- */

#define DPA_ALIAS_NUMBER   PRM_FIELD(0x80, 32)
#define DPA_ALIAS_THREAD   PRM_FIELD(0xa0, 1) /* the number is a thread's, not a process's */
#define DPA_ALIAS_IN_BYTES 0x20u

/* ---- windows: a general object ---- */

#define DPA_WINDOW_PROCESS  PRM_FIELD(0x88, 24)
#define DPA_WINDOW_PD	    PRM_FIELD(0xa8, 24)
#define DPA_WINDOW_IN_BYTES 0x20u

/* ---- command queues: a general object ---- */

#define DPA_CMDQ_PROCESS    PRM_FIELD(0x88, 24)
#define DPA_CMDQ_WORKERS_NR PRM_FIELD(0xa0, 32)
#define DPA_CMDQ_BATCH	    PRM_FIELD(0xc0, 32)
#define DPA_CMDQ_RUNNING    PRM_FIELD(0xe0, 1)
#define DPA_CMDQ_IN_BYTES   0x20u

/* ---- the general command: the operation is its op_mod ---- */

enum dpa_op {
	DPA_OP_STATE,	 /* the state of the process */
	DPA_OP_SYMBOL,	 /* the address of a function */
	DPA_OP_ON_ERROR, /* sets the function that runs after an error */
	DPA_OP_CALL,	 /* runs a function and waits for it */
	DPA_OP_HEAP,	 /* how much of the heap is used */
	DPA_OP_ALLOC,
	DPA_OP_FREE,
	DPA_OP_COPY, /* from the program to the heap */
	DPA_OP_FILL,
	DPA_OP_HAS,   /* whether a range lies in one block */
	DPA_OP_CRASH, /* where the threads of a failed process and calls that were stopped were */
	DPA_OP_CORE,  /* writes a core file */
	DPA_OP_STREAM_READ,  /* what a stream holds; may wait until it holds something */
	DPA_OP_STREAM_LEVEL, /* sets the level of a stream */
	DPA_OP_STREAM_CLOSE, /* the stream takes nothing more, but readers get what it holds */
	DPA_OP_FINISH,	     /* none of the process's code runs any more */

	/* For a command queue, whose number stands where other operations have the process's. */
	DPA_OP_CMDQ_ADD = 0x40,
	DPA_OP_CMDQ_START,
	DPA_OP_CMDQ_IS_EMPTY,
};

/* State of a process. */
enum dpa_state {
	DPA_RUNNING,
	DPA_FINISHED, /* it ended by itself, status 0x40 */
	DPA_FATAL,    /* after a fault, or an error that it reported */
	DPA_ENDED,    /* somebody has destroyed it */
};

/* How a call ended. */
enum dpa_call_end {
	DPA_CALL_DONE,
	DPA_CALL_DEAD,	  /* the process had ended before, or ended meanwhile */
	DPA_CALL_TIMEOUT, /* we stopped it, because it took longer than calls may */
	DPA_CALL_NO_ROOM, /* there are no more threads */
	DPA_CALL_LEFT,	  /* the function ended its activation, as an event handler does */
};

/* The longest packed list of arguments. */
#define DPA_CALL_BYTES 2048u

#define DPA_IN_PROCESS PRM_FIELD(0x48, 24)  /* CMD_IN_NUMBER */
#define DPA_IN_ADDR    PRM_FIELD(0x80, 64)  /* in the DPA: of a block, a function */
#define DPA_IN_BYTES   PRM_FIELD(0xc0, 64)  /* of a block, a copy, a name, arguments */
#define DPA_IN_SOURCE  PRM_FIELD(0x100, 64) /* of the program: what is copied */
#define DPA_IN_BY      PRM_FIELD(0x100, 64) /* of the program: who allocates or frees */
#define DPA_IN_VALUE   PRM_FIELD(0x100, 8)  /* the byte that fills */
#define DPA_IN_FILE    PRM_FIELD(0x100, 32) /* a descriptor of the program */
#define DPA_IN_UNPACK  PRM_FIELD(0x100, 64) /* of a call; 0: passes the argument as it is */
#define DPA_IN_STREAM  PRM_FIELD(0x80, 32)  /* number of the stream's object */
#define DPA_IN_LEVEL   PRM_FIELD(0xa0, 8)   /* of a stream */
#define DPA_IN_WAIT    PRM_FIELD(0xa8, 1)   /* a read waits for messages */
#define DPA_IN_FIXED   0x28u
#define DPA_IN_TAIL    DPA_IN_FIXED /* where arguments and names begin */

#define DPA_OUT_ADDR	  PRM_FIELD(0x40, 64)  /* of a block, a function; the result of a call */
#define DPA_OUT_LATE	  PRM_FIELD(0x40, 64)  /* of a call that was stopped: DPA_FRAME_THREAD */
#define DPA_OUT_STATE	  PRM_FIELD(0x80, 32)  /* enum dpa_state */
#define DPA_OUT_CODE	  PRM_FIELD(0xa0, 32)  /* why it is in that state */
#define DPA_OUT_END	  PRM_FIELD(0x80, 32)  /* of a call: enum dpa_call_end */
#define DPA_OUT_TEXT	  PRM_FIELD(0x80, 32)  /* of a stream: bytes behind the fixed part */
#define DPA_OUT_OVER	  PRM_FIELD(0xa0, 1)   /* the stream is closed, and nothing is left */
#define DPA_OUT_LOST	  PRM_FIELD(0xc0, 64)  /* messages dropped before somebody read them */
#define DPA_OUT_BEFORE	  PRM_FIELD(0x100, 64) /* bytes that readers got before */
#define DPA_OUT_BLOCK	  PRM_FIELD(0x40, 64)  /* of a copy: address of the block where it begins */
#define DPA_OUT_LENGTH	  PRM_FIELD(0x80, 64)  /* and its bytes; 0: it begins in no block */
#define DPA_OUT_OVERRUN	  PRM_FIELD(0xc0, 1)   /* it left the block, for the first time */
#define DPA_OUT_HEAP_BASE PRM_FIELD(0x40, 64)
#define DPA_OUT_HEAP_SIZE PRM_FIELD(0x80, 64)
#define DPA_OUT_REQUESTED PRM_FIELD(0xc0, 64)
#define DPA_OUT_ALLOCATED PRM_FIELD(0x100, 64)
#define DPA_OUT_BYTES	  0x28u

/* DPA_OP_CRASH answers with this behind the fixed part, and then the frames. */
#define DPA_CRASH_FAULT	 PRM_FIELD(0x00, 1)
#define DPA_CRASH_WRITE	 PRM_FIELD(0x01, 1)
#define DPA_CRASH_SIGNAL PRM_FIELD(0x10, 16)
#define DPA_CRASH_FRAMES PRM_FIELD(0x20, 32) /* frames that follow */
#define DPA_CRASH_ADDR	 PRM_FIELD(0x40, 64)
#define DPA_CRASH_BYTES	 PRM_FIELD(0x80, 64) /* bytes of the access; 0: not known */
#define DPA_CRASH_STACK	 PRM_FIELD(0x02, 1)  /* the thread's stack has run out */
#define DPA_CRASH_FREED	 PRM_FIELD(0x03, 1)  /* the block has been freed */
/* The block of the heap that the access was meant for; 0 bytes: not known. */
#define DPA_CRASH_BLOCK	       PRM_FIELD(0xc0, 64)
#define DPA_CRASH_BLOCK_BYTES  PRM_FIELD(0x100, 64)
#define DPA_CRASH_ALLOCATED_BY PRM_FIELD(0x140, 64) /* addresses of the program, or 0 */
#define DPA_CRASH_FREED_BY     PRM_FIELD(0x180, 64)
#define DPA_CRASH_HEADER       0x38u

#define DPA_FRAME_THREAD     PRM_FIELD(0x00, 32) /* 0: the thread that failed; number of a call */
#define DPA_FRAME_LATE	     PRM_FIELD(0x20, 8)	 /* of a call that was stopped, not of a failure */
#define DPA_FRAME_DEPTH	     PRM_FIELD(0x28, 24)
#define DPA_FRAME_PC	     PRM_FIELD(0x40, 64)
#define DPA_FRAME_SP	     PRM_FIELD(0x80, 64)
#define DPA_FRAME_FP	     PRM_FIELD(0xc0, 64)
#define DPA_FRAME_IMAGE	     PRM_FIELD(0x100, 64) /* place in the image, or all ones */
#define DPA_FRAME_OFFSET     PRM_FIELD(0x140, 64) /* offset in the function */
#define DPA_FRAME_NAME	     0x30u /* byte; zeroes behind the name, if there is room */
#define DPA_FRAME_NAME_BYTES 0x50u
#define DPA_FRAME_BYTES	     0x80u

/* Threads and outboxes of a DPA, which are general objects.  The layouts are ours, like those
 * above. */

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
