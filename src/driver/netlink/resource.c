// SPDX-License-Identifier: BSD-2-Clause
/*
 * What RDMA netlink says of the objects of all programs of the host.  It reads them as `softhca status`
 * does (exposure/look.h): it asks nothing of a program, and waits for none for long.  What cannot be
 * read is not listed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "driver/netlink/request.h"
#include "exposure/look.h"
#include "fabric/client/view.h"

/* How long a dump waits for all programs that hold up who reads them, and for one at least.  Each may take
 * half of the time that is left: those behind it, which may only be slow, need some, too. */
#define LOOKS_MS      1000
#define LOOK_LEAST_MS 20

/* Types of ibverbs that have no name among ours. */
#define QPT_DRIVER 0xffu
enum srq_type { SRQ_BASIC, SRQ_XRC };

#define CM_STATE_LISTEN 8u

/* A list may fill a datagram with this, and a queue pair more. */
#define LIST_BYTES 2800u
#define SRQ_RANGES 40u

/* ---- looking ---- */

struct seen_process {
	const struct slot *slot;
	uint32_t number;
	struct look *look;
	/* What there is in its tables, most of which are empty. */
	uint32_t *rows, nrows; /* of objects */
	uint32_t *keys, nkeys; /* of regions, for look_key */
};

/* What is known of a number, by process and kind: open addressing.  Only what is listed gets a note, so
 * no process takes another's place. */
enum note_kind { NOTE_PD_USERS, NOTE_CQ_USERS, NOTE_PD_PORT };

struct note {
	uint64_t key; /* 0: the place is free */
	uint32_t value;
};

/* A queue pair that receives from a shared queue. */
struct srq_user {
	uint32_t process, srqn, qpn;
};

struct resources {
	struct seen_process processes[REGISTRY_SLOTS];
	uint32_t n;
	struct note *notes;
	uint64_t notes_mask;	    /* how many there is room for, a power of two, less one */
	struct srq_user *srq_users; /* sorted */
	size_t nsrq_users, srq_room;
	struct msg_cm_id_reply *cm_ids;
	uint32_t ncm_ids;
};

/* The processes of the host that are programs. */
static bool is_program_here(const struct netlink_request *r, uint32_t slot)
{
	const struct client_segments *s = &r->view->segments;

	return atomic_load(&s->slots[slot].alive) && !atomic_load(&s->slots[slot].carries_plus_1) &&
	       atomic_load(&s->registry->slot_host_plus_1[slot]) == r->view->host + 1;
}

static void resources_close(struct resources *all)
{
	for (uint32_t i = 0; i < all->n; i++) {
		look_free(all->processes[i].look);
		free(all->processes[i].rows);
		free(all->processes[i].keys);
	}
	free(all->cm_ids);
	free(all->srq_users);
	free(all->notes);
	free(all);
}

/* NULL: there is no memory. */
static struct resources *resources_open(const struct netlink_request *r)
{
	const uint64_t until = clock_ns() + LOOKS_MS * 1000000ull;
	struct resources *all = calloc(1, sizeof(*all));

	for (uint32_t slot = 0; all && slot < REGISTRY_SLOTS; slot++) {
		const uint64_t now = clock_ns();
		const int left = now < until ? (int)((until - now) / 1000000u) : 0;
		struct seen_process *p = &all->processes[all->n];

		if (!is_program_here(r, slot))
			continue;
		p->slot = &r->view->segments.slots[slot];
		p->number = slot;
		p->look = look_at(p->slot, left / 2 > LOOK_LEAST_MS ? left / 2 : LOOK_LEAST_MS);
		if (!p->look) {
			resources_close(all);
			return NULL;
		}
		all->n++;
	}
	return all;
}

/* Numbers that processes give out by themselves are made unique on the host. */
static uint32_t host_number(const struct seen_process *p, uint32_t number)
{
	return p->number << 20 | (number & 0xfffff);
}

