/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DEVX: commands of the PRM that a program sends to the firmware, and the objects that they make.
 *
 * As in mlx5_ib the driver looks at few things: which method may carry which opcode, and whether
 * the command names the object of the handle.  A mistake there is -EINVAL.  All else is the
 * firmware's to refuse: status and syndrome in the mailbox, and -EREMOTEIO.
 *
 * Each kind of object has a class and its commands at the end of its file; devx/command.c lists the
 * files.
 *
 * A mailbox names other objects by number, and numbers come from the program: only those of the
 * same file are found (devx_find).
 */
#pragma once

#include "base/spin.h"
#include "driver/doorbell/doorbell.h"
#include "driver/uverbs/core/port.h"
#include "driver/uverbs/core/spec.h"
#include "prm/cmd.h"
#include "prm/eqe.h"

#define DEVX_USES 8u
/* Event queues are one per completion vector, numbered from here. */
#define DEVX_EQN_FIRST 4u

struct devx_subscription;

struct devx_obj;

/* A kind of object as the device counts them, each with numbers of its own. */
struct devx_class {
	/* May be missing.  Is this an object of verbs that a command means by that number? */
	bool (*is)(struct uobj *obj, uint32_t number);
	/* Frees the device's part; may be missing. */
	void (*free)(struct devx_obj *obj);
	/*
	 * May be missing: of threads of a DPA.  A completion queue has something for it; from any
	 * thread, which holds the queue's lock, so it calls nothing of the device.
	 */
	void (*activate)(struct devx_obj *obj);
	/*
	 * May be missing: of processes of a DPA.  The memory of bytes at an address of theirs, or
	 * NULL if they have not all of it.
	 */
	void *(*part)(struct devx_obj *obj, uint64_t daddr, uint64_t bytes);
	/* May be missing.  Somebody has subscribed to events of it, and may have come late. */
	void (*subscribed)(struct devx_obj *obj);
	uint8_t queue; /* enum eqe_queue: what events of it say that it is */
	/* May be missing: of what steering rules may lead to. */
	struct qp *(*takes_frames)(struct devx_obj *obj);
	/* May be missing: of tables of flows, and of counters of what rules take. */
	struct flow_table *(*table)(struct devx_obj *obj);
	struct flow_counter *(*counter)(struct devx_obj *obj);
};

struct devx_obj {
	struct uobj uobj;
	const struct devx_class *class;
	uint32_t number;
	struct uobj *uses[DEVX_USES]; /* objects that it was made of */
	struct spin events_lock;
	struct devx_subscription *events;
};

/*
 * Where commands name an umem, this and the number of a process of a DPA is that one's memory;
 * offsets in it are its addresses.
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

/* A command in a copy of ours.  Both mailboxes have the bytes that the row of the command says. */
struct devx_call {
	struct ufile *file;
	const uint8_t *in;
	size_t in_len;
	uint8_t *out; /* zero */
	size_t out_len;
	struct uobj *target; /* of a query or a modify: what the handle names */
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
		*class; /* of the object that a query or modify names; NULL: one of several */
	const char *name;
	/* Neither: the kernel knows the command and this device has not got it; -EOPNOTSUPP. */
	devx_run *run;
	devx_create *create;
	/* What the kernel looks at besides the opcode; NULL: nothing. */
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
extern const struct uverbs_family udevx_async_family;
extern const struct uverbs_family udevx_event_family;
extern const struct uverbs_family uumem_family;

/* NULL if the kernel does not let it pass by that method either. */
const struct devx_op *devx_op_find(uint16_t opcode, enum devx_method method);

/* ---- objects ---- */

/* record: calloc'ed, with obj inside at its start.  number: as the device calls it. */
void devx_obj_init(struct devx_obj *obj, const struct devx_class *class, uint32_t number);
/* It cannot be destroyed while obj is there. */
void devx_obj_uses(struct devx_obj *obj, struct uobj *used);
/* It uses nothing any more. */
void devx_obj_release(struct devx_obj *obj);
/* An object that was not published. */
void devx_discard(struct ufile *f, struct devx_obj *obj);
/* Is this an object of DEVX with that number? */
bool devx_is_numbered(struct uobj *obj, uint32_t number);
/* Is this object (of verbs or of DEVX) what a command means by that class and number? */
bool devx_is(struct uobj *obj, const struct devx_class *class, uint32_t number);
/*
 * The object of the file that has this number: of DEVX or of verbs.  Looks at handles in the order
 * in which they were given out, so what is made first and named often, as domains and CQs, is found
 * soon.
 */
struct uobj *devx_find(struct ufile *f, const struct devx_class *class, uint32_t number);

/* The lowest number above 0 that no object of the class has in the file, for kinds whose numbers mean
 * something in one context only. */
uint32_t devx_free_number(struct ufile *f, const struct devx_class *class);

/* Kinds that others are made of.  An SRQ of verbs is one of RMPs. */
extern const struct devx_class devx_pd_class, devx_cq_class, devx_rmp_class, devx_sq_class;
/* The device's object behind what devx_find found. */
struct cq *devx_cq_of(struct uobj *obj);
struct srq *devx_srq_of(struct uobj *obj);
/* -EINVAL if the file has no such domain; *obj may be used. */
int devx_pd(struct ufile *f, uint32_t pdn, struct uobj **obj) must_check;

/* The object with this number of the classes that fit, or NULL.  Kinds that others provide. */
typedef bool devx_fits(const struct devx_class *class);
struct devx_obj *devx_find_fitting(struct ufile *f, devx_fits *fits, uint32_t number);

/* The part of an umem that begins at offset: NULL unless length bytes of it are there, and aligned
 * to 4; writable if the device writes to it: of rings and records only to those of CQEs. */
void *devx_umem_part(struct ufile *f, uint32_t umem_id, uint64_t offset, uint64_t length,
		     bool write, struct uobj **umem);
/*
 * The same for length bytes in whole pages from the one that offset lies in, from as far into it as
 * iova is into its page; of any alignment.
 */
void *devx_umem_pages(struct ufile *f, const struct devx_pages *at, bool write, struct uobj **umem);

/*
 * May a queue name this region for its doorbells?  -EINVAL if it is none of the file's.  *duar: one
 * of a DPA, which the queue has to use (devx_obj_uses), or NULL if it is a page of registers.
 */
int devx_uar(struct ufile *f, uint32_t number, struct uobj **duar) must_check;

/* ---- events ---- */

/* Tells those who subscribed to events of this type of the object.  An upcall of the device. */
void devx_event(struct devx_obj *obj, enum eqe_type type, const uint8_t eqe[EQE_BYTES]);
/* Asynchronous event of a queue, as the device names them. */
void devx_queue_event(struct devx_obj *obj, enum ib_event event);
/* When nothing posts events of the object any more. */
void devx_events_drop(struct devx_obj *obj);
/* The same for those of the device as a whole. */
void devx_file_event(struct ufile *f, enum ib_event event);
void devx_file_events_drop(struct ufile *f);

/* ---- the files with commands ---- */

extern const struct devx_family devx_port_family, devx_pd_family, devx_mkey_family, devx_psv_family,
	devx_cq_family, devx_rmp_family, devx_qp_family, devx_qp_modify_family, devx_dct_family,
	devx_general_family, devx_dpa_family, devx_dpa_thread_family, devx_td_family,
	devx_rq_family, devx_sq_family, devx_rqt_family, devx_tir_family, devx_flow_table_family,
	devx_flow_counter_family, devx_vport_family, devx_eq_family, devx_reformat_family,
	devx_emulation_family;
