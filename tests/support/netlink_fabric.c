// SPDX-License-Identifier: BSD-2-Clause
/* See netlink_fabric.h. */
#include "netlink_fabric.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "fabric/client/client.h"
#include "test_subnet.h"

/* The kernel's headers have it since Linux 6.12. */
#define SYS_ATTR_MONITOR_MODE 103

int __wrap_fabric_view_open(struct fabric_view *v);
void __wrap_fabric_view_close(struct fabric_view *v);
int __wrap_fabric_port_counters(uint32_t row, uint64_t totals[PORT_COUNTERS]);
int __wrap_fabric_cm_ids(const char *dir, struct msg_cm_id_reply **ids, uint32_t *n);
struct look *__wrap_look_at(const struct slot *s, int milliseconds);
void __wrap_look_free(struct look *l);

void (*netlink_look)(uint32_t program, struct look *l);
static struct fabric_view view;

int __wrap_fabric_view_open(struct fabric_view *v)
{
	*v = view;
	return 0;
}

void __wrap_fabric_view_close(struct fabric_view *v)
{
	(void)v;
}

int __wrap_fabric_port_counters(uint32_t row, uint64_t totals[PORT_COUNTERS])
{
	CHECK(row < NETLINK_PORTS);
	for (unsigned i = 0; i < PORT_COUNTERS; i++)
		totals[i] = i;
	return 0;
}

/* Connected at each device, listening everywhere, not yet bound, another host's, and of a port that is not
 * there. */
int __wrap_fabric_cm_ids(const char *dir, struct msg_cm_id_reply **ids, uint32_t *n)
{
	static const struct msg_cm_id_reply all[] = {
		{.number = 60000,
		 .row = 1,
		 .qpn = 7,
		 .qp_type = 2,
		 .state = 5,
		 .src = {2},
		 .dst = {10}},
		{.number = 60001, .row = 2, .state = 8, .src = {2}},
		{.number = 60002, .row = SUBNET_NONE, .state = 8, .src = {2}},
		{.number = 60003, .row = SUBNET_NONE},
		{.number = 60004, .row = 0, .host = 1, .state = 8},
		{.number = 60005, .row = NETLINK_PORTS, .state = 255},
	};

	CHECK(!dir);
	*ids = malloc(sizeof(all));
	CHECK(*ids);
	memcpy(*ids, all, sizeof(all));
	*n = sizeof(all) / sizeof(all[0]);
	return 0;
}

/* A look is large and nearly empty, so each program's is made once, and what was written is cleared. */
static struct look *looks[NETLINK_PROGRAMS];
#define DIRTY EXPOSE_BLOCKS
static uint32_t dirty[NETLINK_PROGRAMS][DIRTY], ndirty[NETLINK_PROGRAMS];

static void look_clean(uint32_t program)
{
	struct look *l = looks[program];

	while (ndirty[program]) {
		const uint32_t row = dirty[program][--ndirty[program]] % EXPOSE_BLOCKS;

		memset(&l->mem.objects[row], 0, sizeof(l->mem.objects[row]));
		memset(&l->objects[row], 0, sizeof(l->objects[row]));
		memset(&l->mem.keys[row], 0, sizeof(l->mem.keys[row]));
		memset(&l->mem.other_keys[row], 0, sizeof(l->mem.other_keys[row]));
	}
}

static void look_written(const struct look *l, uint32_t row)
{
	const uint32_t program = l == looks[1];

	CHECK(ndirty[program] < DIRTY);
	dirty[program][ndirty[program]++] = row;
}

struct look *__wrap_look_at(const struct slot *s, int milliseconds)
{
	const uint32_t program = (uint32_t)(s - view.segments.slots);

