// SPDX-License-Identifier: BSD-2-Clause
/* The host program of the bad input; see bad.h. */
#include "bad.h"

#include <stdio.h>
#include <unistd.h>

#define RING_BYTES 1024u

struct good good;
char bad_name[FLEXIO_MAX_NAME_LEN + 2];
char bad_text[64] = "not an ELF file";

static unsigned rows, wrong;
static FILE *captured;
static int log_fd;

void bad_function(void)
{
}

void bad_pack(void *argbuf, va_list ap)
{
	(void)argbuf;
	(void)ap;
}

/* ---- rows ---- */

void row_begin(const char *function)
{
	(void)function;
	CHECK(!ftruncate(fileno(captured), 0) && !lseek(fileno(captured), 0, SEEK_SET));
	CHECK(dup2(fileno(captured), STDERR_FILENO) == STDERR_FILENO);
}

/* One of the lines has the function in front, and the argument behind it. */
static bool log_names(char *text, const char *function, const char *words)
{
	char prefix[128];

	snprintf(prefix, sizeof(prefix), "flexio: error: %s: ", function);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (!strncmp(line, prefix, strlen(prefix)) && strstr(line + strlen(prefix), words))
			return true;
	return false;
}

void row_end(const char *function, const char *words, const char *how, bool as_expected)
{
	char text[8192], copy[8192];
	ssize_t n;
	bool named;

	CHECK(dup2(log_fd, STDERR_FILENO) == STDERR_FILENO);
	n = pread(fileno(captured), text, sizeof(text) - 1, 0);
	CHECK(n >= 0);
	text[n] = 0;
	memcpy(copy, text, sizeof(copy));
	named = !words || log_names(copy, function, words);
	rows++;
	if (as_expected && named)
		return;
	wrong++;
	printf("WRONG %s, %s %s: %s%s; it says: %s\n", function, words ? words : "", how,
	       as_expected ? "" : "another result, or one that is touched",
	       named ? "" : "no line that names both", text);
}

bool is_poison(const void *result, size_t bytes)
{
	const uint8_t *at = result;

	for (size_t i = 0; i < bytes; i++)
		if (at[i] != POISON)
			return false;
	return true;
}

/* ---- what is good ---- */

struct ibv_context *host_device(void)
{
	return good.ctx;
}

struct flexio_process *host_process(void)
{
	struct flexio_process *p;

	OK(flexio_process_create(good.ctx, calls_app, NULL, &p));
	return p;
}

static struct flexio_cmdq *cmdq_of(struct flexio_process *p)
{
	struct flexio_cmdq_attr attr = {.workers = 1, .batch_size = 1};
	struct flexio_cmdq *q;

	OK(flexio_cmdq_create(p, &attr, &q));
	return q;
}

static void cq_memory(struct flexio_process *p, struct flexio_cq_attr *attr)
{
	OK(flexio_buf_dev_alloc(p, 16 * 64, &attr->cq_ring_qmem.daddr));
	OK(flexio_buf_dev_alloc(p, 8, &attr->cq_dbr_daddr));
	OK(flexio_buf_dev_memset(p, 0, 8, attr->cq_dbr_daddr));
	attr->log_cq_depth = 4;
	attr->uar_id = flexio_uar_get_id(flexio_process_get_uar(p));
}

static struct flexio_cq *cq_for_queues(struct flexio_process *p)
{
	struct flexio_cq_attr attr = {.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ};
	struct flexio_cq *cq;

	cq_memory(p, &attr);
	OK(flexio_cq_create(p, NULL, &attr, &cq));
	return cq;
}

/* What a ring and its record take, one after the other; the record's 8 bytes are 0. */
static flexio_uintptr_t ring_of(struct flexio_process *p)
{
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(p, RING_BYTES + 64, &at));
	OK(flexio_buf_dev_memset(p, 0, RING_BYTES + 64, at));
	return at;
}

