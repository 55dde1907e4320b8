// SPDX-License-Identifier: BSD-2-Clause
/* The subnet's block: layout, look-ups, collisions, the epoch, and readers beside the writer. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "test_subnet.h"

#define MANY 2000u

static union ib_gid gid_of(uint32_t n)
{
	union ib_gid gid = {.raw = {0xfe, 0x80}};

	gid.word[3] = n;
	return gid;
}

static int set_owner(struct subnet *s, uint32_t row, uint32_t index, uint32_t n, uint32_t *owner)
{
	const struct subnet_gid_entry entry = {gid_of(n), GID_ROCE_V2};

	return subnet_set_gid(s, row, index, &entry, owner);
}

/* Who maps the block sees what its maker sees; what is cut short or foreign is refused. */
static void test_attach(void)
{
	struct subnet_head damaged;
	struct subnet s, other;

	test_subnet_open(&s, 3);
	test_subnet_port(&s, 0, 0, false);
	test_subnet_lid(&s, 0, 9);
	CHECK(!subnet_attach(&other, s.head, s.head->bytes));
	CHECK(other.nports == 3 && other.nnodes == 3 && other.ngids == 3 * SUBNET_BED_GIDS);
	CHECK(subnet_port_by_lid(&other, 9) == 0);
	CHECK(!strcmp(subnet_node_of(&other, 0)->name, "mlx5_0"));

	CHECK(subnet_attach(&other, s.head, sizeof(*s.head) - 1) == -EBADMSG);
	CHECK(subnet_attach(&other, s.head, s.head->bytes - 64) == -EBADMSG);
	damaged = *s.head;
	s.head->version++;
	CHECK(subnet_attach(&other, s.head, s.head->bytes) == -EPROTO);
	*s.head = damaged;
	s.head->table[SUBNET_TABLE_PORTS].stride += 8;
	CHECK(subnet_attach(&other, s.head, s.head->bytes) == -EBADMSG);
	*s.head = damaged;
	s.head->table[SUBNET_TABLE_GID_INDEX].count--;
	CHECK(subnet_attach(&other, s.head, s.head->bytes) == -EBADMSG);
	*s.head = damaged;
	s.head->magic = 0;
	CHECK(subnet_attach(&other, s.head, s.head->bytes) == -EBADMSG);
	*s.head = damaged;
	test_subnet_close(&s);
}

/* A node needs room for itself, its ports and their GIDs; one that finds none takes nothing. */
static void test_rows(void)
{
	const struct subnet_shape shape = {2, 4, 6};
	struct subnet_node node = {.kind = SUBNET_HCA, .nports = 3};
	struct subnet s;
	void *p = aligned_alloc(4096, align_up(subnet_bytes(&shape), 4096));

	CHECK(p);
	memset(p, 0, subnet_bytes(&shape));
	subnet_format(&s, p, &shape);
	CHECK(subnet_add_node(&s, &node, false, 3) == -ENOSPC);
	CHECK(subnet_add_node(&s, &node, false, 2) == 0);
	CHECK(s.nports == 3 && s.ngids == 6);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(s.ports[i].number == i + 1 && s.ports[i].node == 0);
		CHECK(s.ports[i].first_gid == 2 * i && s.gids[2 * i + 1].port == i);
	}
	CHECK(subnet_add_node(&s, &node, false, 0) == -ENOSPC);
	node.nports = 1;
	CHECK(subnet_add_node(&s, &node, true, 0) == 1 && s.nodes[1].first_port == 3);
	CHECK(subnet_add_node(&s, &node, true, 0) == -ENOSPC && s.nports == 4);
	free(p);
}

static void test_lids(void)
{
	struct subnet s;
	uint32_t owner = 99;

	test_subnet_open(&s, 3);
	for (uint32_t i = 0; i < 3; i++)
		test_subnet_port(&s, i, 0, false);
	CHECK(subnet_port_by_lid(&s, 0) == SUBNET_NONE && subnet_port_by_lid(&s, 1) == SUBNET_NONE);
	CHECK(subnet_port_by_lid(&s, 0xc000) == SUBNET_NONE);
	CHECK(subnet_port_by_lid(&s, 0xffff) == SUBNET_NONE);
	CHECK(!subnet_set_lid(&s, 2, 0xbfff, 0, &owner) && subnet_port_by_lid(&s, 0xbfff) == 2);
	CHECK(subnet_set_lid(&s, 1, 0xc000, 0, &owner) == -EINVAL);
	CHECK(subnet_set_lid(&s, 1, 0xbfff, 0, &owner) == -EADDRINUSE && owner == 2);
	CHECK(atomic_load(&s.ports[1].lid) == 0);

	/* With a mask, a port has all LIDs that differ in the masked bits. */
	CHECK(subnet_set_lid(&s, 0, 6, 2, &owner) == -EINVAL);
	CHECK(subnet_set_lid(&s, 0, 8, SUBNET_MAX_LMC + 1, &owner) == -EINVAL);
	CHECK(!subnet_set_lid(&s, 0, 8, 2, &owner));
	for (uint16_t lid = 7; lid <= 12; lid++)
		CHECK(subnet_port_by_lid(&s, lid) == (lid < 8 || lid > 11 ? SUBNET_NONE : 0));
	CHECK(subnet_set_lid(&s, 1, 11, 0, &owner) == -EADDRINUSE && owner == 0);
	CHECK(subnet_set_lid(&s, 2, 8, 3, &owner) == -EADDRINUSE && owner == 0);
	/* It may keep some of its own. */
	CHECK(!subnet_set_lid(&s, 0, 10, 1, &owner));
	CHECK(subnet_port_by_lid(&s, 9) == SUBNET_NONE && subnet_port_by_lid(&s, 11) == 0);
	CHECK(!subnet_set_lid(&s, 0, 0, 0, &owner) && subnet_port_by_lid(&s, 10) == SUBNET_NONE);
	test_subnet_close(&s);
}