static const struct object_about *seen_about(const struct seen_process *p, uint32_t row)
{
	return p->look->copied ? look_about(p->look, row) : NULL;
}

/* ---- what objects have to do with each other ---- */

static uint64_t note_key(const struct seen_process *p, enum note_kind kind, uint32_t number)
{
	return 1ull << 63 | (uint64_t)p->number << 40 | (uint64_t)kind << 32 | number;
}

/* The place of a key, or a free one. */
static struct note *note_at(const struct resources *all, uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15ull >> 32;

	while (all->notes[at & all->notes_mask].key && all->notes[at & all->notes_mask].key != key)
		at++;
	return &all->notes[at & all->notes_mask];
}

static void note_make(const struct resources *all, uint64_t key, uint32_t value)
{
	*note_at(all, key) = (struct note){key, value};
}

/* Counts one more, if there is a note. */
static void note_count(const struct resources *all, uint64_t key)
{
	struct note *n = note_at(all, key);

	n->value += n->key == key;
}

static uint32_t note_value(const struct resources *all, const struct seen_process *p,
			   enum note_kind kind, uint32_t number)
{
	return note_at(all, note_key(p, kind, number))->value;
}

/* The devices of a process number their completion queues alike. */
static uint32_t cq_of_device(uint32_t cqn, uint32_t port)
{
	return cqn << 2 | (port & 3);
}

/* Is it a region of the program's, and not a window or a key that it made by itself? */
static bool is_region(const struct seen_process *p, uint32_t i, struct key_block *k)
{
	return p->look->copied && look_key(&p->look->mem, i, k) && k->place.why != KEY_WHY_WINDOW &&
	       k->place.why != KEY_WHY_LIST && k->place.why != KEY_WHY_DEVX;
}

/* False: there is no memory. */
static bool srq_user_add(struct resources *all, const struct seen_process *p,
			 const struct object_about *o)
{
	if (all->nsrq_users == all->srq_room) {
		const size_t room = all->srq_room ? 2 * all->srq_room : 64;
		struct srq_user *grown = realloc(all->srq_users, room * sizeof(*grown));

		if (!grown)
			return false;
		all->srq_users = grown;
		all->srq_room = room;
	}
	all->srq_users[all->nsrq_users++] = (struct srq_user){p->number, o->srqn, o->number};
	return true;
}

static void object_note(const struct resources *all, const struct seen_process *p,
			const struct object_about *o)
{
	if (o->kind == OBJECT_PD) {
		note_make(all, note_key(p, NOTE_PD_PORT, o->pdn), o->port + 1);
		note_make(all, note_key(p, NOTE_PD_USERS, o->pdn), 0);
	} else if (o->kind == OBJECT_CQ) {
		note_make(all, note_key(p, NOTE_CQ_USERS, cq_of_device(o->number, o->port)), 0);
	}
}

/* Lists what there is in a program's tables.  False: there is no memory. */
static bool tables_list(struct seen_process *p)
{
	struct key_block k;

	p->rows = calloc(OBJECT_ROWS, sizeof(*p->rows));
	p->keys = calloc(LOOK_KEYS, sizeof(*p->keys));
	if (!p->rows || !p->keys)
		return false;
	for (uint32_t row = 0; row < OBJECT_ROWS; row++)
		if (seen_about(p, row))
			p->rows[p->nrows++] = row;
	for (uint32_t key = 0; key < LOOK_KEYS; key++)
		if (is_region(p, key, &k))
			p->keys[p->nkeys++] = key;
	return true;
}

/* Makes notes of all that others count as users of, with room for twice as many.  False: there is no
 * memory. */
