// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rules of verbs (ibv_create_flow(3)) that look behind the outer headers, and rules for sent frames: which
 * frames they take, and what is refused.  One row per case: outcome, name, reason.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "raw_end.h"

#define FRAME	   120u
#define SILENCE_MS 30u
#define SPECS_MAX  256u

enum { VXLAN, OTHER_VNI, GRE, ESP, MPLS, MPLS_UDP, FRAMES };

#define ETHERNET(type)	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, (type) >> 8, (type)&0xff
#define IPV4(n, proto)	0x45, 0, 0, n, 0, 0, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2
#define UDP(port, n)	0x30, 0x39, (port) >> 8, (port)&0xff, 0, n, 0, 0
#define INNER_FRAME(to) 2, 0, 0, 0, 1, to, 2, 0, 0, 0, 1, 9, 0x88, 0xb5

static const uint8_t frames[FRAMES][FRAME] = {
	[VXLAN] = {ETHERNET(0x0800), IPV4(106, 17), UDP(4789, 86), 8, 0, 0, 0, 0, 0, 42, 0,
		   INNER_FRAME(3)},
	[OTHER_VNI] = {ETHERNET(0x0800), IPV4(106, 17), UDP(4789, 86), 8, 0, 0, 0, 0, 0, 43, 0,
		       INNER_FRAME(4)},
	[GRE] = {ETHERNET(0x0800), IPV4(106, 47), 0x20, 0, 0x65, 0x58, 0, 0, 1, 7, INNER_FRAME(3)},
	[ESP] = {ETHERNET(0x0800), IPV4(106, 50), 0, 0, 0x12, 0x34, 0, 0, 0, 1},
	[MPLS] = {ETHERNET(0x8847), 0, 1, 0x01, 64},
	[MPLS_UDP] = {ETHERNET(0x0800), IPV4(106, 17), UDP(6635, 86), 0, 2, 0x01, 64},
};

#define ON(frame) (1u << (frame))
#define ALL	  (ON(FRAMES) - 1)

/* The attribute and the specifications behind it. */
struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[SPECS_MAX];
};

static struct raw_end tx, rx;

static void rule_begin(struct rule *r, uint32_t flags)
{
	*r = (struct rule){.attr = {.type = IBV_FLOW_ATTR_NORMAL,
				    .size = sizeof(r->attr),
				    .port = 1,
				    .flags = flags}};
}

static void rule_add(struct rule *r, const void *spec, size_t bytes)
{
	memcpy((uint8_t *)r + r->attr.size, spec, bytes);
	r->attr.size = (uint16_t)(r->attr.size + bytes);
	r->attr.num_of_specs++;
}

static void add_vxlan(struct rule *r, uint32_t vni, uint32_t mask)
{
	struct ibv_flow_spec_tunnel s = {.type = IBV_FLOW_SPEC_VXLAN_TUNNEL, .size = sizeof(s)};

	s.val.tunnel_id = htonl(vni);
	s.mask.tunnel_id = htonl(mask);
	rule_add(r, &s, sizeof(s));
}

static void add_eth(struct rule *r, uint32_t inner, uint8_t last)
{
	struct ibv_flow_spec_eth s = {.type = IBV_FLOW_SPEC_ETH | inner,
				      .size = sizeof(s),
				      .val.dst_mac[5] = last,
				      .mask.dst_mac[5] = 0xff};

	rule_add(r, &s, sizeof(s));
}

static void add_udp(struct rule *r, uint16_t port)
{
	struct ibv_flow_spec_tcp_udp s = {.type = IBV_FLOW_SPEC_UDP, .size = sizeof(s)};

	s.val.dst_port = htons(port);
	s.mask.dst_port = 0xffff;
	rule_add(r, &s, sizeof(s));
}

static void add_gre(struct rule *r, uint32_t key, uint16_t flags)
{
	struct ibv_flow_spec_gre s = {.type = IBV_FLOW_SPEC_GRE, .size = sizeof(s)};

	s.val.protocol = htons(0x6558);
	s.mask.protocol = 0xffff;
	s.val.key = htonl(key);
	s.mask.key = 0xffffffff;
	s.mask.c_ks_res0_ver = flags;
	rule_add(r, &s, sizeof(s));
}

static void add_esp(struct rule *r, uint32_t spi)
{
	struct ibv_flow_spec_esp s = {.type = IBV_FLOW_SPEC_ESP, .size = sizeof(s)};

	s.val.spi = htonl(spi);
	s.mask.spi = 0xffffffff;
	rule_add(r, &s, sizeof(s));
}

static void add_mpls(struct rule *r, uint32_t label)
{
	struct ibv_flow_spec_mpls s = {.type = IBV_FLOW_SPEC_MPLS, .size = sizeof(s)};

	s.val.label = htonl(label << 12);
	s.mask.label = htonl(0xfffff000);
	rule_add(r, &s, sizeof(s));
}

static void add_action(struct rule *r, enum ibv_flow_spec_type type)
{
	struct ibv_flow_spec_action_drop s = {.type = type, .size = sizeof(s)};

	rule_add(r, &s, sizeof(s));
}

