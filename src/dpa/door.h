/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door between device code and the runtime: all that code of a DPA program can ask of the
 * world.
 *
 * The device library (src/dpa/device) is linked into every device image and calls through this
 * table; the runtime (the rest of src/dpa) fills it in. The two are compiled apart, perhaps years
 * apart: the image says which door it was built for, and a runtime that does not know that door
 * refuses the image. Nothing here depends on a libc, and every value has the same size on both
 * sides.
 *
 * Calls run on the stack of the device thread, in its pthread.  The runtime marks the time that it
 * spends inside, so that it stops a thread in device code only.  Text and arrays that device code
 * hands over are the program's memory and may be wrong: the library has touched the text that it
 * formatted itself, and the runtime checks all other addresses as check() does before it uses them.
 * The runtime knows which thread calls, so the library does not pass on the thread context that a
 * program hands to it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Grows with every change to the part below that an older image would not survive. */
#define DPA_DOOR_VERSION 1u

/* "DPAimage", as a little-endian number. */
#define DPA_IMAGE_MAGIC 0x6567616d69415044ull

/* Flags of struct dpa_image_info. */
#define DPA_IMAGE_CHECKED 1u /* compiled with checks of every load and store */
#define DPA_IMAGE_WATCHED 2u /* set by the runtime, which wants to hear of fences */

/* Spaces of memory that fences order: from this one on, windows are among them. */
#define DPA_SPACE_MMIO 2u
/* What precedes a fence and what follows it. */
#define DPA_FENCE_R 1u
#define DPA_FENCE_W 2u

/* See dpa_door.check. */
#define DPA_CHECK_CALL 2

/*
 * See dpa_door.watch: what comes next at the address, which is an atomic or volatile access, or what
 * has been loaded there.  The order is that of C: __ATOMIC_RELAXED to __ATOMIC_SEQ_CST.
 */
enum dpa_watch {
	DPA_WATCH_LOAD,
	DPA_WATCH_STORE,
	DPA_WATCH_UPDATE, /* a load and a store in one */
	DPA_WATCH_TAKE,	  /* the load of LOAD or UPDATE is done */
	DPA_WATCH_FENCE,  /* of threads; it has no address */
};

/* Numbers of streams begin with 0, the default stream; the last number means all of them. */
#define DPA_STREAMS	     255u
#define DPA_STREAM_BROADCAST 255u

/*
 * The longest text of one message; longer ones are cut.  It is also the smallest buffer that a
 * stream can have, so every message fits into every stream.
 */
#define DPA_MESSAGE_BYTES 2048u

/* Arguments of a trace record. */
#define DPA_TRACE_ARGS 6u

/* How many windows a thread can have set at a time; calls that name none mean slot 0. */
#define DPA_WINDOW_SLOTS 2u

/* How an activation ends: the argument of dpa_door.end. */
enum dpa_end {
	DPA_END_RESCHEDULE,	/* idle; the next event starts the function anew */
	DPA_END_RETRIGGER,	/* the function starts anew at once, without an event */
	DPA_END_FINISH,		/* the thread is finished: nothing starts it again */
	DPA_END_PROCESS_FINISH, /* the process ends without an error, status 0x40 */
};

/* Bytes of a thread's name, with its terminator. */
#define DPA_THREAD_NAME_BYTES 64u

/* Answers of calls that can fail: values of flexio_dev_status_t. */
enum dpa_status {
	DPA_SUCCESS = 0,
	DPA_FAILED = 1,
};

/*
 * The context of a thread as device code sees it, `struct flexio_dev_thread_ctx` of the public
 * headers. The front, up to thread_errno, is laid out as in NVIDIA's public headers, which some
 * programs read through.
 *
 * It lies in the process's region, so device code can spoil it: the runtime writes it and, except
 * for thread_errno, believes nothing that it reads there.
 */