/* A subnet manager gives a LID to several: the last has it, and who stays when others go. */
static void test_contested_lids(void)
{
	struct subnet s;

	test_subnet_open(&s, 3);
	for (uint32_t i = 0; i < 3; i++)
		test_subnet_port(&s, i, 0, false);
	CHECK(!subnet_claim_lid(&s, 0, 4, 1) && !subnet_lid_contested(&s, 5));
	CHECK(!subnet_claim_lid(&s, 1, 5, 0) && subnet_port_by_lid(&s, 5) == 1);
	CHECK(subnet_lid_contested(&s, 5) && !subnet_lid_contested(&s, 4));
	CHECK(!subnet_claim_lid(&s, 2, 5, 0) && subnet_port_by_lid(&s, 5) == 2);
	CHECK(!subnet_claim_lid(&s, 2, 7, 0) && subnet_lid_contested(&s, 5));
	CHECK(subnet_port_by_lid(&s, 5) <= 1 && subnet_port_by_lid(&s, 7) == 2);
	CHECK(!subnet_claim_lid(&s, 0, 0, 0));
	CHECK(subnet_port_by_lid(&s, 5) == 1 && !subnet_lid_contested(&s, 5));
	CHECK(subnet_port_by_lid(&s, 4) == SUBNET_NONE);
	test_subnet_close(&s);
}

static void test_gids(void)
{
	struct subnet_gid_entry entry;
	union ib_gid gid = gid_of(1);
	struct subnet s;
	uint32_t owner;

	test_subnet_open(&s, 2);
	test_subnet_port(&s, 0, 0, false);
	test_subnet_port(&s, 1, 0, true);
	CHECK(subnet_port_by_gid(&s, &gid) == SUBNET_NONE && !subnet_gid(&s, 0, 0, &entry));
	CHECK(!set_owner(&s, 0, 3, 1, &owner) && subnet_port_by_gid(&s, &gid) == 0);
	CHECK(subnet_gid(&s, 0, 3, &entry) && entry.type == GID_ROCE_V2);
	CHECK(!memcmp(&entry.gid, &gid, sizeof(gid)));
	CHECK(set_owner(&s, 1, 0, 1, &owner) == -EADDRINUSE && owner == 0);
	CHECK(!subnet_gid(&s, 1, 0, &entry));
	CHECK(set_owner(&s, 0, SUBNET_BED_GIDS, 2, &owner) == -ERANGE);
	CHECK(!subnet_gid(&s, 0, SUBNET_BED_GIDS, &entry) &&
	      !subnet_gid(&s, 0, UINT32_MAX, &entry));

	/* The same port may have it twice, as RoCE v1 and v2; it is found until both are gone. */
	CHECK(!set_owner(&s, 0, 4, 1, &owner));
	CHECK(!subnet_set_gid(&s, 0, 3, NULL, &owner) && subnet_port_by_gid(&s, &gid) == 0);
	CHECK(!subnet_set_gid(&s, 0, 4, NULL, &owner));
	CHECK(subnet_port_by_gid(&s, &gid) == SUBNET_NONE && !subnet_gid(&s, 0, 4, &entry));
	CHECK(!set_owner(&s, 1, 0, 1, &owner) && subnet_port_by_gid(&s, &gid) == 1);
	test_subnet_close(&s);
}

/* Entries that come and go leave the index such that all others are found, and the search ends. */
static void test_churn(void)
{
	uint32_t held[MANY], next = 1, owner;
	union ib_gid gid;
	struct subnet s;

	test_subnet_open(&s, MANY);
	for (uint32_t row = 0; row < MANY; row++) {
		test_subnet_port(&s, row, 0, false);
		held[row] = next++;
		CHECK(!set_owner(&s, row, 0, held[row], &owner));
	}
	for (uint32_t round = 0; round < 20; round++)
		for (uint32_t row = round % 3; row < MANY; row += 1 + round % 7) {
			gid = gid_of(held[row]);
			held[row] = next++;
			CHECK(!set_owner(&s, row, 0, held[row], &owner));
			CHECK(subnet_port_by_gid(&s, &gid) == SUBNET_NONE);
		}
	for (uint32_t row = 0; row < MANY; row++) {
		gid = gid_of(held[row]);
		CHECK(subnet_port_by_gid(&s, &gid) == row);
	}
	test_subnet_close(&s);
}