	CHECK(milliseconds > 0 && program < NETLINK_PROGRAMS);
	if (!looks[program])
		looks[program] = mmap(NULL, sizeof(struct look), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(looks[program] != MAP_FAILED);
	look_clean(program);
	looks[program]->copied = true;
	looks[program]->end = LOOK_DONE;
	if (netlink_look)
		netlink_look(program, looks[program]);
	return looks[program];
}

void __wrap_look_free(struct look *l)
{
	(void)l;
}

void netlink_programs(uint32_t n)
{
	for (uint32_t i = 0; i < NETLINK_PROGRAMS; i++)
		atomic_store(&view.segments.slots[i].alive, i < n);
}

void netlink_fabric_open(void)
{
	struct registry *registry = calloc(1, sizeof(*registry));
	struct slot *slots = aligned_alloc(64, REGISTRY_SLOTS * sizeof(*slots));

	CHECK(registry && slots);
	memset(slots, 0, REGISTRY_SLOTS * sizeof(*slots));
	for (uint32_t i = 0; i < NETLINK_PROGRAMS; i++) {
		slots[i].pid = getpid();
		atomic_store(&registry->slot_host_plus_1[i], 1);
	}
	test_subnet_open(&view.segments.subnet, NETLINK_PORTS);
	test_subnet_hca(&view.segments.subnet, 0, 0, 2, false);
	test_subnet_hca(&view.segments.subnet, 0, 1, 1, true);
	for (uint32_t row = 0; row < NETLINK_PORTS; row++) {
		test_subnet_gid(&view.segments.subnet, row, (uint8_t)(row + 1),
				row == 2 ? GID_ROCE_V2 : GID_IB_ROCE_V1);
		view.segments.rows[row] = row;
	}
	view.segments.nports = NETLINK_PORTS;
	view.segments.registry = registry;
	view.segments.slots = slots;
}

void netlink_object(struct look *l, uint32_t row, const struct object_about *about)
{
	look_written(l, row);
	l->mem.objects[row].about = *about;
	atomic_store(&l->mem.objects[row].serial, row + 1);
	l->objects[row].known = true;
	l->objects[row].figures[FIGURE_NUMBER] = about->number;
}

void netlink_key(struct look *l, uint32_t row, const struct key_block *key)
{
	look_written(l, row);
	l->mem.keys[row] = *key;
}

void netlink_key_note(struct look *l, uint32_t row, const struct expose_note *note)
{
	look_written(l, row);
	l->mem.other_keys[row] = *note;
}

int netlink_try(struct answers *a, const void *datagram, size_t n, bool capped)
{
	uint8_t *copy = malloc(n ? n : 1);
	int ret;

	CHECK(copy);
	memcpy(copy, datagram, n);
	ret = netlink_requests(a, copy, n, capped);
	free(copy);
	return ret;
}

void netlink_execute(struct answers *a, const void *datagram, size_t n, bool capped)
{
	CHECK(!netlink_try(a, datagram, n, capped));
}

/* ---- reading answers ---- */

static bool is_nest(uint16_t type)
{
	switch (type) {
	case RDMA_NLDEV_ATTR_RES_SUMMARY:
	case RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY:
	case RDMA_NLDEV_ATTR_RES_QP:
	case RDMA_NLDEV_ATTR_RES_QP_ENTRY:
	case RDMA_NLDEV_ATTR_RES_CQ:
	case RDMA_NLDEV_ATTR_RES_CQ_ENTRY:
	case RDMA_NLDEV_ATTR_RES_CM_ID:
	case RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY:
	case RDMA_NLDEV_ATTR_RES_MR:
	case RDMA_NLDEV_ATTR_RES_MR_ENTRY:
	case RDMA_NLDEV_ATTR_RES_PD:
	case RDMA_NLDEV_ATTR_RES_PD_ENTRY:
	case RDMA_NLDEV_ATTR_RES_CTX:
	case RDMA_NLDEV_ATTR_RES_CTX_ENTRY:
	case RDMA_NLDEV_ATTR_RES_SRQ:
	case RDMA_NLDEV_ATTR_RES_SRQ_ENTRY:
	case RDMA_NLDEV_ATTR_STAT_HWCOUNTERS:
	case RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY:
		return true;
	default:
		return false;
	}
}

/* Checks attributes to the last byte; counts those of a type. */
static unsigned attrs_walk(const uint8_t *at, size_t n, uint16_t wanted)
{
	unsigned found = 0;

	while (n) {
		const struct nlattr *attr = (const void *)at;
		const uint16_t type = attr->nla_type & NLA_TYPE_MASK;

		CHECK(n >= (size_t)NLA_HDRLEN && attr->nla_len >= NLA_HDRLEN &&
		      (size_t)NLA_ALIGN(attr->nla_len) <= n);
		CHECK_SAY(type && (type < RDMA_NLDEV_ATTR_MAX || type == SYS_ATTR_MONITOR_MODE),
			  "%u", type);
		found += type == wanted;
		if (is_nest(type))
			found += attrs_walk(at + NLA_HDRLEN, attr->nla_len - (size_t)NLA_HDRLEN,
					    wanted);
		for (size_t i = attr->nla_len; i < (size_t)NLA_ALIGN(attr->nla_len); i++)
			CHECK(!at[i]);
		at += NLA_ALIGN(attr->nla_len);
		n -= NLA_ALIGN(attr->nla_len);
	}
	return found;
}

unsigned netlink_attrs(const struct nlmsghdr *head, uint16_t type)
{
	if (head->nlmsg_type == NLMSG_ERROR || head->nlmsg_type == NLMSG_DONE)
		return 0;
	return attrs_walk((const uint8_t *)(head + 1), head->nlmsg_len - sizeof(*head), type);
}

const struct nlmsghdr *netlink_next(const struct answers *a, size_t *at)
{
	const struct nlmsghdr *head;

	CHECK(*at <= a->used && !a->failed);
	if (*at == a->used)
		return NULL;
	head = (const void *)(a->bytes + *at);
	CHECK(a->used - *at >= sizeof(*head) && head->nlmsg_len >= sizeof(*head) &&
	      (size_t)NLMSG_ALIGN(head->nlmsg_len) <= a->used - *at);
	CHECK(head->nlmsg_pid == a->portid);
	if (head->nlmsg_type == NLMSG_DONE)
		CHECK(head->nlmsg_len == sizeof(*head) + sizeof(int));
	if (head->nlmsg_type == NLMSG_ERROR)
		CHECK(head->nlmsg_len >= sizeof(*head) + sizeof(struct nlmsgerr));
	(void)netlink_attrs(head, 0);
	*at += NLMSG_ALIGN(head->nlmsg_len);
	return head;
}

void netlink_check_datagrams(const struct answers *a)
{
	size_t at = 0, n;

	while ((n = answers_datagram(a, at))) {
		const struct nlmsghdr *first = (const void *)(a->bytes + at), *head;
		const size_t end = at + n;
		unsigned messages = 0;

		CHECK(end <= a->used);
		while (at < end) {
			head = netlink_next(a, &at);
			messages++;
			CHECK(messages == 1 ||
			      (first->nlmsg_flags & head->nlmsg_flags & NLM_F_MULTI &&
			       first->nlmsg_seq == head->nlmsg_seq));
		}
		CHECK(at == end && (messages == 1 || n <= ANSWER_DATAGRAM_BYTES));
	}
	CHECK(at == a->used);
}
