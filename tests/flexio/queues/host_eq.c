// SPDX-License-Identifier: BSD-2-Clause
/* Event queues that the program makes by mlx5dv, with vectors; completion queues of the DPA name them. */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "prm/cmd_cq_eq.h"
#include "prm/eqe.h"
#include "prm/uar.h"

/* Long enough that nothing comes any more. */
#define STILL_MS 30
#define COME_MS	 20000

struct eq {
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_msi_vector *msi;
	struct mlx5dv_devx_eq *eq;
	uint32_t number, entries, ci;
};

static struct mlx5dv_devx_eq *eq_create(struct ibv_context *ctx, uint32_t log, uint32_t uar,
					int vector, uint64_t events, uint32_t *number)
{
	uint8_t in[CREATE_EQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0},
		*eqc = in + CREATE_EQ_CONTEXT;
	struct mlx5dv_devx_eq *eq;

	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_EQ);
	prm_set(eqc, EQC_LOG_SIZE, log);
	prm_set(eqc, EQC_UAR_PAGE, uar);
	prm_set(eqc, EQC_INTR, (uint64_t)vector);
	prm_set(in + CREATE_EQ_EVENTS, PRM_FIELD(0, 64), events);
	eq = mlx5dv_devx_create_eq(ctx, in, sizeof(in), out, sizeof(out));
	*number = prm_get32(out, CREATE_EQ_OUT_EQN);
	return eq;
}

static void eq_up(struct eq *e, struct ibv_context *ctx, uint32_t log, uint64_t events)
{
	memset(e, 0, sizeof(*e));
	e->uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	e->msi = mlx5dv_devx_alloc_msi_vector(ctx);
	CHECK(e->uar && e->msi);
	e->entries = 1u << log;
	e->eq = eq_create(ctx, log, e->uar->page_id, e->msi->vector, events, &e->number);
	CHECK(e->eq && e->number);
}

static void eq_down(struct eq *e)
{
	CHECK(!mlx5dv_devx_destroy_eq(e->eq));
	CHECK(!mlx5dv_devx_free_msi_vector(e->msi));
	mlx5dv_devx_free_uar(e->uar);
}

/* As drivers do it: the number and the index, big-endian. */
static void eq_ring(const struct eq *e, bool arm)
{
	uint8_t *reg = (uint8_t *)e->uar->base_addr + (arm ? UAR_EQ_ARM : UAR_EQ);

	__atomic_store_n((uint32_t *)(void *)reg, htobe32(e->number << 24 | (e->ci & 0xffffff)),
			 __ATOMIC_RELEASE);
}

/* The next entry that has come, or NULL. */
static const uint8_t *eq_next(struct eq *e)
{
	const uint8_t *eqe =
		(const uint8_t *)e->eq->vaddr + (size_t)(e->ci & (e->entries - 1)) * EQE_BYTES;

	if ((__atomic_load_n(eqe + 63, __ATOMIC_ACQUIRE) & 1) != !!(e->ci & e->entries))
		return NULL;
	e->ci++;
	return eqe;
}

/* Takes n completions of that queue, and no more. */
static void eq_expect(struct eq *e, uint32_t cqn, unsigned n)
{
	while (n--) {
		const uint8_t *eqe = eq_next(e);

		CHECK(eqe && prm_get(eqe, EQE_TYPE) == EQE_COMP &&
		      prm_get(eqe, EQE_COMP_CQN) == cqn);
	}
	CHECK(!eq_next(e));
}

/* Does the vector fire?  Takes it. */
static bool eq_fires(const struct eq *e, int ms)
{
	struct pollfd p = {.fd = e->msi->fd, .events = POLLIN};
	uint64_t n;

	if (poll(&p, 1, ms) != 1)
		return false;
	CHECK(read(e->msi->fd, &n, sizeof(n)) == sizeof(n) && n == 1);
	return true;
}

