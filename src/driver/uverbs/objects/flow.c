// SPDX-License-Identifier: BSD-2-Clause
/* Steering rules of verbs, and the counters objects that they count into. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"
#include "usermem/usermem.h"

/* ---- counters objects ---- */

/*
 * Counters objects (ibv_create_counters(3)) as mlx5_ib implements them: a set of flow counters,
 * which count packets and bytes of the steering rules that it is attached to.  The first rule says
 * which value goes to which place of the program's array; later rules share that.
 */

/* enum mlx5_ib_flow_counters of the kernel; in no UAPI header. */
enum { COUNT_PACKETS, COUNT_BYTES, COUNTS };

#define POINTS_MAX (UINT16_MAX / 8u) /* limited by an attribute's length */

struct ucounters {
	struct uobj uobj;
	struct flow_counter *counter;
	uint32_t places; /* places of the array; 0: no rule is attached yet */
	uint32_t npoints;
	struct mlx5_ib_flow_counters_desc *points;
};

static void ucounters_free(struct uobj *obj)
{
	struct ucounters *c = container_of(obj, struct ucounters, uobj);

	flow_counter_destroy(c->counter);
	free(c->points);
}

static const struct uobj_class ucounters_class = {
	.type = UOBJ_COUNTERS,
	.free = ucounters_free,
};

static int method_counters_create(struct ureq *req)
{
	struct ucounters *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	ret = flow_counter_create(&c->counter);
	if (ret == 0)
		ret = uobj_publish(req->file, &c->uobj, &ucounters_class);
	if (ret < 0) {
		if (c->counter)
			flow_counter_destroy(c->counter);
		free(c);
		return ret;
	}
	ret = ureq_put_handle(req, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, c->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&c->uobj, NULL);
	return ret;
}

static struct flow_counter *ucounters_counter(struct uobj *obj)
{
	return container_of(obj, struct ucounters, uobj)->counter;
}

static int check_points(const struct mlx5_ib_flow_counters_desc *points, uint32_t n,
			uint32_t *places)
{
	*places = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (points[i].description >= COUNTS || points[i].index >= POINTS_MAX)
			return -EINVAL;
		if (points[i].index >= *places)
			*places = points[i].index + 1;
	}
	return 0;
}

static int take_points(struct ucounters *c, const struct mlx5_ib_flow_counters_data *data)
{
	struct mlx5_ib_flow_counters_desc *points;
	uint32_t places;
	int ret = -EFAULT;

	if (c->places || !data->ncounters || data->ncounters > POINTS_MAX)
		return -EINVAL;
	points = calloc(data->ncounters, sizeof(*points));
	if (!points)
		return -ENOMEM;
	if (usermem_copy(points, (const void *)(uintptr_t)data->counters_data,
			 data->ncounters * sizeof(*points)))
		ret = check_points(points, data->ncounters, &places);
	if (ret < 0) {
		free(points);
		return ret;
	}
	c->points = points;
	c->npoints = data->ncounters;
	c->places = places;
	return 0;
}

/*
 * Lets a rule count into this counters object.  data says which counts go where; NULL if an earlier
 * rule has said it.
 */
static must_check int ucounters_attach(struct uobj *obj,
				       const struct mlx5_ib_flow_counters_data *data)
{
	struct ucounters *c = container_of(obj, struct ucounters, uobj);
	int ret = data ? take_points(c, data) : 0;

	if (ret == 0 && !c->places)
		ret = -EINVAL;
	if (ret == 0)
		obj->users++;
	return ret;
}

static void ucounters_detach(struct uobj *obj)
{
	struct ucounters *c = container_of(obj, struct ucounters, uobj);

	if (--obj->users)
		return;
	/* The counts stay, and the next first rule says anew where they go. */
	free(c->points);
	c->points = NULL;
	c->npoints = 0;
	c->places = 0;
}

