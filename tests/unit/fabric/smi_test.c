// SPDX-License-Identifier: BSD-2-Clause
/* Hop pointers of directed routes, rule by rule (IBTA 14.2.2, and what the kernel makes of it). */
#include <string.h>

#include "check.h"
#include "fabric/smi.h"

#define NO 0xffffu /* a LID: that part of the route is empty */

/* A path of three hops out of ports 1, 5 and 6; it came into ports 4, 7 and 2. */
struct rule {
	const char *text;
	bool receive, is_switch, back;
	uint8_t hop, hops;
	uint32_t slid, dlid;
	uint8_t port; /* own, or where it came in */
	enum smi_way way;
	uint8_t hop_then, port_then;
};

static const struct rule rules[] = {
	/* text, receive, switch, back, hop, hops, DrSLID, DrDLID, port, way, hop, port */
	{"first hop", 0, 0, 0, 0, 3, NO, NO, 1, SMI_OUT, 1, 1},
	{"first hop by another port", 0, 0, 0, 0, 3, NO, NO, 2, SMI_DISCARD, 1, 0},
	{"first hop of a switch", 0, 1, 0, 0, 3, NO, NO, 0, SMI_OUT, 1, 1},
	{"no hops", 0, 0, 0, 0, 0, NO, NO, 1, SMI_LOCAL, 1, 0},
	{"no hops, on by LID", 0, 0, 0, 0, 0, NO, 9, 1, SMI_DISCARD, 1, 0},
	{"no hops of a switch", 0, 1, 0, 0, 0, NO, NO, 0, SMI_LOCAL, 1, 0},
	{"amid the path", 0, 0, 0, 1, 3, NO, NO, 1, SMI_DISCARD, 1, 0},
	{"amid the path at a switch", 0, 1, 0, 1, 3, NO, NO, 0, SMI_OUT, 2, 5},
	{"at the end of the path", 0, 0, 0, 3, 3, NO, NO, 1, SMI_LOCAL, 4, 0},
	{"behind the path", 0, 0, 0, 4, 3, NO, NO, 1, SMI_LOCAL, 4, 0},
	{"far behind the path", 0, 0, 0, 5, 3, NO, NO, 1, SMI_DISCARD, 5, 0},
	{"too many hops", 0, 0, 0, 0, 64, NO, NO, 1, SMI_DISCARD, 0, 0},
	{"too many hops back", 0, 0, 1, 65, 64, NO, NO, 1, SMI_DISCARD, 65, 0},
	{"by LID first", 0, 0, 0, 0, 3, 7, NO, 1, SMI_BY_LID, 0, 0},
	{"by LID first, any hop", 0, 0, 0, 9, 3, 7, NO, 1, SMI_BY_LID, 9, 0},
	{"answer", 0, 0, 1, 4, 3, NO, NO, 2, SMI_OUT, 3, 2},
	{"answer by another port", 0, 0, 1, 4, 3, NO, NO, 1, SMI_DISCARD, 3, 0},
	{"answer of a switch", 0, 1, 1, 4, 3, NO, NO, 0, SMI_OUT, 3, 2},
	{"answer amid the path", 0, 0, 1, 3, 3, NO, NO, 7, SMI_DISCARD, 3, 0},
	{"answer amid the path at a switch", 0, 1, 1, 3, 3, NO, NO, 0, SMI_OUT, 2, 7},
	{"answer at home", 0, 0, 1, 1, 0, NO, NO, 1, SMI_LOCAL, 0, 0},
	{"answer at home, on by LID", 0, 0, 1, 1, 0, 7, NO, 1, SMI_DISCARD, 0, 0},
	{"answer with hop 0", 0, 0, 1, 0, 3, NO, NO, 1, SMI_LOCAL, 0, 0},
	{"answer far behind", 0, 0, 1, 5, 3, NO, NO, 1, SMI_DISCARD, 5, 0},
	{"answer by LID first", 0, 0, 1, 4, 3, NO, 9, 1, SMI_BY_LID, 4, 0},

	{"came in amid the path", 1, 1, 0, 1, 3, NO, NO, 4, SMI_OUT, 2, 5},
	{"came in at a CA", 1, 0, 0, 1, 3, NO, NO, 1, SMI_DISCARD, 1, 0},
	{"came in without a hop", 1, 1, 0, 0, 3, NO, NO, 4, SMI_DISCARD, 0, 0},
	{"came in by LID to the route", 1, 1, 0, 0, 3, 7, NO, 4, SMI_OUT, 1, 1},
	{"came in by LID to a CA", 1, 0, 0, 0, 3, 7, NO, 1, SMI_DISCARD, 0, 0},
	{"came in at the end", 1, 0, 0, 3, 3, NO, NO, 2, SMI_LOCAL, 4, 0},
	{"came in at the end of nothing", 1, 0, 0, 0, 0, NO, NO, 2, SMI_LOCAL, 1, 0},
	{"came in at the end, on by LID", 1, 1, 0, 3, 3, NO, 9, 2, SMI_BY_LID, 4, 0},
	{"came in at the end, on by LID at a CA", 1, 0, 0, 3, 3, NO, 9, 2, SMI_DISCARD, 4, 0},
	{"came in behind the end", 1, 0, 0, 4, 3, NO, 9, 2, SMI_LOCAL, 4, 0},
	{"came in far behind", 1, 0, 0, 5, 3, NO, NO, 2, SMI_DISCARD, 5, 0},
	{"came in with too many hops", 1, 1, 0, 1, 64, NO, NO, 2, SMI_DISCARD, 1, 0},
	{"answer came in", 1, 1, 1, 3, 3, NO, NO, 6, SMI_OUT, 2, 7},
	{"answer came in at a CA", 1, 0, 1, 3, 3, NO, NO, 1, SMI_DISCARD, 3, 0},
	{"answer came in by LID", 1, 1, 1, 4, 3, NO, 9, 6, SMI_OUT, 3, 2},
	{"answer came in behind the end", 1, 1, 1, 4, 3, NO, NO, 6, SMI_DISCARD, 4, 0},
	{"answer came home", 1, 0, 1, 1, 3, NO, NO, 1, SMI_LOCAL, 0, 0},
	{"answer came home, on by LID", 1, 1, 1, 1, 3, 7, NO, 1, SMI_BY_LID, 0, 0},
	{"answer came home, on by LID at a CA", 1, 0, 1, 1, 3, 7, NO, 1, SMI_DISCARD, 0, 0},
	{"answer came by LID", 1, 0, 1, 0, 3, 7, NO, 1, SMI_LOCAL, 0, 0},
	{"answer came in far behind", 1, 1, 1, 5, 3, NO, NO, 1, SMI_DISCARD, 5, 0},
};