static bool notes_open(struct resources *all)
{
	uint64_t wanted = 0, room = 64;

	for (uint32_t i = 0; i < all->n; i++)
		wanted += 2ull * all->processes[i].nrows;
	while (room < 2 * wanted)
		room *= 2;
	all->notes = calloc(room, sizeof(*all->notes));
	all->notes_mask = room - 1;
	if (!all->notes)
		return false;
	for (uint32_t i = 0; i < all->n; i++) {
		const struct seen_process *p = &all->processes[i];

		for (uint32_t n = 0; n < p->nrows; n++)
			object_note(all, p, seen_about(p, p->rows[n]));
	}
	return true;
}

/* Counts what an object uses.  False: there is no memory. */
static bool uses_note(struct resources *all, const struct seen_process *p,
		      const struct object_about *o)
{
	const uint32_t cqs[] = {o->send_cqn, o->recv_cqn};

	if (o->kind != OBJECT_QP && o->kind != OBJECT_SRQ)
		return true;
	note_count(all, note_key(p, NOTE_PD_USERS, o->pdn));
	for (unsigned i = 0; i < 2; i++)
		if (cqs[i] != OBJECT_NO_NUMBER)
			note_count(all, note_key(p, NOTE_CQ_USERS, cq_of_device(cqs[i], o->port)));
	return o->kind != OBJECT_QP || o->srqn == OBJECT_NO_NUMBER || srq_user_add(all, p, o);
}

static int srq_user_compare(const void *a, const void *b)
{
	const struct srq_user *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->srqn != y->srqn)
		return x->srqn < y->srqn ? -1 : 1;
	return (x->qpn > y->qpn) - (x->qpn < y->qpn);
}

static void regions_note(const struct resources *all, const struct seen_process *p)
{
	struct key_block k;

	for (uint32_t n = 0; n < p->nkeys; n++)
		if (is_region(p, p->keys[n], &k))
			note_count(all, note_key(p, NOTE_PD_USERS, k.pdn));
}

/* False: there is no memory. */
static bool objects_note(struct resources *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (!tables_list(&all->processes[i]))
			return false;
	if (!notes_open(all))
		return false;
	for (uint32_t i = 0; i < all->n; i++) {
		const struct seen_process *p = &all->processes[i];

		for (uint32_t n = 0; n < p->nrows; n++)
			if (!uses_note(all, p, seen_about(p, p->rows[n])))
				return false;
		regions_note(all, p);
	}
	if (all->nsrq_users)
		qsort(all->srq_users, all->nsrq_users, sizeof(*all->srq_users), srq_user_compare);
	return true;
}