/* It rises with each change of contents, and only then. */
static void test_epoch(void)
{
	uint64_t at, owner_at;
	struct subnet s;
	uint32_t owner;

	test_subnet_open(&s, 2);
	test_subnet_port(&s, 0, 0, false);
	test_subnet_port(&s, 1, 0, false);
	at = subnet_epoch(&s);
	CHECK(at && !subnet_set_state(&s, 0, IB_PORT_ACTIVE) && subnet_epoch(&s) == at);
	CHECK(subnet_set_state(&s, 0, IB_PORT_DOWN) && subnet_epoch(&s) == ++at);
	CHECK(!subnet_set_lid(&s, 0, 4, 1, &owner) && subnet_epoch(&s) == ++at);
	CHECK(!subnet_set_lid(&s, 0, 4, 1, &owner) && subnet_epoch(&s) == at);
	CHECK(subnet_set_lid(&s, 1, 5, 0, &owner) && subnet_epoch(&s) == at);
	CHECK(!set_owner(&s, 0, 1, 7, &owner) && subnet_epoch(&s) == ++at);
	CHECK(!set_owner(&s, 0, 1, 7, &owner) && subnet_epoch(&s) == at);
	CHECK(set_owner(&s, 1, 1, 7, &owner) && subnet_epoch(&s) == at);
	CHECK(!subnet_set_gid(&s, 0, 1, NULL, &owner) && subnet_epoch(&s) == ++at);
	CHECK(!subnet_set_gid(&s, 0, 1, NULL, &owner) && subnet_epoch(&s) == at);
	subnet_raise_epoch(&s);
	owner_at = subnet_epoch(&s);
	CHECK(owner_at == at + 1);
	test_subnet_close(&s);
}

static void test_walk(void)
{
	struct subnet s;

	test_subnet_open(&s, 2);
	test_subnet_port(&s, 0, 0, false);
	test_subnet_port(&s, 1, 0, false);
	CHECK(subnet_walk(&s, 0, 1) && subnet_walk(&s, 1, 1));
	CHECK(!subnet_walk(&s, 0, 2) && !subnet_walk(&s, SUBNET_NONE, 1));
	subnet_set_state(&s, 0, IB_PORT_INIT);
	CHECK(!subnet_walk(&s, 0, 1) && !subnet_walk(&s, 1, 0) && subnet_walk(&s, 1, 1));
	/* nothing is carried to nodes that are no HCA, nor from them */
	subnet_set_state(&s, 0, IB_PORT_ACTIVE);
	CHECK(subnet_walk(&s, 0, 1));
	for (uint32_t kind = SUBNET_SWITCH; kind <= SUBNET_REMOTE + 1; kind++) {
		s.nodes[s.ports[1].node].kind = kind;
		CHECK(!subnet_walk(&s, 0, 1) && !subnet_walk(&s, 1, 0) && !subnet_walk(&s, 1, 1));
	}
	CHECK(subnet_walk(&s, 0, 0));
	test_subnet_close(&s);
}

static atomic_bool stop;

/* Both halves of each GID that is ever written are alike: a torn one would show. */
static void *reader_loop(void *arg)
{
	const struct subnet *s = arg;
	struct subnet_gid_entry entry;
	uint64_t seen = 0;

	while (!atomic_load(&stop)) {
		if (subnet_gid(s, 0, 0, &entry)) {
			CHECK(entry.gid.half[0] == entry.gid.half[1]);
			seen++;
		}
		entry.gid.half[0] = entry.gid.half[1] = 5;
		CHECK(subnet_port_by_gid(s, &entry.gid) == 1);
	}
	return (void *)(uintptr_t)seen;
}

static void beside_writer(void)
{
	struct subnet_gid_entry entry = {.type = GID_IB_ROCE_V1};
	pthread_t thread;
	struct subnet s;
	uint32_t owner;

	test_subnet_open(&s, 2);
	test_subnet_port(&s, 0, 0, false);
	test_subnet_port(&s, 1, 0, false);
	entry.gid.half[0] = entry.gid.half[1] = 5;
	CHECK(!subnet_set_gid(&s, 1, 0, &entry, &owner));
	CHECK(!pthread_create(&thread, NULL, reader_loop, &s));
	for (uint64_t i = 10; i < 100000; i++) {
		entry.gid.half[0] = entry.gid.half[1] = i;
		CHECK(!subnet_set_gid(&s, 0, 0, i % 16 ? &entry : NULL, &owner));
	}
	atomic_store(&stop, true);
	CHECK(!pthread_join(thread, NULL));
	test_subnet_close(&s);
}

int main(void)
{
	test_attach();
	test_rows();
	test_lids();
	test_contested_lids();
	test_gids();
	test_churn();
	test_epoch();
	test_walk();
	beside_writer();
	return 0;
}