struct flexio_dev_thread_ctx {
	uint32_t version;
	uint16_t outbox_config_id;
	uint16_t window_config_id;
	uint64_t outbox_base;
	uint64_t window_base;
	uint64_t window_config_base;
	uint64_t metadata_parameter;
	uint32_t thread_errno; /* "errno": the runtime sets it, the library reads and resets it */
	uint32_t thread_id;    /* flexio_event_handler_get_id, or another thread's number */
	uint64_t thread_local_storage;		 /* address in DPA memory, or 0 */
	char thread_name[DPA_THREAD_NAME_BYTES]; /* since the thread asked for it last */
};

_Static_assert(offsetof(struct flexio_dev_thread_ctx, outbox_base) == 8 &&
		       offsetof(struct flexio_dev_thread_ctx, metadata_parameter) == 32 &&
		       offsetof(struct flexio_dev_thread_ctx, thread_errno) == 40,
	       "the front is laid out as in the public headers");

/*
 * A tracer of the process, `struct flexio_tracer_streams_data` of the public headers, in DPA
 * memory.  The library reads only valid_lvl, so that a trace that nobody wants costs a load and a
 * compare.  The runtime keeps the records: it fills in the other fields for programs that look, and
 * has no buffers in DPA memory.
 */
struct dpa_tracer {
	uint8_t valid_lvl;
	uint8_t transport_mode;
	uint16_t log_num_buf_msgs;
	uint32_t current_ix;
	uint32_t max_entries_per_buf;
	uint32_t writing;
	uint16_t buf_idx;
	uint16_t buf_mask;
	uint32_t reserved;
	uint64_t current_buffer;
	uint64_t buffer;
};

/* A record that the tracer writes: `struct flexio_tracer_msg` of the public headers. */
struct dpa_trace_record {
	uint32_t format_id;
	uint32_t reserved[3];
	uint64_t args[DPA_TRACE_ARGS];
};

_Static_assert(sizeof(struct dpa_trace_record) == 64, "a record is 64 bytes");

/*
 * What the calling thread has reserved: lr and sc of inline assembly.  The runtime keeps it for the
 * library, which alone reads and writes it.
 */
struct dpa_reservation {
	uint64_t addr; /* 0: nothing */
	uint64_t bytes;
	uint64_t value;	  /* what was there */
	uint64_t version; /* of the address's entry in the library's table */
};

struct dpa_door {
	uint32_t version; /* DPA_DOOR_VERSION */
	uint32_t bytes;	  /* of this structure, because later doors are longer */

	/* Returns the calling thread's context, or NULL (never while device code runs). */
	struct flexio_dev_thread_ctx *(*thread_ctx)(void);

	/* Ends the activation; does not return. In an RPC only DPA_END_PROCESS_FINISH has a
	 * meaning. */
	void (*end)(uint32_t how);
	/* Continuable handlers: sleeps until the next event, or just lets others run first.
	 * Others: returns at once. */
	void (*yield)(uint32_t retrigger);
	/* Ends the process with an error.  Codes from 128 on are the program's; a smaller one is
	 * itself an error (0x42). */
	void (*error)(uint32_t code);
	/* Lets other threads run, because the caller waits in a loop for another thread. */
	void (*relax)(void);
	/* Nanoseconds since some start, the same in all threads; never goes back. */
	uint64_t (*time)(void);

	/*
	 * The slow way of the checks, for an access outside of the region.  Returns if the thread
	 * may make it (an acquired window); else the process has a fault at the caller's place, and
	 * the call does not return.  write: 0 a load, 1 a store, DPA_CHECK_CALL a
	 * call of what is not the image's code.
	 */
	void (*check)(uint64_t addr, uint64_t bytes, uint32_t write);

	/*
	 * Windows of the calling thread. window_copy checks both ranges, host and device.
	 * window_acquire gives the address through which the thread reaches haddr: base + haddr for
	 * one base per window, whatever haddr is.
	 */
	uint32_t (*window_config)(uint32_t slot, uint32_t window_id, uint32_t mkey);
	uint32_t (*window_mkey)(uint32_t slot, uint32_t mkey);
	uint32_t (*window_acquire)(uint32_t slot, uint64_t haddr, uint64_t *daddr);
	uint32_t (*window_copy)(uint32_t slot, uint32_t to_host, uint64_t haddr, uint64_t daddr,
				uint64_t bytes);