/* A queue of the DPA that each completion makes an event of. */
static void eq_cq(struct bench *b, const struct eq *e, uint8_t element, unsigned log)
{
	b->attr.element_type = element;
	b->attr.thread = NULL;
	b->attr.emulated_eqn = e->number;
	b->attr.always_armed = 1;
	b->attr.overrun_ignore = 1;
	bench_queue(b, log);
}

static void event_queue(void)
{
	struct bench b;
	struct eq e;

	bench_up(&b, 0);
	eq_up(&e, b.ctx, 3, 0);
	eq_cq(&b, &e, FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ, 6);
	/* Before it is armed it does not fire; then at once. */
	call2(b.p, &complete, b.cqn, 2);
	CHECK(!eq_fires(&e, STILL_MS));
	eq_ring(&e, true);
	CHECK(eq_fires(&e, COME_MS));
	call2(b.p, &complete, b.cqn, 1);
	CHECK(!eq_fires(&e, STILL_MS));
	eq_expect(&e, b.cqn, 3);
	/* With all consumed the next one fires, over several passes. */
	for (unsigned i = 0; i < 40; i++) {
		eq_ring(&e, true);
		CHECK(i || !eq_fires(&e, STILL_MS));
		call2(b.p, &complete, b.cqn, 1);
		CHECK(eq_fires(&e, COME_MS));
		eq_expect(&e, b.cqn, 1);
	}
	/* A full one takes no more until it hears that there is room.  It has not heard of the last entry. */
	call2(b.p, &complete, b.cqn, 20);
	eq_expect(&e, b.cqn, 7);
	eq_ring(&e, false);
	eq_ring(&e, true);
	do
		call2(b.p, &complete, b.cqn, 1);
	while (!eq_fires(&e, STILL_MS));
	eq_expect(&e, b.cqn, 1);
	/* It stays as long as a queue names it. */
	CHECK(mlx5dv_devx_destroy_eq(e.eq));
	OK(flexio_cq_destroy(b.cq));
	b.cq = NULL;
	eq_down(&e);
	bench_down(&b);
}