static int method_counters_read(struct ureq *req)
{
	struct ucounters *c = container_of(ureq_obj(req, UVERBS_ATTR_READ_COUNTERS_HANDLE),
					   struct ucounters, uobj);
	struct ubuf out = ureq_buf(req, UVERBS_ATTR_READ_COUNTERS_BUFF);
	uint64_t counts[COUNTS], *values;
	uint32_t flags;
	int ret = ureq_flags(req, UVERBS_ATTR_READ_COUNTERS_FLAGS,
			     IB_UVERBS_READ_COUNTERS_PREFER_CACHED, &flags);

	if (ret < 0)
		return ret;
	if (!c->uobj.users || out.len % sizeof(*values) || c->places > out.len / sizeof(*values))
		return -EINVAL;
	values = calloc(1, out.len);
	if (!values)
		return -ENOMEM;
	flow_counter_read(c->counter, &counts[COUNT_PACKETS], &counts[COUNT_BYTES]);
	for (uint32_t i = 0; i < c->npoints; i++)
		values[c->points[i].index] += counts[c->points[i].description];
	ret = ureq_put(req, UVERBS_ATTR_READ_COUNTERS_BUFF, values, out.len);
	free(values);
	return ret;
}

/* ---- rules ---- */

/*
 * Steering rules.  A rule is a list of specifications, one per layer of the frame, which become one
 * value and one mask; actions stand among them.  A row of a table says what we know of each kind.
 */

/* enum ib_flow_spec_type, ib_flow_attr_type, ib_flow_flags; in no UAPI header. */
enum {
	SPEC_ETH = 0x20,
	SPEC_IPV4 = 0x30,
	SPEC_IPV6 = 0x31,
	SPEC_ESP = 0x34,
	SPEC_TCP = 0x40,
	SPEC_UDP = 0x41,
	SPEC_VXLAN = 0x50,
	SPEC_GRE = 0x51,
	SPEC_MPLS = 0x60,
	SPEC_INNER = 0x100,
	SPEC_ACTION_TAG = 0x1000,
	SPEC_ACTION_DROP = 0x1001,
	SPEC_ACTION_COUNT = 0x1003,
};
enum { ATTR_NORMAL, ATTR_ALL_DEFAULT, ATTR_MC_DEFAULT, ATTR_SNIFFER };
enum { FLAG_DONT_TRAP = 1 << 1, FLAG_EGRESS = 1 << 2, FLAGS_KNOWN = FLAG_DONT_TRAP | FLAG_EGRESS };

#define SPECS_MAX 10u

union spec {
	struct ib_uverbs_flow_spec_hdr hdr;
	struct ib_uverbs_flow_spec_eth eth;
	struct ib_uverbs_flow_spec_ipv4 ipv4;
	struct ib_uverbs_flow_spec_ipv6 ipv6;
	struct ib_uverbs_flow_spec_tcp_udp tcp_udp;
	struct ib_uverbs_flow_spec_tunnel tunnel;
	struct ib_uverbs_flow_spec_esp esp;
	struct ib_uverbs_flow_spec_gre gre;
	struct ib_uverbs_flow_spec_mpls mpls;
	struct ib_uverbs_flow_spec_action_tag tag;
	struct ib_uverbs_flow_spec_action_drop drop;
	struct ib_uverbs_flow_spec_action_count count;
};

/* A rule under construction. */
struct rule {
	struct flow_attr attr;
	uint32_t behind; /* the kind of the specification before this one */
	bool drop;
	bool tagged;
	bool counted;
	uint32_t counters; /* its handle */
};

/* Headers that a specification is about: the outer ones, or those inside a tunnel. */
struct headers {
	struct flow_key *value, *mask;
};

static struct headers rule_outer(struct rule *r)
{
	return (struct headers){&r->attr.value, &r->attr.mask};
}

static struct headers rule_headers(struct rule *r, const union spec *s)
{
	if (s->hdr.type & SPEC_INNER)
		return (struct headers){&r->attr.deep_value.inner, &r->attr.deep_mask.inner};
	return rule_outer(r);
}

#define COPY(to, field, spec, from)                                                      \
	do {                                                                             \
		memcpy((to).value->field, &(spec)->val.from, sizeof((spec)->val.from));  \
		memcpy((to).mask->field, &(spec)->mask.from, sizeof((spec)->mask.from)); \
	} while (0)
#define COPY8(to, field, spec, from)                  \
	do {                                          \
		(to).value->field = (spec)->val.from; \
		(to).mask->field = (spec)->mask.from; \
	} while (0)

