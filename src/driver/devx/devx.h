/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DEVX: commands of the PRM that a program sends to the firmware, and the objects that they make.
 *
 * As in mlx5_ib the driver looks at few things: which method may carry which opcode, and whether
 * the command names the object of the handle.  A mistake there is -EINVAL.  All else is the
 * firmware's to refuse: status and syndrome in the mailbox, and -EREMOTEIO.
 *
 * Each kind of object has a class and its commands at the end of its file; devx/method.c lists the
 * files.
 *
 * A mailbox names other objects by number, and numbers come from the program: only those of the
 * same file are found (devx_find).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/explain.h"
#include "base/spin.h"
#include "driver/doorbell/doorbell.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/core/spec.h"
#include "prm/cmd.h"
#include "prm/eqe.h"

#define DEVX_USES 8u
/* Event queues are one per completion vector, numbered from here. */
#define DEVX_EQN_FIRST 4u

struct devx_subscription;

struct devx_obj;

/* A kind of object as the device counts them; each kind numbers its objects separately. */
struct devx_class {
	/* May be missing.  Tells whether commands mean this verbs object by that number. */
	bool (*is)(struct uobj *obj, uint32_t number);
	/* Frees the device's part; may be missing. */
	void (*free)(struct devx_obj *obj);
	/*
	 * May be missing: threads of a DPA have it.  A completion queue has something for the
	 * thread.  Any thread calls this and holds the queue's lock, so the function calls nothing
	 * of the device.
	 */
	void (*activate)(struct devx_obj *obj);
	/*
	 * May be missing: processes of a DPA have it.  Returns the memory of 'bytes' bytes at an
	 * address of the process, or NULL if the process does not have all of them.
	 */
	void *(*part)(struct devx_obj *obj, uint64_t daddr, uint64_t bytes);
	/* May be missing.  Somebody has subscribed to the object's events, perhaps late. */
	void (*subscribed)(struct devx_obj *obj);
	uint8_t queue; /* enum eqe_queue: the kind of queue that events of it name */
	/* May be missing: objects that steering rules may lead to have it. */
	struct qp *(*takes_frames)(struct devx_obj *obj);
	/* May be missing: tables of flows have it, and counters of what rules take. */
	struct flow_table *(*table)(struct devx_obj *obj);
	struct flow_counter *(*counter)(struct devx_obj *obj);
};

struct devx_obj {
	struct uobj uobj;
	const struct devx_class *class;
	uint32_t number;
	struct uobj *uses[DEVX_USES]; /* objects that this one was made of */
	struct spin events_lock;
	struct devx_subscription *events;
};

/*
 * In commands that name an umem, this plus the number of a DPA process means the memory of that
 * process; offsets in it are the process's addresses.
 */
#define DEVX_UMEM_DPA 0x800000u

/* Memory of the program that queues and keys may lie in. */
struct devx_umem {
	struct uobj uobj;
	uint64_t addr;
	uint64_t length;
	bool writable;
};

/* A stretch of an umem as keys name it. */
struct devx_pages {
	uint32_t umem_id;
	uint64_t offset;
	uint64_t iova;
	uint64_t length;
	uint64_t page; /* bytes */
};

/* A stretch of an umem that a queue uses. */
struct devx_part {
	const char *field; /* where the command names it, for the line about a refusal */
	uint32_t umem_id;
	uint64_t offset;
	uint64_t length;
};

/* A command, copied out of the program.  The command's row says the sizes of both mailboxes. */
struct devx_call {
	struct ufile *file;
	const uint8_t *in;
	size_t in_len;
	uint8_t *out; /* zero */
	size_t out_len;
	struct uobj *target; /* what the handle of a query or a modify names */
};

/*
 * Both return 0 or a negative errno, which becomes a status of the mailbox.  create hands out an
 * object that is complete but for its handle; devx_discard undoes it.
 */
typedef int devx_run(struct devx_call *c);
typedef int devx_create(struct devx_call *c, struct devx_obj **out);

enum devx_method { DEVX_GENERAL, DEVX_OBJ_CREATE, DEVX_OBJ_MODIFY, DEVX_OBJ_QUERY };