static void make(const struct rule *r, uint8_t mad[MAD_BYTES])
{
	static const uint8_t initial[] = {0, 1, 5, 6}, back[] = {0, 4, 7, 2};

	memset(mad, 0, MAD_BYTES);
	mad[MAD_AT_CLASS] = MAD_CLASS_SMP_DIRECTED;
	mad_put16(mad, MAD_AT_STATUS, r->back ? MAD_STATUS_DIRECTION : 0);
	mad[MAD_AT_HOP_POINTER] = r->hop;
	mad[MAD_AT_HOP_COUNT] = r->hops;
	mad_put16(mad, MAD_AT_DR_SLID, r->slid);
	mad_put16(mad, MAD_AT_DR_DLID, r->dlid);
	memcpy(&mad[MAD_AT_DR_INITIAL], initial, sizeof(initial));
	memcpy(&mad[MAD_AT_DR_RETURN], back, sizeof(back));
}

static void check_rule(const struct rule *r)
{
	uint8_t mad[MAD_BYTES], port = 0;
	enum smi_way way;

	make(r, mad);
	if (r->receive)
		way = smi_receive(mad, r->is_switch, r->port, 8, &port);
	else
		way = smi_send(mad, r->is_switch, r->port, &port);
	if (way != r->way || mad[MAD_AT_HOP_POINTER] != r->hop_then ||
	    (way == SMI_OUT && port != r->port_then))
		printf("%s: way %d hop %u port %u\n", r->text, way, mad[MAD_AT_HOP_POINTER], port);
	CHECK(way == r->way);
	CHECK(way == SMI_DISCARD || mad[MAD_AT_HOP_POINTER] == r->hop_then);
	CHECK(way != SMI_OUT || port == r->port_then);
}

/* A request's way back is written where it comes in. */
static void test_return_path(void)
{
	const struct rule amid = {.hop = 1, .hops = 3, .slid = NO, .dlid = NO};
	uint8_t mad[MAD_BYTES], port;

	make(&amid, mad);
	CHECK(smi_receive(mad, true, 8, 8, &port) == SMI_OUT);
	CHECK(mad[MAD_AT_DR_RETURN + 1] == 8);
	CHECK(mad[MAD_AT_DR_RETURN + 2] == 7);
	mad[MAD_AT_HOP_POINTER] = 3;
	CHECK(smi_receive(mad, false, 1, 1, &port) == SMI_LOCAL);
	CHECK(mad[MAD_AT_DR_RETURN + 3] == 1);
}

/* A path that names a port that the node does not have. */
static void test_no_such_port(void)
{
	const struct rule amid = {.hop = 1, .hops = 3, .slid = NO, .dlid = NO};
	uint8_t mad[MAD_BYTES], port;

	make(&amid, mad);
	CHECK(smi_receive(mad, true, 8, 4, &port) == SMI_DISCARD);
	make(&amid, mad);
	mad[MAD_AT_DR_INITIAL + 2] = 0;
	CHECK(smi_receive(mad, true, 8, 8, &port) == SMI_DISCARD);
}

/* Whatever stands in the pointers: no access behind the paths. */
static void test_all_pointers(void)
{
	for (uint32_t i = 0; i < 1u << 21; i++) {
		struct rule r = {.is_switch = i & 1,
				 .receive = i >> 1 & 1,
				 .back = i >> 2 & 1,
				 .slid = i >> 3 & 1 ? NO : 7,
				 .dlid = i >> 4 & 1 ? NO : 9,
				 .hop = (uint8_t)(i >> 5),
				 .hops = (uint8_t)(i >> 13)};
		uint8_t bytes[MAD_BYTES + 1], port;

		make(&r, bytes);
		bytes[MAD_BYTES] = 0xa5;
		if (r.receive)
			(void)!smi_receive(bytes, r.is_switch, 1, 8, &port);
		else
			(void)!smi_send(bytes, r.is_switch, 1, &port);
		CHECK(bytes[MAD_BYTES] == 0xa5);
		CHECK(mad_get16(bytes, MAD_AT_DR_DLID) == r.dlid);
	}
}

int main(void)
{
	for (uint32_t i = 0; i < array_size(rules); i++)
		check_rule(&rules[i]);
	test_return_path();
	test_no_such_port();
	test_all_pointers();
	return 0;
}