static int rule_add_eth(struct rule *r, const union spec *s)
{
	struct headers h = rule_headers(r, s);

	COPY(h, dst_mac, &s->eth, dst_mac);
	COPY(h, src_mac, &s->eth, src_mac);
	COPY(h, ether_type, &s->eth, ether_type);
	COPY(h, vlan_tag, &s->eth, vlan_tag);
	if (s->eth.mask.vlan_tag) {
		h.value->vlan = 1;
		h.mask->vlan = 0xff;
	}
	return 0;
}

static void match_exactly(uint8_t *value, uint8_t *mask, uint8_t what)
{
	*value = what;
	*mask = 0xff;
}

/* What two specifications say of the protocol has to be the same. */
static int match_protocol(struct headers h, uint8_t value, uint8_t mask)
{
	if (!mask)
		return 0;
	if (h.mask->ip_proto && (h.mask->ip_proto != mask || h.value->ip_proto != value))
		return -EINVAL;
	h.value->ip_proto = value;
	h.mask->ip_proto = mask;
	return 0;
}

static int rule_add_ipv4(struct rule *r, const union spec *s)
{
	struct headers h = rule_headers(r, s);

	if (s->ipv4.mask.flags)
		return -EOPNOTSUPP;
	COPY(h, src_ip, &s->ipv4, src_ip);
	COPY(h, dst_ip, &s->ipv4, dst_ip);
	COPY8(h, ip_tos, &s->ipv4, tos);
	COPY8(h, ip_ttl, &s->ipv4, ttl);
	match_exactly(&h.value->ip_version, &h.mask->ip_version, 4);
	return match_protocol(h, s->ipv4.val.proto, s->ipv4.mask.proto);
}

static int rule_add_ipv6(struct rule *r, const union spec *s)
{
	struct headers h = rule_headers(r, s);

	if ((ntohl(s->ipv6.mask.flow_label) | ntohl(s->ipv6.val.flow_label)) >> 20)
		return -EINVAL;
	COPY(h, src_ip, &s->ipv6, src_ip);
	COPY(h, dst_ip, &s->ipv6, dst_ip);
	COPY(h, flow_label, &s->ipv6, flow_label);
	COPY8(h, ip_tos, &s->ipv6, traffic_class);
	COPY8(h, ip_ttl, &s->ipv6, hop_limit);
	match_exactly(&h.value->ip_version, &h.mask->ip_version, 6);
	return match_protocol(h, s->ipv6.val.next_hdr, s->ipv6.mask.next_hdr);
}

static int rule_add_ports(struct rule *r, const union spec *s)
{
	uint8_t proto = (s->hdr.type & ~SPEC_INNER) == SPEC_TCP ? IP_PROTO_TCP : IP_PROTO_UDP;
	struct headers h = rule_headers(r, s);

	COPY(h, src_port, &s->tcp_udp, src_port);
	COPY(h, dst_port, &s->tcp_udp, dst_port);
	match_exactly(&h.value->l4_proto, &h.mask->l4_proto, proto);
	return match_protocol(h, proto, 0xff);
}

/* Puts a field of the tunnel's own header. */
#define COPY_DEEP(rule, field, spec, from)                               \
	do {                                                             \
		memcpy((rule)->attr.deep_value.field, &(spec)->val.from, \
		       sizeof((spec)->val.from));                        \
		memcpy((rule)->attr.deep_mask.field, &(spec)->mask.from, \
		       sizeof((spec)->mask.from));                       \
	} while (0)

static int rule_add_vxlan(struct rule *r, const union spec *s)
{
	if ((ntohl(s->tunnel.mask.tunnel_id) | ntohl(s->tunnel.val.tunnel_id)) >> 24)
		return -EINVAL;
	COPY_DEEP(r, vni, &s->tunnel, tunnel_id);
	return 0;
}

static int rule_add_esp(struct rule *r, const union spec *s)
{
	if (s->esp.mask.seq)
		return -EOPNOTSUPP;
	COPY_DEEP(r, esp_spi, &s->esp, spi);
	return 0;
}

static int rule_add_gre(struct rule *r, const union spec *s)
{
	if (s->gre.mask.c_ks_res0_ver)
		return -EOPNOTSUPP;
	COPY_DEEP(r, gre_protocol, &s->gre, protocol);
	COPY_DEEP(r, gre_key, &s->gre, key);
	return match_protocol(rule_outer(r), IP_PROTO_GRE, 0xff);
}