/* The DPA looks at the ring through a window, and tells the queue by its outbox. */
static void event_queue_device(void)
{
	struct flexio_window *window;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint64_t n, taken = 0;
	struct bench b;
	struct eq e = {.entries = 8};

	bench_up(&b, 0);
	e.eq = eq_create(b.ctx, 3, b.attr.uar_id, 0, 0, &e.number);
	CHECK(e.eq);
	eq_cq(&b, &e, FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ, 6);
	pd = flexio_process_get_pd(b.p);
	mr = ibv_reg_mr(pd, e.eq->vaddr, 8 * EQE_BYTES, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	OK(flexio_window_create(b.p, pd, &window));
	for (unsigned i = 0; i < 30; i++) {
		uint64_t some = i % 8 + 1;

		call2(b.p, &complete, b.cqn, some);
		OK(flexio_process_call(b.p, &eq_take, &n, (uint64_t)flexio_window_get_id(window),
				       (uint64_t)mr->lkey, (uint64_t)(uintptr_t)e.eq->vaddr, 8ul,
				       taken, (uint64_t)b.cqn, (uint64_t)e.number));
		CHECK(n == some);
		taken += n;
	}
	/* Not told, it keeps eight. */
	call2(b.p, &complete, b.cqn, 12);
	OK(flexio_process_call(b.p, &eq_take, &n, (uint64_t)flexio_window_get_id(window),
			       (uint64_t)mr->lkey, (uint64_t)(uintptr_t)e.eq->vaddr, 8ul, taken,
			       (uint64_t)b.cqn, 0ul));
	CHECK(n == 8);
	OK(flexio_window_destroy(window));
	CHECK(!ibv_dereg_mr(mr));
	OK(flexio_cq_destroy(b.cq));
	b.cq = NULL;
	CHECK(!mlx5dv_devx_destroy_eq(e.eq));
	bench_down(&b);
}

static void event_queue_types(void)
{
	uint8_t out[CMD_OUT_BYTES] = {0};
	const uint8_t *eqe;
	struct flexio_cq *cq;
	struct bench b;
	uint32_t number;
	struct eq e;

	bench_up(&b, QUEUE_TAKES_NONE);
	eq_up(&e, b.ctx, 4, 1ull << EQE_CQ_ERROR);
	eq_ring(&e, true);
	bench_queue(&b, 2);
	call2(b.p, &complete, b.cqn, 5);
	CHECK(eq_fires(&e, COME_MS));
	eqe = eq_next(&e);
	CHECK(eqe && prm_get(eqe, EQE_TYPE) == EQE_CQ_ERROR &&
	      prm_get(eqe, EQE_CQ_ERR_NR) == b.cqn);
	CHECK(!eq_next(&e));
	/* What cannot be: a vector, a page or a number that there is not, other commands. */
	CHECK(!eq_create(b.ctx, 3, e.uar->page_id, e.msi->vector + 1, 0, &number) &&
	      errno == EINVAL);
	CHECK(!eq_create(b.ctx, 3, 0xabcdef, 0, 0, &number));
	CHECK(!eq_create(b.ctx, 23, e.uar->page_id, 0, 0, &number) && errno == EINVAL);
	CHECK(!mlx5dv_devx_create_eq(b.ctx, out, sizeof(out), out, sizeof(out)) && errno == EINVAL);
	b.attr.element_type = FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ;
	b.attr.thread = NULL;
	b.attr.emulated_eqn = e.number + 1;
	FAILS(flexio_cq_create(b.p, NULL, &b.attr, &cq));
	/* Those that share a page fire for each entry, as no bell of theirs is sure to be seen. */
	OK(flexio_cq_destroy(b.cq));
	b.cq = NULL;
	{
		struct eq second = {.uar = e.uar, .msi = e.msi, .entries = 8};

		second.eq = eq_create(b.ctx, 3, e.uar->page_id, e.msi->vector, 0, &second.number);
		CHECK(second.eq && second.number != e.number);
		eq_cq(&b, &second, FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ, 4);
		for (unsigned i = 0; i < 6; i++) {
			call2(b.p, &complete, b.cqn, 1);
			CHECK(eq_fires(&second, COME_MS));
		}
		eq_expect(&second, b.cqn, 6);
		OK(flexio_cq_destroy(b.cq));
		b.cq = NULL;
		CHECK(!mlx5dv_devx_destroy_eq(second.eq));
	}
	eq_down(&e);
	bench_down(&b);
}

/* The ring in memory of the host, and a handler that sends: vector, event and completion reach it. */
static void msix(void)
{
	uint8_t *memory = aligned_alloc(4096, 4096);
	struct mlx5dv_devx_umem *umem;
	struct flexio_cq *host;
	struct flexio_cq_attr attr;
	struct bench b;
	struct eq e;

	CHECK(memory);
	memset(memory, 0xff, 4096);
	bench_up(&b, QUEUE_ARMS | QUEUE_RINGS);
	bench_queue(&b, 4);
	eq_up(&e, b.ctx, 3, 0);
	umem = mlx5dv_devx_umem_reg(b.ctx, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(umem);
	attr = b.attr;
	queue_make(b.p, 4, 0, &attr); /* a record of its own */
	attr.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_MSIX_EMULATED_CQ;
	attr.emulated_eqn = e.number;
	attr.always_armed = 1;
	attr.overrun_ignore = 1;
	attr.cq_ring_qmem =
		(struct flexio_qmem){.memtype = FLEXIO_MEMTYPE_HOST, .umem_id = umem->umem_id};
	OK(flexio_cq_create(b.p, NULL, &attr, &host));
	queue_set(&b, rings, flexio_cq_get_cq_num(host));
	for (unsigned i = 0; i < 40; i++) {
		eq_ring(&e, true);
		call2(b.p, &complete, b.cqn, 1);
		CHECK(eq_fires(&e, COME_MS));
		eq_expect(&e, flexio_cq_get_cq_num(host), 1);
		CHECK((memory[(i & 15) * 64 + 63] & 1) == (i >> 4 & 1));
		queue_await(&b, ends, i + 1);
	}
	OK(flexio_cq_destroy(host));
	CHECK(!mlx5dv_devx_umem_dereg(umem));
	free(memory);
	eq_down(&e);
	bench_down(&b);
}

/* As drivers do it: what has been seen, in the record and in the page. */
static void cq_arm(const struct bench *b, uint32_t sn, uint32_t ci)
{
	uint32_t armed = (sn & 3) << 28 | (ci & 0xffffff);
	uint32_t record[2] = {htobe32(ci & 0xffffff), htobe32(armed)};

	OK(flexio_host2dev_memcpy(b->p, record, sizeof(record), b->record));
	__atomic_store_n((uint64_t *)(void *)((uint8_t *)b->attr.uar_base_addr + UAR_CQ),
			 htobe64((uint64_t)armed << 32 | b->cqn), __ATOMIC_RELEASE);
}

/* A queue of the host's, in memory of the DPA: armed in the page that its attributes name. */
static void page(void)
{
	struct flexio_cq_attr attr;
	struct receiver *r;
	struct flexio_cq *cq;
	struct peer *peer;
	struct bench b;
	struct eq e;

	bench_up(&b, 0);
	eq_up(&e, b.ctx, 3, 0);
	attr = b.attr;
	attr.uar_base_addr = e.uar->base_addr;
	queue_make(b.p, 4, 0, &attr);
	FAILS(flexio_cq_create(b.p, NULL, &attr, &cq)); /* a UAR of the process's has no page */
	attr.uar_id = e.uar->page_id;
	attr.uar_base_addr = (uint8_t *)e.uar->base_addr + UAR_CQ;
	FAILS(flexio_cq_create(b.p, NULL, &attr, &cq));
	b.attr.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_MSIX_EMULATED_CQ;
	b.attr.thread = NULL;
	b.attr.emulated_eqn = e.number;
	b.attr.uar_id = e.uar->page_id;
	b.attr.uar_base_addr = e.uar->base_addr;
	bench_queue(&b, 4);
	r = receiver_with_peer(b.ctx, b.cqn, 0, &peer);
	receiver_post(r, 40);
	eq_ring(&e, true);
	for (uint32_t i = 0; i < 20; i++) {
		/* one makes no event, one that comes behind the arming does */
		peer_send(peer, 1, 64);
		CHECK(i > 2 || !eq_fires(&e, STILL_MS));
		CHECK(!eq_next(&e));
		cq_arm(&b, i, 2 * i + 1);
		peer_send(peer, 1, 64);
		CHECK(eq_fires(&e, COME_MS));
		eq_expect(&e, b.cqn, 1);
		eq_ring(&e, true);
	}
	peer_free(peer);
	receiver_free(r);
	OK(flexio_cq_destroy(b.cq));
	b.cq = NULL;
	eq_down(&e);
	bench_down(&b);
}

/* ---- event queues of the host's ---- */

#define COOKIE 0x1234567890ull

/* The object of the last creation by DEVX: the library's calls come by the program. */
static struct mlx5dv_devx_obj *created;

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *ctx, const void *in,
					       size_t inlen, void *out, size_t outlen)
{
	__typeof__(&mlx5dv_devx_obj_create) next;

	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_devx_obj_create");
	CHECK(next);
	created = next(ctx, in, inlen, out, outlen);
	return created;
}

/* So many events of that queue's completions come to the channel, and no more. */
static void channel_expect(struct mlx5dv_devx_event_channel *channel, uint32_t cqn, unsigned n)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};
	struct {
		struct mlx5dv_devx_async_event_hdr hdr;
		uint8_t eqe[EQE_BYTES];
	} event;

	for (; n; n--) {
		CHECK(poll(&p, 1, COME_MS) == 1);
		CHECK(mlx5dv_devx_get_event(channel, &event.hdr, sizeof(event)) == sizeof(event));
		CHECK(event.hdr.cookie == COOKIE && prm_get(event.eqe, EQE_TYPE) == EQE_COMP);
		CHECK(prm_get(event.eqe, EQE_COMP_CQN) == cqn);
	}
	CHECK(poll(&p, 1, STILL_MS) == 0);
}

