// SPDX-License-Identifier: BSD-2-Clause
/* Steering: which queues get a frame; see flow.h. */
#include "adapter/ethernet/flow.h"

#include "adapter/core/device.h"
#include "adapter/ethernet/ethernet.h"
#include "adapter/ste/tunnel.h"
#include "base/hazard.h"
#include "wire/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { IP_PROTO_ESP = 50 };
enum { FRAME_TYPE_MPLS = 0x8847, FRAME_TYPE_MPLS_GROUP = 0x8848 };
enum { PORT_VXLAN = 4789, PORT_MPLS = 6635 };

#define UDP_BYTES 8u

/* Copies 'n' bytes of the frame if it has them. */
static void deep_copy(const struct ste_frame *f, uint32_t at, uint8_t *to, uint32_t n)
{
	if (range_inside(at, n, f->len))
		memcpy(to, f->bytes + at, n);
}

static bool is_mpls(const uint8_t type[2])
{
	return frame_get16(type) == FRAME_TYPE_MPLS || frame_get16(type) == FRAME_TYPE_MPLS_GROUP;
}

/* The label that follows the Ethernet header at byte 'start'. */
static void deep_mpls(const struct ste_frame *f, uint32_t start, uint8_t label[4])
{
	if (is_mpls(f->key.ether_type))
		deep_copy(f, start + FRAME_MIN + (f->key.vlan ? FRAME_VLAN_BYTES : 0), label, 4);
}

/* t->header is 0 if the frame is no IP datagram, or a later part of one. */
static void deep_gre(const struct ste_frame *f, const struct ste_tunnel *t, struct flow_deep *out)
{
	const uint8_t *h = f->bytes + t->header;

	if (f->key.ip_proto != IP_PROTO_GRE || t->inner <= t->header)
		return;
	memcpy(out->gre_protocol, h + 2, 2);
	if (h[0] & GRE_KEY)
		deep_copy(f, t->header + (h[0] & GRE_CHECKSUM ? 8 : 4), out->gre_key, 4);
	if (is_mpls(out->gre_protocol))
		deep_copy(f, t->inner, out->mpls_over_gre, 4);
}

static void deep_udp(const struct ste_frame *f, struct flow_deep *out)
{
	uint32_t at = f->at.l4 + UDP_BYTES;

	if (!f->at.l4 || f->key.l4_proto != IP_PROTO_UDP)
		return;
	if (frame_get16(f->key.dst_port) == PORT_VXLAN)
		deep_copy(f, at + 4, out->vni + 1, 3);
	if (frame_get16(f->key.dst_port) == PORT_MPLS)
		deep_copy(f, at, out->mpls_over_udp, 4);
}

void flow_deep_read(const uint8_t *frame, uint32_t bytes, const struct flow_key *key,
		    struct flow_deep *out)
{
	struct ste_frame f = {.bytes = frame, .len = bytes}, inside;
	struct ste_tunnel t;

	*out = (struct flow_deep){0};
	ste_frame_parse(&f);
	f.key = *key;
	deep_mpls(&f, 0, out->mpls);
	if (ste_tunnel_find(&f, &t) && ste_tunnel_inside(&f, &t, &inside)) {
		out->inner = inside.key;
		if (!t.type)
			deep_mpls(&inside, t.inner, out->mpls_inner);
	}
	if (!t.header)
		return;
	deep_gre(&f, &t, out);
	deep_udp(&f, out);
	if (f.key.ip_proto == IP_PROTO_ESP)
		deep_copy(&f, t.header, out->esp_spi, 4);
}

#define BUCKETS 1024u

/* The order behind all priorities, for what no other rule wanted (IB_FLOW_ATTR_ALL_DEFAULT,
 * _MC_DEFAULT). */
#define ORDER_LEFTOVERS UINT32_MAX

#define MATCH_WORDS (FLOW_KEY_WORDS + FLOW_DEEP_WORDS)

/* All that rules compare. */
struct flow_match {
	union {
		struct {
			struct flow_key outer;
			struct flow_deep deep;
		};
		uint64_t word[MATCH_WORDS];
	};
};

struct flow_entry {
	_Atomic(struct flow_entry *) next;
	struct flow_layer *layer;
	uint32_t refs; /* rules that say the same */
	struct flow_match value;
	struct flow_action action;
};

struct flow_layer {
	_Atomic(struct flow_layer *) next;
	uint32_t order;
	uint32_t entries;
	struct flow_match mask;
	/* The words in which the mask has bits, because most rules look at one or two of all
	 * words. */
	uint32_t nwords;
	uint8_t word[MATCH_WORDS];
	_Atomic(struct flow_entry *) bucket[BUCKETS];
};

/* A rule of the program; a rule for leftovers may need two entries. */
struct flow {
	struct adapter *adapter;
	enum flow_domain domain;
	struct flow_entry *entry[2];
	uint32_t nentries;
};

static void match_mask(const struct flow_match *key, const struct flow_match *mask,
		       struct flow_match *out)
{
	for (unsigned i = 0; i < MATCH_WORDS; i++)
		out->word[i] = key->word[i] & mask->word[i];
}