struct devx_op {
	uint16_t opcode;
	uint8_t method;		 /* enum devx_method */
	struct prm_field number; /* where a query or modify names its object */
	uint16_t in_bytes;
	uint16_t out_bytes;
	const struct devx_class
		*class; /* class of the object that a query or modify names; NULL: one of several */
	const char *name;
	/* Both NULL: the kernel knows the command, this device does not have it; -EOPNOTSUPP. */
	devx_run *run;
	devx_create *create;
	/* What the kernel checks besides the opcode; NULL: nothing. */
	bool (*admits)(const uint8_t *in);
};

/* The commands of a file. */
struct devx_family {
	const struct devx_op *ops;
	size_t nops;
};

#define DEVX_FAMILY(list)                \
	{                                \
		(list), array_size(list) \
	}
#define DEVX_ROW(op, how, in, out) \
	.opcode = PRM_OP_##op, .method = (how), .in_bytes = (in), .out_bytes = (out), .name = #op
#define DEVX_OTHER(op, in, out, fn)                              \
	{                                                        \
		DEVX_ROW(op, DEVX_GENERAL, in, out), .run = (fn) \
	}
#define DEVX_CREATE(op, in, out, fn)                                   \
	{                                                              \
		DEVX_ROW(op, DEVX_OBJ_CREATE, in, out), .create = (fn) \
	}
#define DEVX_NAMED(op, how, what, in, out, fn)                                                    \
	{                                                                                         \
		DEVX_ROW(op, how, in, out), .class = (what), .number = CMD_IN_NUMBER, .run = (fn) \
	}
#define DEVX_MODIFY(op, what, in, out, fn) DEVX_NAMED(op, DEVX_OBJ_MODIFY, what, in, out, fn)
#define DEVX_QUERY(op, what, in, out, fn)  DEVX_NAMED(op, DEVX_OBJ_QUERY, what, in, out, fn)

extern const struct uobj_class udevx_class;
extern const struct uverbs_family udevx_family;
extern const struct uverbs_family udevx_channel_family;
extern const struct uverbs_family uumem_family;

/* ---- objects ---- */

/* record: calloc'ed, with obj at its start.  number: the device's number of the object. */
void devx_obj_init(struct devx_obj *obj, const struct devx_class *class, uint32_t number);
/* Nobody can destroy 'used' while obj is there. */
void devx_obj_uses(struct devx_obj *obj, struct uobj *used);
/* The object uses nothing any more. */
void devx_obj_release(struct devx_obj *obj);
/* Undoes an object that was not published. */
void devx_discard(struct ufile *f, struct devx_obj *obj);
/* Is this an object of DEVX with that number? */
bool devx_is_numbered(struct uobj *obj, uint32_t number);
/* Is this object (of verbs or of DEVX) what a command means by that class and number? */
bool devx_is(struct uobj *obj, const struct devx_class *class, uint32_t number);
/*
 * Finds the object of the file that has this number, made by DEVX or by verbs.  Of those of verbs it
 * finds the kinds that commands name: domains, CQs, SRQs and WQs.
 */
struct uobj *devx_find(struct ufile *f, const struct devx_class *class, uint32_t number);

/* The lowest number above 0 that no object of the class has in the file, for kinds whose numbers
 * have a meaning in one context only. */
uint32_t devx_free_number(struct ufile *f, const struct devx_class *class);

/* Kinds that other objects are made of.  An SRQ of verbs counts as an RMP. */
extern const struct devx_class devx_pd_class, devx_cq_class, devx_rmp_class, devx_sq_class;
/* Returns the device's object behind the one that devx_find found. */
struct cq *devx_cq_of(struct uobj *obj);
struct srq *devx_srq_of(struct uobj *obj);
/* -EINVAL if the file has no such domain.  The caller may use *obj (devx_obj_uses). */
int devx_pd(struct ufile *f, uint32_t pdn, struct uobj **obj) must_check;

/* The object with this number whose class fits, or NULL.  Other files provide these kinds. */
typedef bool devx_fits(const struct devx_class *class);
struct devx_obj *devx_find_fitting(struct ufile *f, devx_fits *fits, uint32_t number);

/* NULL unless all its bytes are there, aligned to 4; writable if the device writes to it, which it
 * does only to rings and records of CQEs. */
void *devx_umem_part(struct ufile *f, const struct devx_part *part, bool write, struct uobj **umem);