	/* Choose the outbox through which the thread rings, and the device at which it rings. */
	uint32_t (*outbox_config)(uint32_t outbox_id);
	uint32_t (*outbox_uar)(uint32_t device_id);

	/* Ring doorbells through the thread's outbox.  One at a queue of another UAR is dropped. */
	void (*sq_ring)(uint32_t pi, uint32_t qpn);
	void (*cq_arm)(uint32_t ci, uint32_t cqn);
	void (*eq_update)(uint32_t ci, uint32_t eqn);
	void (*msix_send)(uint32_t cqn);
	void (*emu_arm)(uint32_t qpn, uint32_t emu_id);
	void (*emu_trigger)(uint32_t cqn, uint32_t emu_id);
	void (*cc_ring)(uint32_t ccq_id, uint32_t rate, uint32_t rtt_req, uint32_t next_action);

	/*
	 * Takes one whole message: at most DPA_MESSAGE_BYTES, without a terminator.  The runtime
	 * knows the streams and their levels, drops what nobody wants, and waits if the stream is
	 * full and its mode says so.
	 */
	void (*message)(uint32_t stream, uint32_t level, const char *text, uint32_t bytes);
	/* Takes one trace record; the host hears of it when the buffer is full. */
	void (*trace)(uint32_t stream, uint32_t level, uint32_t format_id,
		      const uint64_t args[DPA_TRACE_ARGS]);
	/* Sends what the tracer's buffer holds to the host, at most 'records' (0: all). */
	void (*trace_send)(uint32_t stream, uint32_t records);

	/* Choose and read counters of the ports: each sample writes `count` values. */
	void (*nic_config)(uint64_t values, uint64_t ids, uint32_t count);
	void (*nic_sample)(void);
	uint64_t (*pcc_table)(uint32_t gvmi);

	/* Images of older libraries have a door that ends here (door_bytes). */

	/* As sq_ring, at another device, whatever the thread's outbox is. */
	uint32_t (*sq_ring_at)(uint32_t device_id, uint32_t pi, uint32_t qpn);
	/* Returns what was stored last to the doorbell of an emulated function that the context is
	 * of; 0: nothing, or there is no such context of the thread's UAR. */
	uint32_t (*emu_value)(uint32_t emu_id);
	/* Rings the second half of the register of congestion control. */
	void (*cc_ring_high)(uint64_t value);
	/* Brings an event to a handler of the process; nothing happens if there is none. */
	void (*activate)(uint32_t thread_id);
	/* Writes the name of the calling thread, that of the function it began with, into its
	 * context. */
	void (*thread_name)(void);

	/* Nanoseconds for which the calling thread has had a processor. */
	uint64_t (*worked)(void);

	/* A fence of device code, of images that are watched; the arguments are those of
	 * __dpa_thread_fence. */
	void (*fence)(uint32_t space, uint32_t before, uint32_t behind);
	/* An access or a fence of code that is compiled to find data races; checks the address. */
	void (*watch)(uint64_t addr, uint64_t bytes, uint32_t what, uint32_t order);

	/* Returns the calling thread's reservation. */
	struct dpa_reservation *(*reservation)(void);
};

/*
 * Every image has this under the name `__dpa_image_info`, in writable data.  The image's half says
 * what it is; the runtime fills in the other half before any code of the image runs.
 */
struct dpa_image_info {
	uint64_t magic;	     /* DPA_IMAGE_MAGIC */
	uint32_t version;    /* DPA_DOOR_VERSION of the device library */
	uint32_t bytes;	     /* bytes of this structure */
	uint32_t door_bytes; /* bytes of the door that the library knows */
	uint32_t flags;	     /* DPA_IMAGE_* */

	/* The runtime's half. */
	uint64_t door; /* address of a struct dpa_door */
	/* Image, heap and stacks lie in this range, for which code need not ask at the door. */
	uint64_t region_begin;
	uint64_t region_bytes;
	uint64_t tracers[DPA_STREAMS]; /* addresses of struct dpa_tracer, or 0 */
	struct dpa_tracer tracer[DPA_STREAMS];
};