/* The specification before it says where the label stands. */
static int rule_add_mpls(struct rule *r, const union spec *s)
{
	if (r->behind == SPEC_UDP)
		COPY_DEEP(r, mpls_over_udp, &s->mpls, label);
	else if (r->behind == SPEC_GRE)
		COPY_DEEP(r, mpls_over_gre, &s->mpls, label);
	else if (s->hdr.type & SPEC_INNER)
		COPY_DEEP(r, mpls_inner, &s->mpls, label);
	else
		COPY_DEEP(r, mpls, &s->mpls, label);
	return 0;
}

static int rule_add_tag(struct rule *r, const union spec *s)
{
	if (s->tag.reserved1 || s->tag.tag_id & ~FLOW_TAG_MASK)
		return -EINVAL;
	r->attr.tag = s->tag.tag_id;
	r->tagged = true;
	return 0;
}

static int rule_add_drop(struct rule *r, const union spec *s)
{
	(void)s;
	r->drop = true;
	return 0;
}

static int rule_add_count(struct rule *r, const union spec *s)
{
	if (s->count.reserved1 || r->counted)
		return -EINVAL;
	r->counted = true;
	r->counters = s->count.handle;
	return 0;
}

/* Layers of the frame, which may not occur twice or in some combinations. */
enum {
	LAYER_NONE,
	LAYER_2 = 1 << 0,
	LAYER_3 = 1 << 1,
	LAYER_4 = 1 << 2,
	LAYER_VXLAN = 1 << 3,
	LAYER_GRE = 1 << 4,
	LAYER_ESP = 1 << 5,
	LAYERS_INNER_SHIFT = 8, /* those inside a tunnel */
};

static const struct spec_kind {
	uint32_t type;
	uint32_t layer;
	size_t bytes;
	size_t filter; /* bytes of the value that mean something, and of the mask; 0: an action */
	int (*add)(struct rule *r, const union spec *s);
	bool inside; /* may be about headers inside a tunnel */
} kinds[] = {
	{SPEC_ETH, LAYER_2, sizeof(struct ib_uverbs_flow_spec_eth),
	 sizeof(struct ib_uverbs_flow_eth_filter), rule_add_eth, true},
	{SPEC_IPV4, LAYER_3, sizeof(struct ib_uverbs_flow_spec_ipv4),
	 sizeof(struct ib_uverbs_flow_ipv4_filter), rule_add_ipv4, true},
	{SPEC_IPV6, LAYER_3, sizeof(struct ib_uverbs_flow_spec_ipv6),
	 offsetof(struct ib_uverbs_flow_ipv6_filter, reserved), rule_add_ipv6, true},
	{SPEC_TCP, LAYER_4, sizeof(struct ib_uverbs_flow_spec_tcp_udp),
	 sizeof(struct ib_uverbs_flow_tcp_udp_filter), rule_add_ports, true},
	{SPEC_UDP, LAYER_4, sizeof(struct ib_uverbs_flow_spec_tcp_udp),
	 sizeof(struct ib_uverbs_flow_tcp_udp_filter), rule_add_ports, true},
	{SPEC_VXLAN, LAYER_VXLAN, sizeof(struct ib_uverbs_flow_spec_tunnel),
	 sizeof(struct ib_uverbs_flow_tunnel_filter), rule_add_vxlan},
	{SPEC_ESP, LAYER_ESP, sizeof(struct ib_uverbs_flow_spec_esp),
	 sizeof(struct ib_uverbs_flow_spec_esp_filter), rule_add_esp},
	{SPEC_GRE, LAYER_GRE, sizeof(struct ib_uverbs_flow_spec_gre),
	 sizeof(struct ib_uverbs_flow_gre_filter), rule_add_gre},
	{SPEC_MPLS, LAYER_NONE, sizeof(struct ib_uverbs_flow_spec_mpls),
	 sizeof(struct ib_uverbs_flow_mpls_filter), rule_add_mpls, true},
	{SPEC_ACTION_TAG, LAYER_NONE, sizeof(struct ib_uverbs_flow_spec_action_tag), 0,
	 rule_add_tag},
	{SPEC_ACTION_DROP, LAYER_NONE, sizeof(struct ib_uverbs_flow_spec_action_drop), 0,
	 rule_add_drop},
	{SPEC_ACTION_COUNT, LAYER_NONE, sizeof(struct ib_uverbs_flow_spec_action_count), 0,
	 rule_add_count},
};

