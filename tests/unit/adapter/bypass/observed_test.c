// SPDX-License-Identifier: BSD-2-Clause
/*
 * The same requests with and without somebody who looks at the packets: completions, counters,
 * sequence numbers and memory are the same, and who looks sees each packet of each message.
 *
 *     device_qp a --- loopback --- device_qp b
 */
#include <string.h>

#include "adapter_device.h"
#include "check.h"
#include "wire/tap.h"

#define MTU   1024u
#define BYTES 65536u

struct request {
	uint8_t opcode;
	uint32_t len;
};

static const struct request requests[] = {
	{WQE_OP_RDMA_WRITE, 8},
	{WQE_OP_RDMA_WRITE, MTU},
	{WQE_OP_RDMA_WRITE, MTU + 1},
	{WQE_OP_RDMA_WRITE, 60001},
	{WQE_OP_SEND, 8},
	{WQE_OP_SEND, 5 * MTU},
	{WQE_OP_SEND_IMM, 3001},
	{WQE_OP_RDMA_WRITE_IMM, 2049},
	{WQE_OP_RDMA_READ, 8},
	{WQE_OP_RDMA_READ, 40000},
	{WQE_OP_RDMA_WRITE, 8},
};

/* What a program, or who asks for counters, can tell of a run. */
struct outcome {
	uint64_t cqes[2][array_size(requests)][3];
	uint64_t counters[PORT_COUNTERS];
	uint32_t psn[4];
	uint8_t src[BYTES], dst[BYTES];
};

struct watcher {
	struct tap tap;
	uint32_t sent, delivered, messages; /* of those with data, and whole messages */
	uint32_t next_psn;
	bool inside; /* a message has begun */
};

static struct test_device device;
static struct device_qp a, b;
static uint8_t src[BYTES], dst[BYTES];

static void tap_packet(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
		       const struct pkt *p)
{
	struct watcher *w = container_of(t, struct watcher, tap);
	const struct bth_props *props = pkt_props(p);

	(void)ns, (void)port_row;
	if (!props->payload)
		return;
	if (at == TAP_DELIVERED) {
		w->delivered++;
		CHECK(w->delivered == w->sent);
		return;
	}
	CHECK(p->npkts == 1 && p->payload_len <= MTU && (props->last || p->payload_len == MTU));
	CHECK(props->first != w->inside);
	if (!props->first)
		CHECK(p->psn == w->next_psn);
	w->next_psn = psn_add(p->psn, 1);
	w->inside = !props->last;
	w->messages += props->last;
	w->sent++;
}

static void post_request(const struct request *r, uint32_t lkey, uint32_t rkey)
{
	struct device_wqe w;

	device_recv(&b, dst, BYTES, rkey);
	device_wqe_begin(&a, &w, r->opcode, WQE_CTRL_CE_ALWAYS, r->len);
	if (r->opcode != WQE_OP_SEND && r->opcode != WQE_OP_SEND_IMM)
		device_wqe_raddr(&w, (uintptr_t)dst, rkey);
	device_wqe_data(&w, src, r->len, lkey);
	device_wqe_end(&w);
}

static void note_cqes(struct device_qp *q, uint64_t out[][3])
{
	static const enum cqe_word words[] = {CQE_WORD_INDEX, CQE_WORD_BYTES, CQE_WORD_LAST};
	const struct cqe64 *cqe;

	for (unsigned n = 0; (cqe = device_cq_poll(&q->cq)); n++)
		for (unsigned i = 0; i < array_size(words); i++)
			out[n][i] = cqe->word[words[i]];
}

static void run_requests(unsigned dev, enum ib_qp_type type, struct watcher *watcher,
			 struct outcome *out)
{
	struct mkey *ms, *md;
	struct qp_attr attr;
	uint32_t lkey, rkey;