/* The first queue pair of a shared queue, or where it would be. */
static size_t srq_users_begin(const struct resources *all, const struct seen_process *p,
			      uint32_t srqn)
{
	const struct srq_user wanted = {p->number, srqn, 0};
	size_t low = 0, high = all->nsrq_users;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (srq_user_compare(&all->srq_users[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- entries ---- */

/* Whose objects a request asks for. */
struct wanted {
	const struct netlink_request *r;
	const struct subnet_node *device;
	uint32_t row; /* of the port; SUBNET_NONE: any */
	bool one;     /* only the object of that number */
	uint32_t number;
	struct resources *all;
};

static bool is_wanted(const struct wanted *w, uint32_t port, uint32_t number)
{
	const uint32_t first = w->device->first_port;

	if (port < first || port - first >= w->device->nports)
		return false;
	return (w->row == SUBNET_NONE || port == w->row) && (!w->one || number == w->number);
}

static uint8_t qp_type(uint32_t type)
{
	return type == IB_QPT_DCI || type == IB_QPT_DCT ? QPT_DRIVER : (uint8_t)type;
}

/* Which attributes a queue pair has is a matter of its type. */
static void qp_query_answer(struct answers *a, const struct seen_process *p,
			    const struct object_about *o, const uint64_t *figures)
{
	const bool connected = o->type == IB_QPT_RC || o->type == IB_QPT_UC;
	uint32_t expected;

	if (connected) {
		if (!look_expected_psn(&p->look->mem, o->number, &expected))
			expected = (uint32_t)figures[FIGURE_PSN_EXPECTED];
		answer_u32(a, RDMA_NLDEV_ATTR_RES_RQPN, (uint32_t)figures[FIGURE_PEER]);
		answer_u32(a, RDMA_NLDEV_ATTR_RES_RQ_PSN, expected & 0xffffff);
	}
	answer_u32(a, RDMA_NLDEV_ATTR_RES_SQ_PSN, (uint32_t)figures[FIGURE_PSN_NEXT] & 0xffffff);
	if (connected || o->type == IB_QPT_XRC_INI || o->type == IB_QPT_XRC_TGT)
		answer_u8(a, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE,
			  (uint8_t)min_u64(figures[FIGURE_MIGRATION], IB_MIG_ARMED));
	answer_u8(a, RDMA_NLDEV_ATTR_RES_TYPE, qp_type(o->type));
	answer_u8(a, RDMA_NLDEV_ATTR_RES_STATE, (uint8_t)figures[FIGURE_STATE]);
}

static void qp_answer(const struct wanted *w, const struct seen_process *p, uint32_t row)
{
	const struct object_about *o = seen_about(p, row);
	const uint64_t *figures = p->look->objects[row].figures;
	struct answers *a = w->r->answers;

	if (figures[FIGURE_STATE] != IB_QPS_RESET)
		answer_u32(a, RDMA_NLDEV_ATTR_PORT_INDEX,
			   w->r->view->segments.subnet.ports[o->port].number);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_LQPN, o->number);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PDN, host_number(p, o->pdn));
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)p->slot->pid);
	qp_query_answer(a, p, o, figures);
}

static void cq_answer(const struct wanted *w, const struct seen_process *p, uint32_t row)
{
	const struct object_about *o = seen_about(p, row);
	struct answers *a = w->r->answers;

	/* What the program asked for is one less than the ring has room for. */
	answer_u32(a, RDMA_NLDEV_ATTR_RES_CQE,
		   (uint32_t)p->look->objects[row].figures[FIGURE_ENTRIES] - 1);
	answer_u64(a, RDMA_NLDEV_ATTR_RES_USECNT,
		   note_value(w->all, p, NOTE_CQ_USERS, cq_of_device(o->number, o->port)));
	answer_u8(a, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_CQN, host_number(p, o->number));
	answer_u32(a, RDMA_NLDEV_ATTR_RES_CTXN, host_number(p, o->context));
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)p->slot->pid);
}

static void pd_answer(const struct wanted *w, const struct seen_process *p, uint32_t row)
{
	const struct object_about *o = seen_about(p, row);
	struct answers *a = w->r->answers;

	answer_u64(a, RDMA_NLDEV_ATTR_RES_USECNT, note_value(w->all, p, NOTE_PD_USERS, o->pdn));
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PDN, host_number(p, o->pdn));
	answer_u32(a, RDMA_NLDEV_ATTR_RES_CTXN, host_number(p, o->context));
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)p->slot->pid);
}

static void context_answer(const struct wanted *w, const struct seen_process *p, uint32_t row)
{
	answer_u32(w->r->answers, RDMA_NLDEV_ATTR_RES_CTXN,
		   host_number(p, seen_about(p, row)->number));
	answer_u32(w->r->answers, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)p->slot->pid);
}

static void range_answer(struct answers *a, uint32_t first, uint32_t last)
{
	const size_t entry = answer_nest(a, RDMA_NLDEV_ATTR_RES_QP_ENTRY);

	if (first == last) {
		answer_u32(a, RDMA_NLDEV_ATTR_RES_LQPN, first);
	} else {
		answer_u32(a, RDMA_NLDEV_ATTR_MIN_RANGE, first);
		answer_u32(a, RDMA_NLDEV_ATTR_MAX_RANGE, last);
	}
	answer_nest_end(a, entry);
}