static const struct spec_kind *spec_kind_find(uint32_t type)
{
	for (size_t i = 0; i < array_size(kinds); i++)
		if (kinds[i].type == (kinds[i].inside ? type & ~(uint32_t)SPEC_INNER : type))
			return &kinds[i];
	return NULL;
}

/*
 * Reads what follows the header.  As in Linux, a filter may be shorter than ours (libibverbs has one
 * of IPv4 that ends with the addresses) or longer, and what we do not know of its mask is 0.
 */
static int spec_read(const struct spec_kind *k, const uint8_t *from, size_t bytes, union spec *s)
{
	uint8_t *to = (uint8_t *)s + sizeof(s->hdr), *mask = to + (k->bytes - sizeof(s->hdr)) / 2;
	size_t half = bytes / 2, n = half < k->filter ? half : k->filter;

	if (!k->filter) {
		if (bytes != k->bytes - sizeof(s->hdr))
			return -EINVAL;
		return usermem_copy(to, from, bytes) ? 0 : -EFAULT;
	}
	if (!half || half % sizeof(uint32_t))
		return -EINVAL;
	memset(to, 0, k->bytes - sizeof(s->hdr));
	if (!usermem_copy(to, from, n) || !usermem_copy(mask, from + half, n))
		return -EFAULT;
	for (size_t i = n; i < half; i++) {
		uint8_t unknown;

		if (!usermem_copy(&unknown, from + half + i, 1))
			return -EFAULT;
		if (unknown)
			return -EINVAL;
	}
	return 0;
}

/* Reads the specification at *at; the list ends at end. */
static int rule_add_spec(struct rule *r, const uint8_t *base, size_t *at, size_t end,
			 uint32_t *layers)
{
	const struct spec_kind *k;
	uint32_t layer;
	union spec s;
	int ret;

	if (!range_inside(*at, sizeof(s.hdr), end))
		return -EINVAL;
	if (!usermem_copy(&s.hdr, base + *at, sizeof(s.hdr)))
		return -EFAULT;
	if (s.hdr.reserved || s.hdr.size < sizeof(s.hdr) || !range_inside(*at, s.hdr.size, end))
		return -EINVAL;
	k = spec_kind_find(s.hdr.type);
	if (!k) {
		log_info("uverbs: flow specification 0x%x is not supported", s.hdr.type);
		return -EOPNOTSUPP;
	}
	layer = s.hdr.type & SPEC_INNER ? k->layer << LAYERS_INNER_SHIFT : k->layer;
	if (*layers & layer)
		return -EINVAL;
	/* keeps the header that was checked */
	ret = spec_read(k, base + *at + sizeof(s.hdr), s.hdr.size - sizeof(s.hdr), &s);
	if (ret < 0)
		return ret;
	*layers |= layer;
	*at += s.hdr.size;
	ret = k->add(r, &s);
	r->behind = s.hdr.type;
	return ret;
}

/* Refuses an ether type that contradicts the IP version, because it can never match. */
static bool ether_type_agrees(const struct flow_key *v, const struct flow_key *m)
{
	const uint8_t *type = v->ether_type, *mask = m->ether_type;
	uint32_t want = v->ip_version == 4 ? FRAME_TYPE_IPV4 : FRAME_TYPE_IPV6;

	return !m->ip_version || mask[0] != 0xff || mask[1] != 0xff ||
	       ((uint32_t)type[0] << 8 | type[1]) == want;
}

static int flow_check_attr(const struct ufile *f, const struct ib_uverbs_flow_attr *a)
{
	if (a->flags & ~(uint32_t)FLAGS_KNOWN || a->type > ATTR_SNIFFER ||
	    a->num_of_specs > SPECS_MAX || a->reserved[0] || a->reserved[1] ||
	    (a->port && !ufile_has_port(f, a->port)))
		return -EINVAL;
	if (a->flags & FLAG_DONT_TRAP &&
	    (a->type == ATTR_ALL_DEFAULT || a->type == ATTR_MC_DEFAULT))
		return -EINVAL;
	if (a->flags & FLAG_EGRESS && a->type != ATTR_NORMAL)
		return -EINVAL;
	if (a->flags & FLAG_EGRESS && a->flags & FLAG_DONT_TRAP) {
		log_info("uverbs: rules for sent frames that leave them to others are not "
			 "supported");
		return -EOPNOTSUPP;
	}
	if (a->type != ATTR_NORMAL && a->num_of_specs)
		return -EINVAL;
	return a->priority >= ADAPTER_FLOW_PRIORITIES ? -ENOSPC : 0;
}

