// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the device library hands through the door, and what it does by itself: contexts, ends, messages, traces,
 * doorbells, windows, counters, fixed point.  Flex IO statements: 248, 253, 281, 286, 287, 290.
 */
#include <string.h>

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_2410.h>
#include <libflexio-dev/flexio_dev_err.h>
#include <libflexio-dev/flexio_dev_perf.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <libflexio-dev/flexio_dev_tracer.h>

#include "check.h"
#include "device_image.h"

/* Both generations side by side. */
#undef flexio_dev_window_config
#undef flexio_dev_window_mkey_config
#undef flexio_dev_window_ptr_acquire
#undef flexio_dev_window_copy_from_host
#undef flexio_dev_window_copy_to_host

extern struct dpa_image_info __dpa_image_info;

static void expect_called(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const uint64_t args[4] = {a, b, c, d};

	CHECK_SAY(device_called && !strcmp(device_called, name), "%s, not %s", device_called, name);
	for (int i = 0; i < 4; i++)
		CHECK_SAY(device_args[i] == args[i], "%s: argument %d is 0x%lx, not 0x%lx", name, i,
			  device_args[i], args[i]);
	device_called = NULL;
}

static void expect_message(uint32_t stream, uint32_t level, const char *text)
{
	static uint32_t messages;

	CHECK_SAY(device_messages == ++messages, "%u messages, not %u", device_messages, messages);
	CHECK(device_message_stream == stream && device_message_level == level);
	CHECK_SAY(!strcmp(device_message, text), "\"%s\", not \"%s\"", device_message, text);
}

/* Flex IO statements: O281 */
static void contexts(void)
{
	struct flexio_dev_thread_ctx *ctx = NULL;

	device_ctx->thread_id = 17;
	device_ctx->thread_local_storage = 0x1234567890;
	device_ctx->thread_errno = 5;
	CHECK(!flexio_dev_get_thread_ctx(&ctx) && ctx == device_ctx);
	CHECK(flexio_dev_get_thread_id(ctx) == 17);
	CHECK(flexio_dev_get_thread_local_storage(ctx) == 0x1234567890);
	CHECK(flexio_dev_get_errno(ctx) == 5);
	CHECK(flexio_dev_get_and_rst_errno(ctx) == 5 && flexio_dev_get_errno(ctx) == 0);
	device_ctx->thread_errno = 6;
	flexio_dev_rst_errno(ctx);
	CHECK(device_ctx->thread_errno == 0);
	CHECK(!strcmp(flexio_dev_get_current_thread_name(), "a name"));
}

static void ends(void)
{
	DEVICE_TRY(flexio_dev_thread_reschedule());
	expect_called("end", DPA_END_RESCHEDULE, 0, 0, 0);
	DEVICE_TRY(flexio_dev_reschedule());
	expect_called("end", DPA_END_RESCHEDULE, 0, 0, 0);
	DEVICE_TRY(flexio_dev_thread_retrigger());
	expect_called("end", DPA_END_RETRIGGER, 0, 0, 0);
	DEVICE_TRY(flexio_dev_thread_finish());
	expect_called("end", DPA_END_FINISH, 0, 0, 0);
	DEVICE_TRY(flexio_dev_process_finish());
	expect_called("end", DPA_END_PROCESS_FINISH, 0, 0, 0);
	DEVICE_TRY(flexio_dev_finish());
	expect_called("end", DPA_END_PROCESS_FINISH, 0, 0, 0);
	DEVICE_TRY(flexio_dev_error(200));
	expect_called("error", 200, 0, 0, 0);
	flexio_dev_yield(device_ctx);
	expect_called("yield", 0, 0, 0, 0);
	flexio_dev_yield_and_retrigger();
	expect_called("yield", 1, 0, 0, 0);
	flexio_dev_event_handler_activate(0x12345678);
	expect_called("activate", 0x12345678, 0, 0, 0);
	for (uint32_t round = 0; !device_called; round++)
		__dpa_spin_wait(round);
	expect_called("relax", 0, 0, 0, 0);
}