/* Queues for frames in *g, in a process of the device that has an Ethernet port. */
static void network_make(struct good *g)
{
	struct flexio_wq_attr *a = &g->wq_attr;

	OK(flexio_process_create(g->other_ctx, calls_app, NULL, &g->net));
	g->net_cq = cq_for_queues(g->net);
	g->net_cqn = flexio_cq_get_cq_num(g->net_cq);
	a->log_wq_stride = 5;
	a->log_wq_depth = 2;
	a->uar_id = flexio_uar_get_id(flexio_process_get_uar(g->net));
	a->pd = flexio_process_get_pd(g->net);
	a->wq_ring_qmem.daddr = ring_of(g->net);
	a->wq_dbr_qmem.daddr = a->wq_ring_qmem.daddr + RING_BYTES;
	OK(flexio_rq_create(g->net, g->other_ctx, g->net_cqn, a, &g->rq));
	OK(flexio_sq_create(g->net, g->other_ctx, g->net_cqn, a, &g->sq));
	OK(flexio_rmp_create(g->net, g->other_ctx, a, &g->rmp));
	OK(flexio_emu_db_to_cq_map(g->other_ctx, EMULATED_VHCA, g->doorbell, g->net_cq,
				   &g->emu_db_to_cq_ctx));
}

static void qp_make(struct good *g)
{
	uint32_t cqn = flexio_cq_get_cq_num(cq_for_queues(g->process));

	g->qp_attr = (struct flexio_qp_attr){
		.uar_id = flexio_uar_get_id(flexio_process_get_uar(g->process)),
		.pd = flexio_process_get_pd(g->process),
		.log_sq_depth = 2,
		.sq_cqn = cqn,
		.log_rq_depth = 2,
		.rq_cqn = cqn,
		.next_state = FLEXIO_QP_STATE_INIT,
		.path_mtu = FLEXIO_QP_QPC_MTU_BYTES_1K,
		.vhca_port_num = 1,
	};
	g->qp_attr.qp_wq_buff_qmem.daddr = ring_of(g->process);
	g->qp_attr.qp_wq_dbr_qmem.daddr = g->qp_attr.qp_wq_buff_qmem.daddr + RING_BYTES;
	OK(flexio_qp_create(g->process, g->ctx, &g->qp_attr, &g->qp));
}

/* All kinds of objects of a process, in *g. */
static void objects_make(struct good *g)
{
	static char *formats[] = {(char *)"%lu\n", NULL};
	struct flexio_process *p = g->process;

	OK(flexio_buf_dev_alloc(p, BUFFER_BYTES, &g->buffer));
	g->cmdq_attr = (struct flexio_cmdq_attr){.workers = 1, .batch_size = 1};
	g->event_handler_attr = (struct flexio_event_handler_attr){.host_stub_func = &on_error};
	g->mkey_attr =
		(struct flexio_mkey_attr){.pd = g->pd, .daddr = g->buffer, .len = BUFFER_BYTES};
	g->outbox_attr = (struct flexio_outbox_attr){.uar = flexio_process_get_uar(p)};
	g->stream_attr = (flexio_msg_stream_attr_t){
		.data_bsize = 4096, .level = FLEXIO_MSG_DEV_INFO, .tracer_msg_formats = formats};
	g->cmdq = cmdq_of(p);
	OK(flexio_event_handler_create(p, &g->event_handler_attr, &g->event_handler));
	g->thread = flexio_event_handler_get_thread(g->event_handler);
	cq_memory(p, &g->cq_attr);
	g->cq_attr.thread = g->thread;
	OK(flexio_cq_create(p, NULL, &g->cq_attr, &g->cq));
	OK(flexio_window_create(p, g->pd, &g->window));
	OK(flexio_device_mkey_create(p, &g->mkey_attr, &g->mkey));
	OK(flexio_uar_create(p, &g->uar));
	OK(flexio_outbox_create(p, &g->outbox_attr, &g->outbox));
	/* The default stream is another one: of that some things are not allowed. */
	OK(flexio_log_dev_init(p, &g->stream_attr, stdout, NULL));
	OK(flexio_msg_stream_create(p, &g->stream_attr, stdout, NULL, &g->msg_stream));
	qp_make(g);
	network_make(g);
}