	memset(out, 0, sizeof(*out));
	device_up(&device);
	if (watcher)
		wire_tap_attach(device.host, &watcher->tap);
	device_qp_up(&device, dev, &a, type);
	device_qp_up(&device, dev, &b, type);
	device_connect(&device, dev, &a, &b);
	for (unsigned i = 0; i < BYTES; i++) {
		src[i] = (uint8_t)(i * 7 + i / 256);
		dst[i] = (uint8_t)(i * 3);
	}
	lkey = device_mr(&device, dev, a.pdn, src, BYTES, DEVICE_ALL_ACCESS, &ms);
	rkey = device_mr(&device, dev, b.pdn, dst, BYTES, DEVICE_ALL_ACCESS, &md);
	for (unsigned i = 0; i < array_size(requests); i++)
		if (type == IB_QPT_RC || requests[i].opcode != WQE_OP_RDMA_READ)
			post_request(&requests[i], lkey, rkey);
	note_cqes(&a, out->cqes[0]);
	note_cqes(&b, out->cqes[1]);
	for (unsigned shard = 0; shard < SLOT_SHARDS; shard++)
		for (unsigned c = 0; c < PORT_COUNTERS; c++)
			out->counters[c] += device.slots[0].counters[shard][dev][c];
	for (unsigned i = 0; i < 2; i++) {
		qp_query((i ? &b : &a)->qp, &attr);
		out->psn[2 * i] = attr.sq_psn;
		out->psn[2 * i + 1] = attr.rq_psn;
	}
	memcpy(out->src, src, BYTES);
	memcpy(out->dst, dst, BYTES);
	device_qp_down(&a);
	device_qp_down(&b);
	mkey_destroy(device.adapter[dev], ms);
	mkey_destroy(device.adapter[dev], md);
	if (watcher)
		wire_tap_detach(device.host, &watcher->tap);
	device_down(&device);
}

/* Data is counted in words, and what a packet has beyond a whole one is lost (RoCE headers are no
 * multiple of a word): once for each packet that is made. */
static void same_counters(unsigned dev, const struct outcome *alone, struct outcome *watched)
{
	uint64_t *words = watched->counters;
	uint64_t most = dev ? words[PORT_XMIT_PACKETS] : 0;

	CHECK(alone->counters[PORT_XMIT_DATA] - words[PORT_XMIT_DATA] <= most);
	CHECK(alone->counters[PORT_RCV_DATA] - words[PORT_RCV_DATA] <= most);
	words[PORT_XMIT_DATA] = alone->counters[PORT_XMIT_DATA];
	words[PORT_RCV_DATA] = alone->counters[PORT_RCV_DATA];
	CHECK(!memcmp(alone->counters, watched->counters, sizeof(alone->counters)));
}

static void test_same(unsigned dev, enum ib_qp_type type)
{
	static struct outcome alone, watched;
	struct watcher w = {.tap.packet = tap_packet};
	uint32_t packets = 0, messages = 0;

	for (unsigned i = 0; i < array_size(requests); i++) {
		if (type != IB_QPT_RC && requests[i].opcode == WQE_OP_RDMA_READ)
			continue;
		packets += div_round_up(requests[i].len, MTU);
		messages++;
	}
	run_requests(dev, type, NULL, &alone);
	run_requests(dev, type, &w, &watched);
	CHECK(w.sent == packets && w.delivered == packets && w.messages == messages);
	CHECK(alone.cqes[0][messages - 1][2] &&
	      !memcmp(alone.cqes, watched.cqes, sizeof(alone.cqes)));
	same_counters(dev, &alone, &watched);
	CHECK(!memcmp(alone.psn, watched.psn, sizeof(alone.psn)));
	CHECK(!memcmp(alone.src, watched.src, BYTES) && !memcmp(alone.dst, watched.dst, BYTES));
}

int main(void)
{
	for (unsigned dev = 0; dev < 2; dev++) {
		test_same(dev, IB_QPT_RC);
		test_same(dev, IB_QPT_UC);
	}
	return 0;
}