static bool match_equal(const struct flow_match *a, const struct flow_match *b)
{
	uint64_t diff = 0;

	for (unsigned i = 0; i < MATCH_WORDS; i++)
		diff |= a->word[i] ^ b->word[i];
	return !diff;
}

static void layer_choose_words(struct flow_layer *layer)
{
	static_assert(MATCH_WORDS <= UINT8_MAX, "a word's place is in a byte");

	for (unsigned i = 0; i < MATCH_WORDS; i++)
		if (layer->mask.word[i])
			layer->word[layer->nwords++] = (uint8_t)i;
}

/* What the layer's mask leaves of a word of a key. */
static uint64_t layer_word(const struct flow_layer *layer, const struct flow_match *key, uint32_t i)
{
	return key->word[layer->word[i]] & layer->mask.word[layer->word[i]];
}

/* The last word is the one that lies deepest. */
static bool layer_is_deep(const struct flow_layer *layer)
{
	return layer->nwords && layer->word[layer->nwords - 1] >= FLOW_KEY_WORDS;
}

/* True if a rule with this value is for frames with this key. */
static bool layer_matches(const struct flow_layer *layer, const struct flow_match *value,
			  const struct flow_match *key)
{
	uint64_t diff = 0;

	for (uint32_t i = 0; i < layer->nwords; i++)
		diff |= value->word[layer->word[i]] ^ layer_word(layer, key, i);
	return !diff;
}

static _Atomic(struct flow_entry *) *layer_bucket(struct flow_layer *layer,
						  const struct flow_match *key)
{
	uint64_t h = 0;

	for (uint32_t i = 0; i < layer->nwords; i++)
		h = (h ^ layer_word(layer, key, i)) * 0x9e3779b97f4a7c15ull + (h >> 29);
	return &layer->bucket[(h >> 40) % BUCKETS];
}

/* ---- looking up ---- */

/* Returns true if the search is over. */
static bool layer_find(struct flow_layer *layer, const struct flow_match *key,
		       void (*fn)(void *user, const struct flow_action *action), void *user)
{
	bool found = false, go_on = false;
	struct flow_entry *e;

	e = atomic_load_explicit(layer_bucket(layer, key), memory_order_acquire);
	for (; e; e = atomic_load_explicit(&e->next, memory_order_acquire)) {
		if (!layer_matches(layer, &e->value, key))
			continue;
		found = true;
		go_on |= e->action.go_on;
		fn(user, &e->action);
	}
	return found && !go_on;
}

void steering_find(struct steering *s, const struct steering_frame *frame,
		   void (*fn)(void *user, const struct flow_action *action), void *user)
{
	struct flow_layer *layer;
	struct flow_match match;
	bool deep = false;

	hazard_hold(s);
	layer = atomic_load_explicit(&s->layers, memory_order_acquire);
	match.outer = *frame->key;
	for (; layer; layer = atomic_load_explicit(&layer->next, memory_order_acquire)) {
		if (unlikely(layer_is_deep(layer)) && !deep) {
			flow_deep_read(frame->bytes, frame->len, frame->key, &match.deep);
			deep = true;
		}
		if (layer_find(layer, &match, fn, user))
			break;
	}
}

/* ---- changing, with the lock held ---- */

