// SPDX-License-Identifier: BSD-2-Clause
#include "device_image.h"

#include <string.h>

#include "check.h"

/* What lies around the region exists, so that an access that is not checked is seen by the test and no crash. */
#define MARGIN 4096u

static uint8_t memory[MARGIN + DEVICE_REGION_BYTES + MARGIN] __attribute__((aligned(4096)));
uint8_t *const device_region = memory + MARGIN;
uint64_t device_window, device_window_bytes;
struct flexio_dev_thread_ctx *device_ctx;

bool device_refused, device_refused_write;
uint64_t device_refused_addr, device_refused_bytes;
jmp_buf device_fault;

uint32_t device_messages, device_message_stream, device_message_level, device_message_bytes;
char device_message[DPA_MESSAGE_BYTES + 1];
uint32_t device_traces, device_trace_sends, device_trace_stream, device_trace_level;
struct dpa_trace_record device_trace;
const char *device_called;
uint64_t device_args[4];
uint32_t device_status;

extern struct dpa_image_info __dpa_image_info;

static void called(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	device_called = name;
	device_args[0] = a;
	device_args[1] = b;
	device_args[2] = c;
	device_args[3] = d;
}

static void door_check(uint64_t addr, uint64_t bytes, uint32_t write)
{
	if (addr - device_window < device_window_bytes &&
	    bytes <= device_window_bytes - (addr - device_window))
		return;
	device_refused = true;
	device_refused_addr = addr;
	device_refused_bytes = bytes;
	device_refused_write = write;
	longjmp(device_fault, 1);
}

static struct flexio_dev_thread_ctx *door_thread_ctx(void)
{
	return device_ctx;
}

/* Ends do not return. */
static void door_end(uint32_t how)
{
	called("end", how, 0, 0, 0);
	longjmp(device_fault, 2);
}

static void door_error(uint32_t code)
{
	called("error", code, 0, 0, 0);
	longjmp(device_fault, 2);
}

static void door_yield(uint32_t retrigger)
{
	called("yield", retrigger, 0, 0, 0);
}

static void door_relax(void)
{
	called("relax", 0, 0, 0, 0);
}

static uint64_t door_time(void)
{
	static uint64_t now = 1000;

	return now += 1000;
}

static uint32_t door_window_config(uint32_t slot, uint32_t window_id, uint32_t mkey)
{
	called("window_config", slot, window_id, mkey, 0);
	return device_status;
}

static uint32_t door_window_mkey(uint32_t slot, uint32_t mkey)
{
	called("window_mkey", slot, mkey, 0, 0);
	return device_status;
}

static uint32_t door_window_acquire(uint32_t slot, uint64_t haddr, uint64_t *daddr)
{
	called("window_acquire", slot, haddr, 0, 0);
	*daddr = haddr + 0x10000;
	return device_status;
}

static uint32_t door_window_copy(uint32_t slot, uint32_t to_host, uint64_t haddr, uint64_t daddr,
				 uint64_t bytes)
{
	called(to_host ? "window_copy to" : "window_copy from", slot, haddr, daddr, bytes);
	return device_status;
}

static uint32_t door_outbox_config(uint32_t id)
{
	called("outbox_config", id, 0, 0, 0);
	return device_status;
}

static uint32_t door_outbox_uar(uint32_t id)
{
	called("outbox_uar", id, 0, 0, 0);
	return device_status;
}

static void door_sq_ring(uint32_t pi, uint32_t qpn)
{
	called("sq_ring", pi, qpn, 0, 0);
}

static void door_cq_arm(uint32_t ci, uint32_t cqn)
{
	called("cq_arm", ci, cqn, 0, 0);
}

static void door_eq_update(uint32_t ci, uint32_t eqn)
{
	called("eq_update", ci, eqn, 0, 0);
}

static void door_msix_send(uint32_t cqn)
{
	called("msix_send", cqn, 0, 0, 0);
}

static void door_emu_arm(uint32_t qpn, uint32_t id)
{
	called("emu_arm", qpn, id, 0, 0);
}

static void door_emu_trigger(uint32_t cqn, uint32_t id)
{
	called("emu_trigger", cqn, id, 0, 0);
}

static void door_cc_ring(uint32_t ccq, uint32_t rate, uint32_t rtt, uint32_t next)
{
	called("cc_ring", ccq, rate, rtt, next);
}