static enum flow_domain flow_domain_of(const struct ib_uverbs_flow_attr *a)
{
	if (a->type == ATTR_SNIFFER)
		return FLOW_SNIFFER;
	return a->flags & FLAG_EGRESS ? FLOW_NIC_TX : FLOW_NIC_RX;
}

static int rule_decode(struct ureq *req, const struct ib_uverbs_create_flow *cmd, struct rule *r)
{
	static const enum flow_type types[] = {
		[ATTR_NORMAL] = FLOW_NORMAL,
		[ATTR_ALL_DEFAULT] = FLOW_ALL_DEFAULT,
		[ATTR_MC_DEFAULT] = FLOW_MC_DEFAULT,
		[ATTR_SNIFFER] = FLOW_NORMAL,
	};
	const struct ib_uverbs_flow_attr *a = &cmd->flow_attr;
	size_t at = sizeof(*cmd), end;
	uint32_t layers = 0;
	int ret = flow_check_attr(req->file, a);

	if (ret < 0)
		return ret;
	if (!range_inside(at, a->size, req->core_in.len))
		return -EINVAL;
	end = at + a->size;
	*r = (struct rule){.attr = {.domain = flow_domain_of(a),
				    .type = types[a->type],
				    .priority = a->priority,
				    .go_on = a->flags & FLAG_DONT_TRAP}};
	for (uint32_t i = 0; i < a->num_of_specs; i++) {
		ret = rule_add_spec(r, req->core_in.ptr, &at, end, &layers);
		if (ret < 0)
			return ret;
	}
	if (at != end || !ether_type_agrees(&r->attr.value, &r->attr.mask) ||
	    !ether_type_agrees(&r->attr.deep_value.inner, &r->attr.deep_mask.inner))
		return -EINVAL;
	/* nobody would see the tag, and the search could not both end and go on */
	if (r->tagged && (r->drop || r->attr.domain == FLOW_NIC_TX))
		return -EINVAL;
	return r->drop && r->attr.go_on ? -EINVAL : 0;
}

/* The provider's part: says what the counts of a counters object mean, at its first rule only. */
struct counts {
	struct mlx5_ib_flow_counters_data data;
	bool given;
};

static int read_counts(const struct ubuf *uhw, struct counts *counts)
{
	struct mlx5_ib_create_flow head;
	struct ubuf first = {uhw->ptr, min_u64(uhw->len, sizeof(head))};
	struct ubuf rest = {uaddr_at(uhw->ptr, first.len), uhw->len - first.len};
	int ret = ubuf_read(&first, &head, sizeof(head));

	if (ret < 0)
		return ret;
	if (head.ncounters_data > 1 || head.reserved ||
	    (head.ncounters_data && rest.len < sizeof(counts->data)))
		return -EINVAL;
	counts->given = head.ncounters_data;
	ret = ubuf_read(&rest, &counts->data, counts->given ? sizeof(counts->data) : 0);
	return ret == 0 && counts->given && counts->data.reserved ? -EINVAL : ret;
}

static void uflow_free(struct uobj *obj)
{
	struct uflow *flow = container_of(obj, struct uflow, uobj);

	flow_destroy(flow->flow);
	if (flow->to)
		flow->to->users--;
	if (flow->counters)
		ucounters_detach(flow->counters);
	if (flow->matcher)
		flow->matcher->users--;
	if (flow->devx_counter)
		flow->devx_counter->users--;
	if (flow->action)
		flow->action->users--;
}

static const struct uobj_class uflow_class = {
	.type = UOBJ_FLOW,
	.free = uflow_free,
};

int uflow_create(struct ufile *f, const struct flow_attr *attr, struct uobj *to, struct uflow **out)
{
	struct uflow *flow = calloc(1, sizeof(*flow));
	int ret;

	if (!flow)
		return -ENOMEM;
	ret = flow_create(f->hca->adapter, attr, &flow->flow);
	if (ret < 0)
		goto free_flow;
	ret = uobj_publish(f, &flow->uobj, &uflow_class);
	if (ret < 0)
		goto destroy_flow;
	flow->to = to;
	if (to)
		to->users++;
	*out = flow;
	return 0;

destroy_flow:
	flow_destroy(flow->flow);
free_flow:
	free(flow);
	return ret;
}

