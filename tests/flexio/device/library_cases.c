// SPDX-License-Identifier: BSD-2-Clause
/* The device library on the DPA. */
#include <pthread.h>

#include "process.h"
#include "verbs_device.h"

#define THREADS 16u
#define ROUNDS	2000u

static void spinlocks(void)
{
	call_from_threads(count_locked, THREADS, ROUNDS, 0);
	CHECK(CALL(count_locked, (uint64_t)0) == THREADS * ROUNDS);
	/* the first try takes it, the second does not */
	CHECK(CALL(try_lock, (uint64_t)0) == 1);
}

static void atomics(void)
{
	const uint64_t total = THREADS * ROUNDS;

	call_from_threads(count_atomic, THREADS, ROUNDS, 0);
	CHECK(CALL(count_atomic, (uint64_t)0) == (total | total << 32));
}

static void *take(void *arg)
{
	uint64_t *wrong = arg;

	*wrong = CALL(take_messages, (uint64_t)10000);
	return NULL;
}

static void fences_order(void)
{
	pthread_t taker;
	uint64_t wrong = 1;

	CHECK(CALL(fences, (uint64_t)77) == 77);
	CHECK(!pthread_create(&taker, NULL, take, &wrong));
	CALL(pass_messages, (uint64_t)10000);
	CHECK(!pthread_join(taker, NULL));
	CHECK(wrong == 0);
}

/* Of one process and of the next. */
static void values_at_the_start(void)
{
	CHECK(CALL(initial_values, (uint64_t)0) == 0);
	CHECK(CALL(initial_values, (uint64_t)0) == 2);
	process_close();
	process_open();
	CHECK(CALL(initial_values, (uint64_t)0) == 0);
}

static void clocks(void)
{
	CHECK(CALL(clocks_grow, (uint64_t)100000) == 1);
}

static void fixed(void)
{
	CHECK(CALL(fixed_point, (uint64_t)0) == 1);
}

static void libc(void)
{
	CHECK(CALL(library, (uint64_t)0) == 0);
}

static void error_number(void)
{
	CHECK(CALL(read_errno, (uint64_t)0) == 0);
}

/* ---- counters of the ports ---- */

/* What sysfs says of the first port, in bytes. */
static uint64_t counted(const char *name)
{
	char path[256];
	unsigned long words = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/counters/%s",
		 ibv_get_device_name(context->device), name);
	CHECK_SAY(file = fopen(path, "r"), "%s", path);
	CHECK(fscanf(file, "%lu", &words) == 1);
	fclose(file);
	return 4 * words;
}

/* A datagram of so many bytes, to ourselves. */
static void send_one(unsigned int bytes)
{
	static char buffer[4096];
	struct device_port port = {.ctx = context};
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;
	struct ibv_sge recv_sge = {(uintptr_t)buffer, bytes, 0}, send_sge = recv_sge;
	struct ibv_recv_wr recv = {.sg_list = &recv_sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &send_sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;
	struct device_address self;
	struct ibv_wc wc;

	CHECK(pd && cq && mr && (qp = ibv_create_qp(pd, &init)));
	CHECK(!ibv_query_port(context, DEVICE_PORT, &port.attr));
	port.ethernet = port.attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	port.global = port.ethernet;
	CHECK(!ibv_query_gid(context, DEVICE_PORT, 0, &port.gid));
	recv_sge.lkey = send_sge.lkey = mr->lkey;
	self = device_address(&port, qp, 0);
	device_qp_init(qp, &device_default_connection);
	device_qp_connect(&port, qp, &device_default_connection, &self, 0);
	CHECK(!ibv_post_recv(qp, &recv, &bad_recv) && !ibv_post_send(qp, &send, &bad_send));
	for (int done = 0; done < 2;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		CHECK(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS));
		done += n;
	}
	CHECK(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) &&
	      !ibv_dealloc_pd(pd));
}

static void ports_are_counted(void)
{
	uint64_t before = CALL(port_bytes, (uint64_t)0), after;

	CHECK(before != UINT64_MAX);
	send_one(4000);
	after = CALL(port_bytes, (uint64_t)0);
	CHECK((uint32_t)after >= (uint32_t)before + 4000 && after >> 32 >= (before >> 32) + 4000);
	CHECK((uint32_t)after == counted("port_rcv_data") &&
	      after >> 32 == counted("port_xmit_data"));
}

static void wrong_counters_are_faults(void)
{
	for (uint64_t kind = 0; kind <= 5; kind++) {
		uint64_t result;

		/* 5: an address that is nobody's */
		CHECK(flexio_process_call(process, port_bytes_wrong, &result, kind) ==
		      FLEXIO_STATUS_FATAL_ERR);
		CHECK(flexio_err_status_get(process) == FLEXIO_DEV_FATAL_ERROR);
		process_close();
		process_open();
	}
}

const struct test_case library_cases[] = {
	{"spin locks exclude, trylock says who has it P284", spinlocks},
	{"atomic counters of 32 and 64 bits P292", atomics},
	{"fences compile in all shapes and order messages P285", fences_order},
	{"variables begin with their values in each process P294", values_at_the_start},
	{"clocks grow P286", clocks},
	{"fixed point P287", fixed},
	{"strings and memory P293", libc},
	{"counters of the ports are what sysfs has P288", ports_are_counted},
	{"wrong counters end the process P288 P289", wrong_counters_are_faults},
	{"errno is read and reset O281", error_number},
	{0},
};