static struct flow_layer *layer_get(struct steering *s, uint32_t order,
				    const struct flow_match *mask)
{
	_Atomic(struct flow_layer *) *at = &s->layers;
	struct flow_layer *layer;

	while ((layer = atomic_load_explicit(at, memory_order_relaxed)) && layer->order <= order) {
		if (layer->order == order && match_equal(&layer->mask, mask))
			return layer;
		at = &layer->next;
	}
	layer = calloc(1, sizeof(*layer));
	if (!layer)
		return NULL;
	layer->order = order;
	layer->mask = *mask;
	layer_choose_words(layer);
	atomic_store_explicit(&layer->next, atomic_load_explicit(at, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(at, layer, memory_order_release);
	return layer;
}

static void layer_unlink(struct steering *s, struct flow_layer *layer)
{
	_Atomic(struct flow_layer *) *at = &s->layers;
	struct flow_layer *l;

	while ((l = atomic_load_explicit(at, memory_order_relaxed)) != layer)
		at = &l->next;
	atomic_store_explicit(at, atomic_load_explicit(&layer->next, memory_order_relaxed),
			      memory_order_release);
}

/* True if both treat a frame alike, apart from the queue.  Hardware has one entry for such
 * rules. */
static bool actions_agree(const struct flow_action *a, const struct flow_action *b)
{
	return (a->qp || a->table) == (b->qp || b->table) && a->pass == b->pass &&
	       a->modify == b->modify && a->tag == b->tag && a->go_on == b->go_on;
}

static int entry_get(struct steering *s, uint32_t order, const struct flow_match *mask,
		     const struct flow_match *value, const struct flow_action *action,
		     struct flow_entry **out)
{
	struct flow_layer *layer = layer_get(s, order, mask);
	_Atomic(struct flow_entry *) *at;
	struct flow_entry *e;

	if (!layer)
		return -ENOMEM;
	at = layer_bucket(layer, value);
	for (; (e = atomic_load_explicit(at, memory_order_relaxed)); at = &e->next) {
		if (!match_equal(&e->value, value))
			continue;
		if (!actions_agree(&e->action, action))
			return -EEXIST; /* the layer has entries, so it is not a fresh one */
		if (e->action.qp == action->qp && e->action.table == action->table) {
			e->refs++;
			*out = e;
			return 0;
		}
	}
	e = calloc(1, sizeof(*e));
	if (!e) {
		if (!layer->entries) {
			layer_unlink(s, layer);
			hazard_wait(s, 1);
			free(layer);
		}
		return -ENOMEM;
	}
	e->layer = layer;
	e->refs = 1;
	e->value = *value;
	e->action = *action;
	layer->entries++;
	/* put it at the end: queues get their copies in the order in which they asked for them */
	atomic_store_explicit(at, e, memory_order_release);
	*out = e;
	return 0;
}

static void entry_put(struct steering *s, struct flow_entry *entry)
{
	struct flow_layer *layer = entry->layer;
	_Atomic(struct flow_entry *) *at = layer_bucket(layer, &entry->value);
	struct flow_entry *e;

	if (--entry->refs)
		return;
	while ((e = atomic_load_explicit(at, memory_order_relaxed)) != entry)
		at = &e->next;
	atomic_store_explicit(at, atomic_load_explicit(&entry->next, memory_order_relaxed),
			      memory_order_release);
	if (!--layer->entries)
		layer_unlink(s, layer);
	hazard_wait(s, 1);
	if (!layer->entries)
		free(layer);
	free(entry);
}

/* ---- rules ---- */

int steering_add(struct steering *s, const struct flow_attr *attr, struct flow **out)
{
	const struct flow_action action = {
		.qp = attr->qp,
		.table = attr->table,
		.pass = attr->pass,
		.modify = attr->modify,
		.tag = attr->tag,
		.go_on = attr->go_on,
		.counter = attr->counter,
	};
	/* Within a priority, rules that leave the frame to others come first. */
	uint32_t order = attr->priority * 2 + !attr->go_on;
	struct flow_match whole = {.outer = attr->value, .deep = attr->deep_value};
	struct flow_match mask = {.outer = attr->mask, .deep = attr->deep_mask}, value[2];
	struct flow *flow = calloc(1, sizeof(*flow));
	uint32_t n = 1;
	int ret = 0;

	if (!flow)
		return -ENOMEM;
	match_mask(&whole, &mask, &value[0]);
	if (attr->type != FLOW_NORMAL) {
		/* The group bit of the address tells the two kinds of leftovers apart. */
		order = ORDER_LEFTOVERS;
		mask = (struct flow_match){.outer.dst_mac = {1}};
		value[0] = mask;
		value[1] = (struct flow_match){0};
		n = attr->type == FLOW_ALL_DEFAULT ? 2 : 1;
	}
	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < n && !ret; i++) {
		ret = entry_get(s, order, &mask, &value[i], &action, &flow->entry[i]);
		flow->nentries += !ret;
	}
	if (ret)
		while (flow->nentries)
			entry_put(s, flow->entry[--flow->nentries]);
	pthread_mutex_unlock(&s->lock);
	if (ret)
		free(flow);
	else
		*out = flow;
	return ret;
}

void steering_remove(struct steering *s, struct flow *flow)
{
	pthread_mutex_lock(&s->lock);
	while (flow->nentries)
		entry_put(s, flow->entry[--flow->nentries]);
	pthread_mutex_unlock(&s->lock);
	free(flow);
}

void steering_init(struct steering *s)
{
	pthread_mutex_init(&s->lock, NULL);
}

void steering_release(struct steering *s)
{
	pthread_mutex_destroy(&s->lock);
}

/* Asks for frames, or no longer, which may come from other processes. */
static void domain_listen(struct adapter *a, enum flow_domain domain, bool listens)
{
	if (domain == FLOW_NIC_TX)
		return;
	if (listens)
		wire_listen(a->wire, WIRE_GROUP_FRAMES);
	else
		wire_unlisten(a->wire, WIRE_GROUP_FRAMES);
	if (domain != FLOW_SNIFFER)
		return;
	if (listens)
		wire_sniff_begin(a->wire);
	else
		wire_sniff_end(a->wire);
}

int flow_create(struct adapter *a, const struct flow_attr *attr, struct flow **out)
{
	int ret;

	if (attr->priority >= ADAPTER_FLOW_PRIORITIES || attr->tag & ~FLOW_TAG_MASK ||
	    (attr->domain == FLOW_SNIFFER && !attr->qp))
		return -EINVAL;
	ret = steering_add(&a->ethernet->rules[attr->domain], attr, out);
	if (ret)
		return ret;
	(*out)->adapter = a;
	(*out)->domain = attr->domain;
	domain_listen(a, attr->domain, true);
	return 0;
}

void flow_destroy(struct flow *flow)
{
	struct adapter *a = flow->adapter;

	domain_listen(a, flow->domain, false);
	steering_remove(&a->ethernet->rules[flow->domain], flow);
}