/* A queue of the DPA that names the event queue of a completion vector: its events come to who has subscribed to
 * it, be they of messages or of bells. */
static void host_vector(uint8_t element, unsigned vector)
{
	struct mlx5dv_devx_event_channel *channel;
	uint16_t type = EQE_COMP;
	struct receiver *r;
	struct peer *peer;
	struct bench b;
	struct eq e;

	bench_up(&b, 0);
	CHECK(!mlx5dv_devx_query_eqn(b.ctx, vector, &e.number));
	eq_cq(&b, &e, element, 6);
	channel = mlx5dv_devx_create_event_channel(b.ctx, 0);
	CHECK(channel);
	/* before anybody listens they go to nobody */
	call2(b.p, &complete, b.cqn, 1);
	CHECK(!mlx5dv_devx_subscribe_devx_event(channel, created, sizeof(type), &type, COOKIE));
	channel_expect(channel, b.cqn, 0);
	call2(b.p, &complete, b.cqn, 3);
	channel_expect(channel, b.cqn, 3);
	r = receiver_with_peer(b.ctx, b.cqn, 0, &peer);
	receiver_post(r, 4);
	for (unsigned i = 0; i < 4; i++) {
		peer_send(peer, 1, 64);
		channel_expect(channel, b.cqn, 1);
	}
	peer_free(peer);
	receiver_free(r);
	OK(flexio_cq_destroy(b.cq));
	b.cq = NULL;
	mlx5dv_devx_destroy_event_channel(channel);
	bench_down(&b);
}