/* Adds the queue pairs that receive from a shared queue, numbers in a row as a range. */
static void srq_qps_answer(const struct wanted *w, const struct seen_process *p, uint32_t srqn)
{
	const size_t table = answer_nest(w->r->answers, RDMA_NLDEV_ATTR_RES_QP);
	const struct srq_user *users = w->all->srq_users;
	size_t i = srq_users_begin(w->all, p, srqn);

	for (uint32_t ranges = 0; ranges < SRQ_RANGES && i < w->all->nsrq_users &&
				  users[i].process == p->number && users[i].srqn == srqn;
	     ranges++) {
		const size_t first = i++;

		while (i < w->all->nsrq_users && users[i].process == p->number &&
		       users[i].srqn == srqn && users[i].qpn == users[i - 1].qpn + 1)
			i++;
		range_answer(w->r->answers, users[first].qpn, users[i - 1].qpn);
	}
	answer_nest_end(w->r->answers, table);
}

static void srq_answer(const struct wanted *w, const struct seen_process *p, uint32_t row)
{
	const struct object_about *o = seen_about(p, row);
	const bool xrc = o->recv_cqn != OBJECT_NO_NUMBER;
	struct answers *a = w->r->answers;

	answer_u32(a, RDMA_NLDEV_ATTR_RES_SRQN, o->number);
	answer_u8(a, RDMA_NLDEV_ATTR_RES_TYPE, xrc ? SRQ_XRC : SRQ_BASIC);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PDN, host_number(p, o->pdn));
	if (xrc)
		answer_u32(a, RDMA_NLDEV_ATTR_RES_CQN, host_number(p, o->recv_cqn));
	srq_qps_answer(w, p, o->number);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)p->slot->pid);
}

static void region_answer(const struct wanted *w, const struct seen_process *p,
			  const struct key_block *k)
{
	struct answers *a = w->r->answers;

	if (w->r->admin) {
		answer_u32(a, RDMA_NLDEV_ATTR_RES_RKEY, k->key);
		answer_u32(a, RDMA_NLDEV_ATTR_RES_LKEY, k->key);
	}
	answer_u64(a, RDMA_NLDEV_ATTR_RES_MRLEN, k->length);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_MRN, k->key >> 8);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PDN, host_number(p, k->pdn));
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)p->slot->pid);
}

static void sockaddr_answer(struct answers *a, uint16_t type, const uint8_t address[128])
{
	sa_family_t family;

	memcpy(&family, address, sizeof(family));
	if (family)
		answer_binary(a, type, address, 128);
}

static void cm_id_answer(const struct wanted *w, const struct msg_cm_id_reply *id)
{
	struct answers *a = w->r->answers;

	if (id->row != SUBNET_NONE)
		answer_u32(a, RDMA_NLDEV_ATTR_PORT_INDEX,
			   w->r->view->segments.subnet.ports[id->row].number);
	if (id->qpn) {
		answer_u32(a, RDMA_NLDEV_ATTR_RES_LQPN, id->qpn);
		answer_u8(a, RDMA_NLDEV_ATTR_RES_TYPE, qp_type(id->qp_type));
	}
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PS, id->space);
	answer_u8(a, RDMA_NLDEV_ATTR_RES_STATE, id->state);
	sockaddr_answer(a, RDMA_NLDEV_ATTR_RES_SRC_ADDR, id->src);
	sockaddr_answer(a, RDMA_NLDEV_ATTR_RES_DST_ADDR, id->dst);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_CM_IDN, id->number);
	answer_u32(a, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)id->pid);
}

/* ---- lists ---- */

/* A kind of object as requests name it. */
struct resource_kind {
	uint16_t number, table, entry; /* attributes */
	bool by_port;		       /* a port has them, not a device as a whole */
	bool figures;		       /* without its figures nothing can be said of one */
	enum object_kind kind;
	void (*answer)(const struct wanted *w, const struct seen_process *p, uint32_t row);
};