/* A second set of everything, which goes. */
static void freed_make(void)
{
	struct good g = {
		.ctx = good.ctx, .other_ctx = good.other_ctx, .pd = good.pd, .doorbell = 1};

	OK(flexio_app_create(&good.app_attr, &g.app));
	g.process = host_process();
	objects_make(&g);
	good.freed.app = g.app;
	good.freed.process = g.process;
	good.freed.cmdq = g.cmdq;
	good.freed.window = g.window;
	good.freed.mkey = g.mkey;
	good.freed.outbox = g.outbox;
	good.freed.uar = g.uar;
	good.freed.event_handler = g.event_handler;
	good.freed.thread = g.thread;
	good.freed.cq = g.cq;
	good.freed.emu_db_to_cq_ctx = g.emu_db_to_cq_ctx;
	good.freed.msg_stream = g.msg_stream;
	good.freed.rq = g.rq;
	good.freed.sq = g.sq;
	good.freed.rmp = g.rmp;
	good.freed.qp = g.qp;
	OK(flexio_process_destroy(g.net));
	OK(flexio_process_destroy(g.process));
	OK(flexio_app_destroy(g.app));
}

static void ended_make(void)
{
	uint64_t value;

	good.failed = host_process();
	good.failed_cmdq = cmdq_of(good.failed);
	CHECK(flexio_process_call(good.failed, &fail, &value, (uint64_t)200) ==
	      FLEXIO_STATUS_FATAL_ERR);
	good.finished = host_process();
	CHECK(flexio_process_call(good.finished, &finish, &value) == FLEXIO_STATUS_FAILED);
}

static void good_make(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	size_t bytes = flexio_app_get_elf_size(calls_app);
	uint64_t *elf = malloc(bytes);

	CHECK(list && list[0] && list[1] && elf);
	good.ctx = ibv_open_device(list[0]);
	good.other_ctx = ibv_open_device(list[1]);
	CHECK(good.ctx && good.other_ctx);
	ibv_free_device_list(list);
	good.pd = ibv_alloc_pd(good.ctx);
	good.other_pd = ibv_alloc_pd(good.other_ctx);
	CHECK(good.pd && good.other_pd);
	OK(flexio_app_get_elf(calls_app, elf, bytes));
	good.app = calls_app;
	good.app_attr =
		(struct flexio_app_attr){.app_name = "good", .app_ptr = elf, .app_bsize = bytes};
	good.process_attr = (struct flexio_process_attr){.pd = good.pd};
	good.process = host_process();
	memset(bad_name, 'n', sizeof(bad_name) - 1);
	ended_make();
	/* These come first, so that their places may be taken again. */
	objects_make(&good);
	freed_make();
}

static void good_free(void)
{
	OK(flexio_process_destroy(good.net));
	OK(flexio_process_destroy(good.process));
	OK(flexio_process_destroy(good.failed));
	OK(flexio_process_destroy(good.finished));
	CHECK(!ibv_dealloc_pd(good.pd) && !ibv_dealloc_pd(good.other_pd));
	CHECK(!ibv_close_device(good.other_ctx) && !ibv_close_device(good.ctx));
	free(good.app_attr.app_ptr);
}

int main(void)
{
	log_fd = dup(STDERR_FILENO);
	captured = tmpfile();
	CHECK(log_fd >= 0 && captured);
	setvbuf(stdout, NULL, _IOLBF, 0);
	good_make();
	rows_run();
	good_free();
	printf("%u rows, %u wrong\n", rows, wrong);
	return wrong != 0;
}