static void event_queue_host(void)
{
	static const uint8_t elements[] = {FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ,
					   FLEXIO_CQ_ELEMENT_TYPE_DPA_MSIX_EMULATED_CQ};

	for (size_t i = 0; i < sizeof(elements); i++)
		host_vector(elements[i], 0);
}

/* The same of a queue that the program has made: what messages bring, and what bells do. */
static void event_queue_messages(void)
{
	struct receiver *r;
	struct peer *peer;
	struct bench b;
	struct eq e;

	bench_up(&b, 0);
	eq_up(&e, b.ctx, 3, 0);
	eq_cq(&b, &e, FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ, 6);
	r = receiver_with_peer(b.ctx, b.cqn, 0, &peer);
	receiver_post(r, 40);
	for (unsigned i = 0; i < 40; i++) {
		eq_ring(&e, true);
		peer_send(peer, 1, 64);
		CHECK(eq_fires(&e, COME_MS));
		eq_expect(&e, b.cqn, 1);
		eq_ring(&e, true);
		call2(b.p, &complete, b.cqn, 1);
		CHECK(eq_fires(&e, COME_MS));
		eq_expect(&e, b.cqn, 1);
	}
	peer_free(peer);
	receiver_free(r);
	OK(flexio_cq_destroy(b.cq));
	b.cq = NULL;
	eq_down(&e);
	bench_down(&b);
}

const struct host_case eq_cases[] = {
	{"event_queue", event_queue},
	{"event_queue_device", event_queue_device},
	{"event_queue_types", event_queue_types},
	{"event_queue_host", event_queue_host},
	{"event_queue_messages", event_queue_messages},
	{"msix", msix},
	{"page", page},
	{NULL, NULL},
};