static const struct resource_kind qp_kind = {RDMA_NLDEV_ATTR_RES_LQPN,
					     RDMA_NLDEV_ATTR_RES_QP,
					     RDMA_NLDEV_ATTR_RES_QP_ENTRY,
					     true,
					     true,
					     OBJECT_QP,
					     qp_answer};
static const struct resource_kind cq_kind = {RDMA_NLDEV_ATTR_RES_CQN,
					     RDMA_NLDEV_ATTR_RES_CQ,
					     RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
					     false,
					     true,
					     OBJECT_CQ,
					     cq_answer};
static const struct resource_kind srq_kind = {RDMA_NLDEV_ATTR_RES_SRQN,
					      RDMA_NLDEV_ATTR_RES_SRQ,
					      RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
					      false,
					      false,
					      OBJECT_SRQ,
					      srq_answer};
static const struct resource_kind pd_kind = {RDMA_NLDEV_ATTR_RES_PDN,
					     RDMA_NLDEV_ATTR_RES_PD,
					     RDMA_NLDEV_ATTR_RES_PD_ENTRY,
					     false,
					     false,
					     OBJECT_PD,
					     pd_answer};
static const struct resource_kind context_kind = {RDMA_NLDEV_ATTR_RES_CTXN,
						  RDMA_NLDEV_ATTR_RES_CTX,
						  RDMA_NLDEV_ATTR_RES_CTX_ENTRY,
						  false,
						  false,
						  OBJECT_CONTEXT,
						  context_answer};
/* Regions are keys, not rows of objects. */
static const struct resource_kind region_kind = {RDMA_NLDEV_ATTR_RES_MRN,
						 RDMA_NLDEV_ATTR_RES_MR,
						 RDMA_NLDEV_ATTR_RES_MR_ENTRY,
						 false,
						 false,
						 OBJECT_KINDS,
						 NULL};
/* The daemon has them. */
static const struct resource_kind cm_id_kind = {RDMA_NLDEV_ATTR_RES_CM_IDN,
						RDMA_NLDEV_ATTR_RES_CM_ID,
						RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
						true,
						false,
						OBJECT_KINDS,
						NULL};

/* The number by which a request names the object. */
static uint32_t row_number(const struct seen_process *p, const struct object_about *o)
{
	return o->kind == OBJECT_QP || o->kind == OBJECT_SRQ ? o->number
							     : host_number(p, o->number);
}

/* Calls fn for each object that is wanted, until it returns false. */
typedef bool resource_fn(void *user, const struct wanted *w, const struct seen_process *p,
			 uint32_t row, const struct key_block *region);

static bool objects_each(const struct wanted *w, const struct seen_process *p,
			 const struct resource_kind *kind, resource_fn *fn, void *user)
{
	for (uint32_t n = 0; n < p->nrows; n++) {
		const uint32_t row = p->rows[n];
		const struct object_about *o = seen_about(p, row);

		if (o->kind != (uint32_t)kind->kind || !is_wanted(w, o->port, row_number(p, o)) ||
		    (kind->figures && !p->look->objects[row].known))
			continue;
		if (!fn(user, w, p, row, NULL))
			return false;
	}
	return true;
}

/* The port of a domain, which is that of its regions; SUBNET_NONE: the domain is not listed. */
static uint32_t domain_port(const struct wanted *w, const struct seen_process *p, uint32_t pdn)
{
	return note_value(w->all, p, NOTE_PD_PORT, pdn) - 1;
}

static bool regions_each(const struct wanted *w, const struct seen_process *p, resource_fn *fn,
			 void *user)
{
	struct key_block k;

	for (uint32_t n = 0; n < p->nkeys; n++) {
		if (is_region(p, p->keys[n], &k) &&
		    is_wanted(w, domain_port(w, p, k.pdn), k.key >> 8) && !fn(user, w, p, 0, &k))
			return false;
	}
	return true;
}