/* Which of the frames arrive? */
static unsigned send_all(void)
{
	unsigned arrived = 0;

	for (unsigned i = 0; i < FRAMES; i++) {
		memcpy(tx.frame, frames[i], FRAME);
		raw_end_send(&tx, FRAME);
		if (raw_end_arrived(&rx, SILENCE_MS)) {
			arrived |= ON(i);
			NEED(!memcmp(rx.frame, frames[i], FRAME));
			raw_end_receive(&rx);
		}
	}
	return arrived;
}

static void takes(const char *name, struct rule *r, unsigned wanted)
{
	struct ibv_flow *f = ibv_create_flow(rx.qp, &r->attr);
	unsigned got = f ? send_all() : ~wanted;

	raw_row(name, got == wanted);
	if (f)
		NEED(!ibv_destroy_flow(f));
}

static void refused(const char *name, struct rule *r, int error)
{
	struct ibv_flow *f;

	errno = 0;
	f = ibv_create_flow(rx.qp, &r->attr);
	raw_row(name, !f && errno == error);
	if (f)
		NEED(!ibv_destroy_flow(f));
}

static void tunnels(void)
{
	struct rule r;

	rule_begin(&r, 0);
	add_vxlan(&r, 42, 0xffffff);
	takes("a network of VXLAN", &r, ON(VXLAN));
	rule_begin(&r, 0);
	add_udp(&r, 4789);
	add_vxlan(&r, 0x20, 0x20);
	takes("a part of its number", &r, ON(VXLAN) | ON(OTHER_VNI));
	rule_begin(&r, 0);
	add_eth(&r, IBV_FLOW_SPEC_INNER, 3);
	takes("an address in a tunnel, of whatever kind", &r, ON(VXLAN) | ON(GRE));
	rule_begin(&r, 0);
	add_udp(&r, 4789);
	add_eth(&r, IBV_FLOW_SPEC_INNER, 4);
	takes("a port outside, an address inside", &r, ON(OTHER_VNI));
	rule_begin(&r, 0);
	add_gre(&r, 0x107, 0);
	takes("GRE by its key", &r, ON(GRE));
	rule_begin(&r, 0);
	add_gre(&r, 0x108, 0);
	takes("GRE by another key", &r, 0);
	rule_begin(&r, 0);
	add_esp(&r, 0x1234);
	takes("ESP by its SPI", &r, ON(ESP));
	rule_begin(&r, 0);
	add_mpls(&r, 0x10);
	takes("a label", &r, ON(MPLS));
	rule_begin(&r, 0);
	add_udp(&r, 6635);
	add_mpls(&r, 0x20);
	takes("a label in UDP", &r, ON(MPLS_UDP));
	rule_begin(&r, 0);
	add_udp(&r, 6635);
	add_mpls(&r, 0x10);
	takes("another label in UDP", &r, 0);
}

static void refusals(void)
{
	struct rule r;

	rule_begin(&r, 0);
	add_vxlan(&r, 1 << 24, 0xffffff);
	refused("a network's number of 25 bits", &r, EINVAL);
	rule_begin(&r, 0);
	add_gre(&r, 1, 0xffff);
	refused("GRE's flags", &r, EOPNOTSUPP);
	rule_begin(&r, 0);
	add_udp(&r, 1);
	add_gre(&r, 1, 0);
	refused("GRE and UDP", &r, EINVAL);
	rule_begin(&r, IBV_FLOW_ATTR_FLAGS_EGRESS);
	r.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
	refused("a default rule for sent frames", &r, EINVAL);
}

/* Rules for sent frames let them pass or drop them. */
static void sent_frames(void)
{
	struct ibv_flow_attr all = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(all), .port = 1};
	struct ibv_flow *everything, *pass, *drop;
	struct rule r;

	NEED((everything = ibv_create_flow(rx.qp, &all)));
	rule_begin(&r, IBV_FLOW_ATTR_FLAGS_EGRESS);
	r.attr.priority = 1;
	add_udp(&r, 4789);
	add_action(&r, IBV_FLOW_SPEC_ACTION_DROP);
	drop = ibv_create_flow(tx.qp, &r.attr);
	raw_row("sent frames are dropped",
		drop && send_all() == (ALL & ~(ON(VXLAN) | ON(OTHER_VNI))));
	rule_begin(&r, IBV_FLOW_ATTR_FLAGS_EGRESS);
	add_vxlan(&r, 42, 0xffffff);
	pass = ibv_create_flow(tx.qp, &r.attr);
	raw_row("but those that a rule before lets pass",
		pass && send_all() == (ALL & ~ON(OTHER_VNI)));
	if (pass)
		NEED(!ibv_destroy_flow(pass));
	if (drop)
		NEED(!ibv_destroy_flow(drop));
	raw_row("without rules all go", send_all() == ALL);
	NEED(!ibv_destroy_flow(everything));
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_1";

	setvbuf(stdout, NULL, _IOLBF, 0);
	raw_end_open(&tx, device);
	raw_end_open(&rx, device);
	raw_end_receive(&rx);
	tunnels();
	refusals();
	sent_frames();
	raw_end_close(&rx);
	raw_end_close(&tx);
	return raw_row_failed;
}
