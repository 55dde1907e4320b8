// SPDX-License-Identifier: BSD-2-Clause
/* The host program of tests/flexio/faults; the arguments are names of cases. */
#include "host.h"

#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CQE_BYTES 64u
#define CQES_LOG  4u

struct ibv_context *host_device(void)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	static struct ibv_context *ctx;
	struct ibv_device **list;

	if (ctx)
		return ctx;
	list = ibv_get_device_list(NULL);
	CHECK(list && list[0]);
	ctx = mlx5dv_open_device(list[0], &attr);
	CHECK(ctx);
	ibv_free_device_list(list);
	return ctx;
}

struct flexio_process *host_process(void)
{
	struct flexio_process *p;

	OK(flexio_process_create(host_device(), faults_app, NULL, &p));
	/* It tells of what comes later. */
	CHECK(flexio_err_handler_fd(p) >= 0);
	return p;
}

bool is_failed(struct flexio_process *p, int wait_ms)
{
	struct pollfd fd = {.fd = flexio_err_handler_fd(p), .events = POLLIN};

	CHECK(fd.fd >= 0);
	return poll(&fd, 1, wait_ms) == 1 && fd.revents & POLLIN;
}

uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t call(struct flexio_process *p, flexio_func_t *f, uint64_t a)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(p, f, &value, a));
	return value;
}

void word_await(struct flexio_process *p, flexio_uintptr_t addr, uint64_t value)
{
	for (unsigned i = 0; i < PATIENT_MS && call(p, &peek, addr) < value; i++)
		usleep(1000);
	CHECK(call(p, &peek, addr) >= value);
}

flexio_uintptr_t words_make(struct flexio_process *p)
{
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(p, 16, &at));
	OK(flexio_buf_dev_memset(p, 0, 16, at));
	return at;
}

void core_write(struct flexio_process *p, const char *name)
{
	size_t bytes = flexio_app_get_elf_size(faults_app);
	uint64_t *elf = malloc(bytes);
	char path[64];
	FILE *f;

	OK(flexio_coredump_create(p, name));
	snprintf(path, sizeof(path), "%s.image", name);
	f = fopen(path, "w");
	CHECK(elf && f);
	OK(flexio_app_get_elf(faults_app, elf, bytes));
	CHECK(fwrite(elf, 1, bytes, f) == bytes && !fclose(f));
	free(elf);
}

/* ---- calls ---- */

static void *failing_call_main(void *arg)
{
	struct failing_call *c = arg;
	uint64_t value;

	CHECK(flexio_process_call(c->p, c->f, &value, c->a, c->b) ==
	      (c->destroyed ? FLEXIO_STATUS_FAILED : FLEXIO_STATUS_FATAL_ERR));
	return NULL;
}

void failing_call_start(struct failing_call *c)
{
	CHECK(!pthread_create(&c->thread, NULL, failing_call_main, c));
}

void failing_call_end(struct failing_call *c)
{
	CHECK(!pthread_join(c->thread, NULL));
}

/* ---- handlers ---- */

void handler_make(struct handler *h, struct flexio_process *p, uint64_t arg)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &handle};
	struct flexio_cq_attr cq = {.log_cq_depth = CQES_LOG};
	flexio_uintptr_t ring;

	h->p = p;
	OK(flexio_event_handler_create(p, &attr, &h->eh));
	OK(flexio_buf_dev_alloc(p, CQE_BYTES << CQES_LOG, &ring));
	OK(flexio_buf_dev_memset(p, 0xff, CQE_BYTES << CQES_LOG, ring));
	OK(flexio_buf_dev_alloc(p, 8, &cq.cq_dbr_daddr));
	OK(flexio_buf_dev_memset(p, 0, 8, cq.cq_dbr_daddr));
	cq.cq_ring_qmem = (struct flexio_qmem){.memtype = FLEXIO_MEMTYPE_DPA, .daddr = ring};
	cq.uar_id = flexio_uar_get_id(flexio_process_get_uar(p));
	cq.thread = flexio_event_handler_get_thread(h->eh);
	OK(flexio_cq_create(p, NULL, &cq, &h->cq));
	OK(flexio_event_handler_run(h->eh, arg));
}

void handler_activate(const struct handler *h)
{
	uint64_t value;

	/* May be stopped, if the handler fails meanwhile. */
	(void)flexio_process_call(h->p, &complete, &value, (uint64_t)flexio_cq_get_cq_num(h->cq));
}

/* ---- cases ---- */

static void case_run(const char *name)
{
	const struct host_case *const all[] = {kind_cases, failure_cases};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct host_case *c = all[i]; c->name; c++)
			if (!strcmp(c->name, name)) {
				c->run();
				return;
			}
	CHECK_SAY(false, "no case %s", name);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	for (int i = 1; i < argc; i++)
		case_run(argv[i]);
	ibv_close_device(host_device());
	return 0;
}