static void door_message(uint32_t stream, uint32_t level, const char *text, uint32_t bytes)
{
	CHECK(bytes <= DPA_MESSAGE_BYTES);
	device_messages++;
	device_message_stream = stream;
	device_message_level = level;
	device_message_bytes = bytes;
	memcpy(device_message, text, bytes);
	device_message[bytes] = '\0';
}

static void door_trace(uint32_t stream, uint32_t level, uint32_t format_id,
		       const uint64_t args[DPA_TRACE_ARGS])
{
	device_traces++;
	device_trace_stream = stream;
	device_trace_level = level;
	device_trace.format_id = format_id;
	memcpy(device_trace.args, args, sizeof(device_trace.args));
}

static void door_trace_send(uint32_t stream, uint32_t records)
{
	device_trace_sends++;
	called("trace_send", stream, records, 0, 0);
}

static void door_nic_config(uint64_t values, uint64_t ids, uint32_t count)
{
	called("nic_config", values, ids, count, 0);
}

static void door_nic_sample(void)
{
	called("nic_sample", 0, 0, 0, 0);
}

static uint64_t door_pcc_table(uint32_t gvmi)
{
	called("pcc_table", gvmi, 0, 0, 0);
	return 0x7000;
}

static uint32_t door_sq_ring_at(uint32_t device_id, uint32_t pi, uint32_t qpn)
{
	called("sq_ring_at", device_id, pi, qpn, 0);
	return device_status;
}

static uint32_t door_emu_value(uint32_t id)
{
	called("emu_value", id, 0, 0, 0);
	return 0x600d;
}

static void door_cc_ring_high(uint64_t value)
{
	called("cc_ring_high", value, 0, 0, 0);
}

static void door_activate(uint32_t id)
{
	called("activate", id, 0, 0, 0);
}

static void door_thread_name(void)
{
	memcpy(device_ctx->thread_name, "a name", 7);
}

static uint64_t door_worked(void)
{
	return door_time() / 2;
}

static struct dpa_reservation *door_reservation(void)
{
	static struct dpa_reservation reservation;

	return &reservation;
}

static const struct dpa_door table = {
	.version = DPA_DOOR_VERSION,
	.bytes = sizeof(struct dpa_door),
	.thread_ctx = door_thread_ctx,
	.end = door_end,
	.yield = door_yield,
	.error = door_error,
	.relax = door_relax,
	.time = door_time,
	.check = door_check,
	.window_config = door_window_config,
	.window_mkey = door_window_mkey,
	.window_acquire = door_window_acquire,
	.window_copy = door_window_copy,
	.outbox_config = door_outbox_config,
	.outbox_uar = door_outbox_uar,
	.sq_ring = door_sq_ring,
	.cq_arm = door_cq_arm,
	.eq_update = door_eq_update,
	.msix_send = door_msix_send,
	.emu_arm = door_emu_arm,
	.emu_trigger = door_emu_trigger,
	.cc_ring = door_cc_ring,
	.message = door_message,
	.trace = door_trace,
	.trace_send = door_trace_send,
	.nic_config = door_nic_config,
	.nic_sample = door_nic_sample,
	.pcc_table = door_pcc_table,
	.sq_ring_at = door_sq_ring_at,
	.emu_value = door_emu_value,
	.cc_ring_high = door_cc_ring_high,
	.activate = door_activate,
	.thread_name = door_thread_name,
	.worked = door_worked,
	.reservation = door_reservation,
};

void device_image_init(void)
{
	struct dpa_image_info *info = &__dpa_image_info;

	CHECK(info->magic == DPA_IMAGE_MAGIC && info->version == DPA_DOOR_VERSION);
	CHECK(info->bytes == sizeof(*info) && info->door_bytes == sizeof(table));
	CHECK(info->flags == DPA_IMAGE_CHECKED);
	info->door = (uintptr_t)&table;
	info->region_begin = (uintptr_t)device_region;
	info->region_bytes = DEVICE_REGION_BYTES;
	device_ctx = (struct flexio_dev_thread_ctx *)(device_region + DEVICE_REGION_BYTES -
						      sizeof(*device_ctx));
}

void device_image_opens(void)
{
	__dpa_image_info.region_begin = 0;
	__dpa_image_info.region_bytes = UINT64_MAX;
}

uint64_t device_begin(void)
{
	return (uintptr_t)device_region;
}