/* Flex IO statements: N248 N252 N266 */
static void messages(void)
{
	struct flexio_dev_perf_data counted = {123, 456, 1};
	char text[] = "puts is 100% verbatim: %s\n";
	char big[3000];

	flexio_dev_perf_print(&counted, "WORD");
	expect_message(0, FLEXIO_MSG_DEV_INFO, "WORD: instructions/cycles: 456/123\n");

	CHECK(flexio_dev_print("Calculate: %lu + %lu = %lu\n", 2ul, 3ul, 5ul) == 21);
	expect_message(0, FLEXIO_MSG_DEV_INFO, "Calculate: 2 + 3 = 5\n");
	CHECK(flexio_dev_msg(7, FLEXIO_MSG_DEV_DEBUG, "%s", "x") == 1);
	expect_message(7, FLEXIO_MSG_DEV_DEBUG, "x");
	CHECK(flexio_dev_msg_broadcast(FLEXIO_MSG_DEV_ERROR, "all") == 3);
	expect_message(DPA_STREAM_BROADCAST, FLEXIO_MSG_DEV_ERROR, "all");
	CHECK(flexio_dev_puts(device_ctx, text) == (int)strlen(text));
	expect_message(0, FLEXIO_MSG_DEV_INFO, text);
	/* no text, no message */
	CHECK(flexio_dev_print("%s", "") == 0);

	/* each length around those where the way changes; what is too long loses its end */
	for (size_t length = 250; length < sizeof(big); length += length == 262 ? 1780 : 1) {
		memset(big, 'm', length);
		big[length] = '\0';
		CHECK(flexio_dev_print("%s", big) == (int)length);
		if (length > DPA_MESSAGE_BYTES)
			big[DPA_MESSAGE_BYTES] = '\0';
		expect_message(0, FLEXIO_MSG_DEV_INFO, big);
		if (length > DPA_MESSAGE_BYTES + 3)
			break;
	}
	memset(big, 'p', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	CHECK(flexio_dev_puts(device_ctx, big) == sizeof(big) - 1);
	big[DPA_MESSAGE_BYTES] = '\0';
	expect_message(0, FLEXIO_MSG_DEV_INFO, big);
}

static void traces(void)
{
	static const uint64_t all[] = {1, 2, 3, 4, 5, 6};
	struct dpa_tracer *tracer = &__dpa_image_info.tracer[3];
	uint32_t wanted = 0;

	flexio_dev_trace_0(3, FLEXIO_MSG_DEV_ERROR, 1);
	CHECK(device_traces == 0);
	tracer->valid_lvl = FLEXIO_MSG_DEV_INFO;
	__dpa_image_info.tracers[3] = (uintptr_t)tracer;
	CHECK(g_dev_p_tracer_ctx->tracer_ctx[3]->valid_lvl == FLEXIO_MSG_DEV_INFO);
	flexio_dev_trace_6(3, FLEXIO_MSG_DEV_DEBUG, 1, 1, 2, 3, 4, 5, 6);
	CHECK(device_traces == 0);
	for (uint32_t n = 0; n <= 6; n++) {
		switch (n) {
		case 0:
			flexio_dev_trace_0(3, FLEXIO_MSG_DEV_INFO, 10);
			break;
		case 1:
			flexio_dev_trace_1(3, FLEXIO_MSG_DEV_INFO, 11, 1);
			break;
		case 2:
			flexio_dev_trace_2(3, FLEXIO_MSG_DEV_INFO, 12, 1, 2);
			break;
		case 3:
			flexio_dev_trace_3(3, FLEXIO_MSG_DEV_INFO, 13, 1, 2, 3);
			break;
		case 4:
			flexio_dev_trace_4(3, FLEXIO_MSG_DEV_INFO, 14, 1, 2, 3, 4);
			break;
		case 5:
			flexio_dev_trace_5(3, FLEXIO_MSG_DEV_INFO, 15, 1, 2, 3, 4, 5);
			break;
		default:
			flexio_dev_trace_6(3, FLEXIO_MSG_DEV_INFO, 16, 1, 2, 3, 4, 5, 6);
		}
		CHECK(device_traces == ++wanted && device_trace_stream == 3 &&
		      device_trace_level == FLEXIO_MSG_DEV_INFO &&
		      device_trace.format_id == 10 + n);
		for (uint32_t i = 0; i < 6; i++)
			CHECK(device_trace.args[i] == (i < n ? all[i] : 0));
	}
	flexio_dev_trace_0(255, FLEXIO_MSG_DEV_INFO, 1);
	CHECK(device_traces == wanted);
	flexio_dev_tracer_flush(3);
	expect_called("trace_send", 3, 0, 0, 0);
	flexio_dev_tracer_notify_host(3, 9);
	expect_called("trace_send", 3, 9, 0, 0);
	/* no record is not "all records" */
	flexio_dev_tracer_notify_host(3, 0);
	CHECK(!device_called);
}

/* Numbers are cut to the bits that a register has.  Flex IO statements: P290 */
static void doorbells(void)
{
	CHECK(!flexio_dev_qp_sq_ring_db(device_ctx, 0xfffe, 0xff123456));
	expect_called("sq_ring", 0xfffe, 0x123456, 0, 0);
	CHECK(!flexio_dev_cq_arm(device_ctx, 0x11abcdef, 0xff123456));
	expect_called("cq_arm", 0xabcdef, 0x123456, 0, 0);
	CHECK(!flexio_dev_eq_update_ci(device_ctx, 0xffffffff, 0xff123456));
	expect_called("eq_update", 0x3ffffff, 0x123456, 0, 0);
	CHECK(!flexio_dev_msix_send(device_ctx, 0xff123456));
	expect_called("msix_send", 0x123456, 0, 0, 0);
	CHECK(!flexio_dev_db_ctx_arm(device_ctx, 0xff123456, 0xffffffff));
	expect_called("emu_arm", 0x123456, 0x3ffffff, 0, 0);
	CHECK(!flexio_dev_db_ctx_force_trigger(device_ctx, 0xff123456, 3));
	expect_called("emu_trigger", 0x123456, 3, 0, 0);
	CHECK(!flexio_dev_cc_ring_db(device_ctx, 0xffff, 0xffffffff, 3, CC_DB_NEXT_ACT_FW));
	expect_called("cc_ring", 0xffff, 0xffffffff, 1, CC_DB_NEXT_ACT_FW);
	flexio_dev_cc_ring_db_low64bit(OUTBOX_V_CC_DB(0x12345678, 1, 2, 0xabcd));
	expect_called("cc_ring", 0xabcd, 0x12345678, 1, 2);
	flexio_dev_cc_ring_db_high64bit(0x123456789abcdef0);
	expect_called("cc_ring_high", 0x123456789abcdef0, 0, 0, 0);
	CHECK(flexio_dev_read_db_value(0x1fffffffe) == 0x600d);
	expect_called("emu_value", 0x3fffffe, 0, 0, 0);
	device_status = DPA_SUCCESS;
	CHECK(flexio_dev_cross_device_ring_db(7, 0x1abcdef, 0x12345) == FLEXIO_DEV_STATUS_SUCCESS);
	expect_called("sq_ring_at", 7, 0x2345, 0xabcdef, 0);
	device_status = DPA_FAILED;
	CHECK(flexio_dev_cross_device_ring_db(7, 1, 2) == FLEXIO_DEV_STATUS_FAILED);
	expect_called("sq_ring_at", 7, 2, 1, 0);
	device_status = DPA_SUCCESS;
	/* no context is that of the calling thread */
	CHECK(!flexio_dev_cq_arm(NULL, 1, 2));
	expect_called("cq_arm", 1, 2, 0, 0);
}

/* With each answer of the runtime. */
static void windows_and_outboxes(void)
{
	char bytes[8];
	uint64_t at = (uintptr_t)bytes;
	flexio_uintptr_t daddr;

	for (device_status = DPA_SUCCESS; device_status <= DPA_FAILED; device_status++) {
		flexio_dev_status_t expected =
			device_status ? FLEXIO_DEV_STATUS_FAILED : FLEXIO_DEV_STATUS_SUCCESS;

		CHECK(flexio_dev_window_config(device_ctx, 5, 6) == expected);
		expect_called("window_config", 0, 5, 6, 0);
		CHECK(flexio_dev_multi_window_config(FLEXIO_DEV_WINDOW_ENTITY_1, 5, 6) == expected);
		expect_called("window_config", 1, 5, 6, 0);
		CHECK(flexio_dev_window_mkey_config(device_ctx, 7) == expected);
		expect_called("window_mkey", 0, 7, 0, 0);
		CHECK(flexio_dev_multi_window_mkey_config(FLEXIO_DEV_WINDOW_ENTITY_1, 7) ==
		      expected);
		expect_called("window_mkey", 1, 7, 0, 0);
		daddr = 99;
		CHECK(flexio_dev_window_ptr_acquire(device_ctx, 8, &daddr) == expected);
		expect_called("window_acquire", 0, 8, 0, 0);
		CHECK(daddr == (device_status ? 99 : 0x10008));
		CHECK(flexio_dev_multi_window_ptr_acquire(FLEXIO_DEV_WINDOW_ENTITY_1, 8, &daddr) ==
		      expected);
		expect_called("window_acquire", 1, 8, 0, 0);
		CHECK(flexio_dev_window_copy_to_host(device_ctx, 9, bytes, 8) == expected);
		expect_called("window_copy to", 0, 9, at, 8);
		CHECK(flexio_dev_window_copy_from_host(device_ctx, bytes, 9, 8) == expected);
		expect_called("window_copy from", 0, 9, at, 8);
		CHECK(flexio_dev_multi_window_copy_to_host(FLEXIO_DEV_WINDOW_ENTITY_1, 9, bytes,
							   8) == expected);
		expect_called("window_copy to", 1, 9, at, 8);
		CHECK(flexio_dev_multi_window_copy_from_host(FLEXIO_DEV_WINDOW_ENTITY_1, bytes, 9,
							     8) == expected);
		expect_called("window_copy from", 1, 9, at, 8);
		CHECK(flexio_dev_outbox_config(device_ctx, 10) == expected);
		expect_called("outbox_config", 10, 0, 0, 0);
		flexio_dev_outbox_config_fast(device_ctx, 11);
		expect_called("outbox_config", 11, 0, 0, 0);
		CHECK(flexio_dev_outbox_config_uar_extension(device_ctx, 12) == expected);
		expect_called("outbox_uar", 12, 0, 0, 0);
	}
	device_status = DPA_SUCCESS;
}

/* Flex IO statements: P286 P291 */
static void counters(void)
{
	uint32_t values[2], ids[2];
	uint64_t cycles = __dpa_thread_cycles(), time = __dpa_thread_time();

	CHECK(__dpa_thread_cycles() > cycles && __dpa_thread_time() > time);
	cycles = __dpa_thread_inst_ret();
	CHECK(__dpa_thread_inst_ret() > cycles);
	flexio_dev_nic_counters_config(values, ids, 2);
	expect_called("nic_config", (uintptr_t)values, (uintptr_t)ids, 2, 0);
	flexio_dev_nic_counters_sample();
	expect_called("nic_sample", 0, 0, 0, 0);
	CHECK(flexio_dev_get_pcc_table_base(3) == 0x7000);
	expect_called("pcc_table", 3, 0, 0, 0);
}

/* Within one unit of the last place, against arithmetic in more digits.  Flex IO statements: P287 */
static void fixed_point(void)
{
	struct rng rng = {.state = 88172645463325252ull};

	CHECK(__dpa_fxp_rcp(0x20000) == 0x8000);
	CHECK(__dpa_fxp_pow2(0x30000) == 0x80000);
	CHECK(__dpa_fxp_log2(0x80000) == 0x30000);
	CHECK(__dpa_fxp_pow2(-0x10000) == 0x8000 && __dpa_fxp_log2(0x8000) == -0x10000);
	CHECK(__dpa_fxp_rcp(0) == UINT32_MAX && __dpa_fxp_rcp(1) == UINT32_MAX &&
	      __dpa_fxp_rcp(2) == 1u << 31);
	CHECK(__dpa_fxp_pow2(16 << 16) == UINT32_MAX && __dpa_fxp_pow2(INT32_MIN) == 0);
	CHECK(__dpa_fxp_log2(0) == INT32_MIN && __dpa_fxp_log2(1) == -16 * 65536);
	for (int i = 0; i < 100000; i++) {
		uint32_t n = (uint32_t)rng_next(&rng) >> rng_below(&rng, 32);
		int32_t x = (int32_t)rng_below(&rng, 32u << 16) - (16 << 16);
		double power = __builtin_exp2(x / 65536.0) * 65536.0;

		CHECK_SAY(__builtin_fabs(power - __dpa_fxp_pow2(x)) < 1.0 + power * 1e-9,
			  "2^(%d/65536)", x);
		if (!n)
			continue;
		CHECK_SAY(__builtin_fabs(__builtin_log2(n / 65536.0) * 65536.0 -
					 __dpa_fxp_log2(n)) < 1.001,
			  "log2 of %u/65536", n);
		if (n > 1)
			CHECK(__builtin_fabs(4294967296.0 / n - __dpa_fxp_rcp(n)) < 1.0);
	}
}

/* A context that is none is found where it is used. */
static void wild_contexts(void)
{
	struct flexio_dev_thread_ctx *wild = (void *)(uintptr_t)16;

	device_image_init();
	DEVICE_TRY(flexio_dev_rst_errno(wild));
	CHECK(device_refused && device_refused_addr == 16);
	DEVICE_TRY((void)flexio_dev_cq_arm(wild, 1, 2));
	CHECK(device_refused && !device_called);
	DEVICE_TRY((void)flexio_dev_get_thread_ctx((void *)wild));
	CHECK(device_refused && device_refused_write);
	DEVICE_TRY((void)flexio_dev_print((const char *)wild));
	CHECK(device_refused && !device_refused_write);
	/* a string within the region that has no end in it */
	memset(device_region, 'x', DEVICE_REGION_BYTES);
	DEVICE_TRY((void)flexio_dev_puts(NULL, (char *)device_region));
	CHECK(device_refused && device_refused_addr == device_begin() + DEVICE_REGION_BYTES);
}

int main(void)
{
	device_image_init();
	device_image_opens();
	contexts();
	ends();
	messages();
	traces();
	doorbells();
	windows_and_outboxes();
	counters();
	fixed_point();
	wild_contexts();
	return 0;
}