/*
 * Checks that a queue may name this region for its doorbells; -EINVAL if the file does not have it.
 * *duar is a region of a DPA, which the queue has to use (devx_obj_uses), or NULL for a page of
 * registers.
 */
int devx_uar(struct ufile *f, uint32_t number, struct uobj **duar) must_check;

/* ---- events ---- */

/* The device calls this to tell those who subscribed to events of this type of the object. */
void devx_event(struct devx_obj *obj, enum eqe_type type, const uint8_t eqe[EQE_BYTES]);
/* Tells of an asynchronous event of a queue, by the device's name for it. */
void devx_queue_event(struct devx_obj *obj, enum ib_event event);
/* The owner calls this when nothing posts events of the object any more. */
void devx_events_drop(struct devx_obj *obj);
/* The same for events of the device as a whole. */
void devx_file_events_drop(struct ufile *f);

/* ---- the files with commands ---- */

extern const struct devx_family devx_port_family, devx_domain_family, devx_memory_family,
	devx_cq_family, devx_rmp_family, devx_qp_family, devx_dct_family, devx_general_family,
	devx_dpa_family, devx_dpa_thread_family, devx_rq_family, devx_sq_family, devx_flow_family,
	devx_eq_family, devx_emulation_family;

/* ---- completion queues ---- */

/* Gives the region from which bells of such a queue come; false: device code may not ring them. */
bool devx_cq_region(struct uobj *cq, uint32_t *region) must_check;

/* ---- channels of answers ---- */

/*
 * The channel that carries the answers of asynchronous DEVX queries: one message per answer, with
 * the work request's name and the output mailbox.  It is a socket of messages, because answers
 * differ in length and a read takes one.
 */

struct devx_async;

/* Finds the channel and takes a reference; -EBADF if fd is no such channel of this file. */
int devx_async_find(struct ufile *f, int64_t fd, struct devx_async **out) must_check;
void devx_async_put(struct devx_async *a);
/* -EAGAIN if the program has left too many unread. */
int devx_async_post(struct devx_async *a, uint64_t wr_id, const uint8_t *answer,
		    size_t len) must_check;

/* ---- refusals ---- */

/*
 * Why the device refuses a command: which field it is, its value and what would do.  The line about
 * the refusal (base/explain.h) says so.  Fields have the names that the kernel gives them.
 */

/* Evaluates to err. */
#define devx_refuse(err, field, value, wanted) \
	explained(err, "%s is 0x%llx: %s", (field), (unsigned long long)(value), (wanted))

/* A field whose feature the device does not have. */
struct devx_lack {
	struct prm_field field;
	const char *name;
};

/* -EOPNOTSUPP if one of these fields of the context is not 0. */
int devx_check_lacks(const uint8_t *context, const struct devx_lack *lacks, size_t n) must_check;
#define devx_lacks(context, lacks) devx_check_lacks(context, lacks, array_size(lacks))

/* The ring and the doorbell record that a work queue context (WQ_...) names. */
struct devx_part devx_wq_ring(const uint8_t *wq);
struct devx_part devx_wq_record(const uint8_t *wq, uint64_t bytes);
/* -EOPNOTSUPP if the context wants what no ring here has. */
int devx_wq_check_lacks(const uint8_t *wq) must_check;
/* -EOPNOTSUPP unless the context is that of a plain cyclic ring. */
int devx_raw_check_ring(const uint8_t *wq) must_check;
/* -EOPNOTSUPP unless frames go through the file's port. */
int devx_raw_check_port(const struct ufile *f) must_check;

/* -EINVAL if the value is above max. */
int devx_at_most(const char *field, uint64_t value, uint64_t max) must_check;

/* Finds the object that a field names (devx_find), or refuses the command with -EINVAL. */
int devx_named(struct ufile *f, const struct devx_class *class, uint32_t number, const char *field,
	       struct uobj **obj) must_check;

/* ---- general objects, which general.c creates; each function makes what is in the record ---- */

struct devx_flow_sampler {
	struct devx_obj obj;
	struct flow_sampler *sampler;
};

extern const struct devx_class devx_flow_sampler_class;

int devx_create_flow_sampler(struct devx_call *c, struct devx_obj *obj);
int devx_query_flow_sampler(struct devx_call *c);
int devx_create_definer(struct devx_call *c, struct devx_obj *obj);
int devx_create_duar(struct devx_call *c, struct devx_obj *obj);