/* Ids of the host's programs.  One that listens at any address is at each device, as in the kernel. */
static void cm_ids_each(const struct wanted *w, resource_fn *fn, void *user)
{
	for (uint32_t i = 0; i < w->all->ncm_ids; i++) {
		const struct msg_cm_id_reply *id = &w->all->cm_ids[i];
		const bool bound = id->row != SUBNET_NONE;

		if (id->host != w->r->view->host ||
		    (bound && id->row >= w->r->view->segments.subnet.nports) ||
		    (bound ? !is_wanted(w, id->row, id->number)
			   : id->state != CM_STATE_LISTEN || (w->one && id->number != w->number)))
			continue;
		if (!fn(user, w, NULL, i, NULL))
			return;
	}
}

static void resources_each(const struct wanted *w, const struct resource_kind *kind,
			   resource_fn *fn, void *user)
{
	if (kind == &cm_id_kind) {
		cm_ids_each(w, fn, user);
		return;
	}
	for (uint32_t i = 0; i < w->all->n; i++) {
		const struct seen_process *p = &w->all->processes[i];

		if (kind == &region_kind ? !regions_each(w, p, fn, user)
					 : !objects_each(w, p, kind, fn, user))
			return;
	}
}

static void resource_answer(const struct wanted *w, const struct resource_kind *kind,
			    const struct seen_process *p, uint32_t row,
			    const struct key_block *region)
{
	if (region)
		region_answer(w, p, region);
	else if (kind == &cm_id_kind)
		cm_id_answer(w, &w->all->cm_ids[row]);
	else
		kind->answer(w, p, row);
}

/* Reads what a request asks for.  Returns 0 or a negative errno. */
static int wanted_read(const struct netlink_request *r, struct wanted *w)
{
	*w = (struct wanted){.r = r, .device = request_device(r), .row = SUBNET_NONE};
	if (!w->device)
		return -EINVAL;
	if (request_has(r, RDMA_NLDEV_ATTR_PORT_INDEX) && !request_port(r, w->device, &w->row))
		return -EINVAL;
	return 0;
}

/* kind: what is wanted, NULL: all. */
static int wanted_open(struct wanted *w, const struct resource_kind *kind)
{
	w->all = resources_open(w->r);
	/* Without the daemon there are none. */
	if (w->all && (!kind || kind == &cm_id_kind) &&
	    fabric_cm_ids(NULL, &w->all->cm_ids, &w->all->ncm_ids))
		w->all->ncm_ids = 0;
	if (w->all && objects_note(w->all))
		return 0;
	if (w->all)
		resources_close(w->all);
	return -ENOMEM;
}

/* ---- one object ---- */

struct answer_one {
	const struct resource_kind *kind;
	bool found;
};

static bool one_found(void *user, const struct wanted *w, const struct seen_process *p,
		      uint32_t row, const struct key_block *region)
{
	struct answer_one *one = user;
	const size_t begin = device_answer_begin(w->r, w->device, 0);

	resource_answer(w, one->kind, p, row, region);
	answer_end(w->r->answers, begin);
	one->found = true;
	return false;
}

static int resource_get(const struct netlink_request *r, const struct resource_kind *kind)
{
	struct answer_one one = {kind, false};
	struct wanted w;
	int ret = wanted_read(r, &w);

	if (ret)
		return ret;
	w.one = true;
	if (!request_u32(r, kind->number, &w.number) ||
	    kind->by_port != request_has(r, RDMA_NLDEV_ATTR_PORT_INDEX))
		return -EINVAL;
	ret = wanted_open(&w, kind);
	if (ret)
		return ret;
	resources_each(&w, kind, one_found, &one);
	resources_close(w.all);
	return one.found ? 0 : -ENOENT;
}

/* ---- all objects ---- */

struct answer_list {
	const struct resource_kind *kind;
	bool begun;
	size_t begin, table; /* of the message */
};