/* Attaches the counters object that the rule names, or gives NULL. */
static int flow_attach_counters(struct ureq *req, struct rule *rule, const struct counts *counts,
				struct uobj **out)
{
	int ret = 0;

	*out = NULL;
	if (!rule->counted)
		return counts->given ? -EINVAL : 0;
	*out = uobj_find(req->file, UOBJ_COUNTERS, rule->counters, &ret);
	if (!*out)
		return ret;
	ret = ucounters_attach(*out, counts->given ? &counts->data : NULL);
	if (ret == 0)
		rule->attr.counter = ucounters_counter(*out);
	return ret;
}

static int cmd_create_flow_ex(struct ureq *req)
{
	struct ib_uverbs_create_flow cmd;
	struct ib_uverbs_create_flow_resp resp = {0};
	struct ubuf head = {req->core_in.ptr, sizeof(cmd)};
	struct uobj *obj, *counters;
	struct counts counts;
	struct uflow *flow;
	struct rule rule;
	struct uqp *qp;
	int ret = ubuf_read(&head, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.comp_mask)
		return -EINVAL;
	if (!uverbs_may_raw())
		return -EPERM;
	ret = read_counts(&req->uhw_in, &counts);
	if (ret == 0)
		ret = rule_decode(req, &cmd, &rule);
	if (ret)
		return ret;
	obj = uobj_find(req->file, UOBJ_QP, cmd.qp_handle, &ret);
	if (!obj || container_of(obj, struct uqp, uobj)->type != IB_QPT_RAW_PACKET)
		return -EINVAL;
	qp = container_of(obj, struct uqp, uobj);
	/* Sent frames go on to the wire, unless the rule drops them. */
	rule.attr.pass = rule.attr.domain == FLOW_NIC_TX && !rule.drop;
	rule.attr.qp = rule.drop || rule.attr.pass ? NULL : qp->qp;
	ret = flow_attach_counters(req, &rule, &counts, &counters);
	if (ret < 0)
		return ret;
	ret = uflow_create(req->file, &rule.attr, qp ? &qp->uobj : NULL, &flow);
	if (ret < 0) {
		if (counters)
			ucounters_detach(counters);
		return ret;
	}
	flow->counters = counters;
	resp.flow_handle = flow->uobj.handle;
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&flow->uobj, NULL);
	return ret;
}

static int cmd_destroy_flow_ex(struct ureq *req)
{
	struct ib_uverbs_destroy_flow cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.comp_mask)
		return -EINVAL;
	return ureq_destroy(req, UOBJ_FLOW, cmd.flow_handle, NULL);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec counters_create_attrs[] = {
	{UVERBS_ATTR_CREATE_COUNTERS_HANDLE, ATTR_IDR_NEW},
};

static const struct attr_spec counters_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, IDR(UOBJ_COUNTERS)},
};

static const struct attr_spec counters_read_attrs[] = {
	{UVERBS_ATTR_READ_COUNTERS_HANDLE, IDR(UOBJ_COUNTERS)},
	{UVERBS_ATTR_READ_COUNTERS_BUFF, OUT_MIN(0)},
	{UVERBS_ATTR_READ_COUNTERS_FLAGS, FLAGS_IN, OPT},
};

static const struct attr_spec flow_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_FLOW_HANDLE, IDR(UOBJ_FLOW)},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, method_counters_create,
	       counters_create_attrs),
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, method_destroy,
	       counters_destroy_attrs),
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, method_counters_read,
	       counters_read_attrs),
	METHOD(UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY, method_destroy, flow_destroy_attrs),
};

static const struct command_spec commands[] = {
	EX(CREATE_FLOW, cmd_create_flow_ex, sizeof(struct ib_uverbs_create_flow),
	   sizeof(struct ib_uverbs_create_flow_resp)),
	EX(DESTROY_FLOW, cmd_destroy_flow_ex, sizeof(struct ib_uverbs_destroy_flow), 0),
};

const struct uverbs_family uflow_family = {METHODS(methods), COMMANDS(commands)};