static void list_end(struct answer_list *list, struct answers *a)
{
	if (!list->begun)
		return;
	answer_nest_end(a, list->table);
	answer_end(a, list->begin);
	list->begun = false;
}

static bool list_add(void *user, const struct wanted *w, const struct seen_process *p, uint32_t row,
		     const struct key_block *region)
{
	struct answer_list *list = user;
	struct answers *a = w->r->answers;
	size_t entry;

	if (list->begun && answer_bytes(a, list->begin) > LIST_BYTES)
		list_end(list, a);
	if (!list->begun) {
		list->begin = device_answer_begin(w->r, w->device, NLM_F_MULTI);
		list->table = answer_nest(a, list->kind->table);
		list->begun = true;
	}
	entry = answer_nest(a, list->kind->entry);
	resource_answer(w, list->kind, p, row, region);
	answer_nest_end(a, entry);
	return !a->failed;
}

static int resource_dump(const struct netlink_request *r, const struct resource_kind *kind)
{
	struct answer_list list = {.kind = kind};
	struct wanted w;
	int ret = wanted_read(r, &w);

	if (!ret)
		ret = wanted_open(&w, kind);
	if (ret)
		return ret;
	resources_each(&w, kind, list_add, &list);
	list_end(&list, r->answers);
	resources_close(w.all);
	return 0;
}

#define RESOURCE(name)                                             \
	int netlink_##name##_get(const struct netlink_request *r)  \
	{                                                          \
		return resource_get(r, &name##_kind);              \
	}                                                          \
	int netlink_##name##_dump(const struct netlink_request *r) \
	{                                                          \
		return resource_dump(r, &name##_kind);             \
	}

RESOURCE(qp)
RESOURCE(cq)
RESOURCE(srq)
RESOURCE(pd)
RESOURCE(context)
RESOURCE(region)
RESOURCE(cm_id)

/* ---- how many there are ---- */

static bool count_one(void *user, const struct wanted *w, const struct seen_process *p,
		      uint32_t row, const struct key_block *region)
{
	(void)w, (void)p, (void)row, (void)region;
	++*(uint64_t *)user;
	return true;
}

static void summary_answer(const struct wanted *w, uint16_t flags)
{
	static const struct {
		const char *name;
		const struct resource_kind *kind;
	} kinds[] = {
		{"pd", &pd_kind},	{"cq", &cq_kind},     {"qp", &qp_kind},
		{"cm_id", &cm_id_kind}, {"mr", &region_kind}, {"ctx", &context_kind},
		{"srq", &srq_kind},
	};
	struct answers *a = w->r->answers;
	const size_t begin = device_answer_begin(w->r, w->device, flags);
	const size_t table = answer_nest(a, RDMA_NLDEV_ATTR_RES_SUMMARY);

	for (size_t i = 0; i < array_size(kinds); i++) {
		const size_t entry = answer_nest(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
		uint64_t n = 0;

		resources_each(w, kinds[i].kind, count_one, &n);
		answer_string(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, kinds[i].name);
		answer_u64(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, n);
		answer_nest_end(a, entry);
	}
	answer_nest_end(a, table);
	answer_end(a, begin);
}

int netlink_summary(const struct netlink_request *r)
{
	struct wanted w;
	int ret = wanted_read(r, &w);

	if (!ret)
		ret = wanted_open(&w, NULL);
	if (ret)
		return ret;
	w.row = SUBNET_NONE;
	summary_answer(&w, 0);
	resources_close(w.all);
	return 0;
}

int netlink_summary_dump(const struct netlink_request *r)
{
	struct wanted w = {.r = r, .row = SUBNET_NONE};
	int ret = wanted_open(&w, NULL);

	if (ret)
		return ret;
	for (uint32_t i = 0; (w.device = host_device(r->view, i)); i++)
		summary_answer(&w, NLM_F_MULTI);
	resources_close(w.all);
	return 0;
}
