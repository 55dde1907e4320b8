// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a program may send to /dev/infiniband/uverbs<N>: the whole driver and adapter in this
 * process, engine thread included, over a fabric in memory.  Each input has a file of its own; when
 * the file is closed nothing of it may be left.
 */
#include <errno.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapter/core/device.h"
#include "driver/cdev.h"
#include "driver/doorbell/doorbell.h"
#include "driver/hooks/hooks.h"
#include "driver/runtime/process.h"
#include "driver/uverbs/core/event.h"
#include "memory.h"
#include "uverbs_input.h"

#define AREAS	      6u
#define SCRATCH_BYTES (256u << 10)
#define OUT_BYTES     (256u << 10)
#define FDS	      64
#define ATTRS	      24u

static struct {
	uint8_t *start;
	size_t bytes;
} areas[AREAS];

/* The program's buffers of one call. */
static uint8_t *scratch, *out;
static size_t scratch_used, out_used;

static struct process *process;
static int first_fd; /* what a fresh process would get */
static int file_fd;

void target_init(void)
{
	static const size_t bytes[AREAS] = {64u << 10,	256u << 10,  256u << 10,
					    256u << 10, MEMORY_PAGE, MEMORY_PAGE};

	for (unsigned i = 0; i < AREAS; i++) {
		areas[i].bytes = bytes[i];
		areas[i].start = memory_area(bytes[i]);
	}
	MUST(!mprotect(areas[AREA_READ_ONLY].start, MEMORY_PAGE, PROT_READ));
	scratch = memory_area(SCRATCH_BYTES);
	out = memory_area(OUT_BYTES);
	MUST(!process_get(&process));
	/* opens what the device keeps for the first page of doorbells that it has to watch */
	(void)doorbell_arm();
	first_fd = fuzz_lowest_fd();
}

/* ---- addresses ---- */

static uint64_t place_at(unsigned number)
{
	static const uint64_t nowhere[] = {
		0, 8, 4096, 1ull << 63, UINT64_MAX, UINT64_MAX - 4095, 0x7ffffffff000ull};
	unsigned area = number & 7, variant = number >> 3;
	uint64_t start, bytes;

	if (area >= AREAS)
		return nowhere[variant % array_size(nowhere)];
	start = (uintptr_t)areas[area].start;
	bytes = areas[area].bytes;
	switch (variant & 7) {
	case 1:
		return start + 64;
	case 2:
		return start + bytes / 2;
	case 3:
		return start + 1;
	case 4:
		return start + bytes - 8;
	case 5:
		return start + bytes - 1;
	case 6:
		return start + bytes;
	case 7:
		return start - 8;
	default:
		return start;
	}
}

/*
 * The device may touch any address that the program names, also one of our own: numbers from the
 * input must not happen to be one.  Only what looks like memory outside the known areas is
 * spoiled; two small numbers side by side do not.
 */
static void spoil_addresses(uint8_t *block, size_t len)
{
	for (size_t at = 0; at + 8 <= len; at += 8) {
		uint64_t v;

		memcpy(&v, block + at, sizeof(v));
		if (v < 0x020000000000ull || v >> 48 || memory_is_known((void *)(uintptr_t)v))
			continue;
		v |= 1ull << 63;
		memcpy(block + at, &v, sizeof(v));
	}
}

static uint8_t *take_buffer(uint8_t *from, size_t *used, size_t limit, size_t len)
{
	uint8_t *p;

	if (!range_inside(*used, len, limit))
		*used = 0;
	p = from + *used;
	*used += align_up(len, 8);
	return p;
}

static uint64_t take_out(size_t len)
{
	return (uintptr_t)take_buffer(out, &out_used, OUT_BYTES - 8, len);
}

/* ---- descriptors ---- */

static int event_fd(unsigned number)
{
	for (int fd = first_fd; fd < first_fd + FDS; fd++)
		if (fd != file_fd && cdev_is_ours(fd) && !number--)
			return fd;
	return number & 1 ? -1 : file_fd;
}

static void close_fd(int fd)
{
	if (fd < 0)
		return;
	cdev_close(fd);
	close(fd);
}

/* ---- calls ---- */

static uint8_t *read_block(struct input *in, uint16_t *len)
{
	uint8_t given, patches;
	uint8_t *block;

	*len = in_u16(in);
	given = in_u8(in);
	patches = in_u8(in);
	block = take_buffer(scratch, &scratch_used, SCRATCH_BYTES - 8, *len);
	memset(block, 0, *len);
	in_bytes(in, block, min_u32(given, *len));
	spoil_addresses(block, *len);
	for (; patches && in->left; patches--) {
		size_t off = 4u * in_u8(in);
		uint8_t patch = in_u8(in);
		uint32_t word;
		uint64_t address = (patch & 3) == PATCH_OUT ? take_out(512) : place_at(patch >> 2);
		int32_t fd;

		if ((patch & 3) == PATCH_WORD) {
			word = in_u32(in);
			if (range_inside(off, sizeof(word), *len))
				memcpy(block + off, &word, sizeof(word));
			spoil_addresses(block, *len);
		} else if ((patch & 3) == PATCH_FD) {
			fd = event_fd(patch >> 2);
			if (range_inside(off, sizeof(fd), *len))
				memcpy(block + off, &fd, sizeof(fd));
		} else if (range_inside(off, sizeof(address), *len)) {
			memcpy(block + off, &address, sizeof(address));
		}
	}
	return block;
}

static uint16_t read_id(struct input *in)
{
	uint8_t id = in_u8(in);

	return (uint16_t)(id & IDS_DRIVER ? 0x1000 + (id & 0x7f) : id);
}

static void read_attr(struct input *in, struct ib_uverbs_attr *a)
{
	uint8_t kind;

	a->attr_id = read_id(in);
	kind = in_u8(in);
	a->flags = kind & 0x80 ? 0 : UVERBS_ATTR_F_MANDATORY;
	switch ((enum attr_kind)(kind % 0x40 % KIND_COUNT)) {
	case KIND_DATA:
		a->len = in_u8(in) & 15;
		a->data = in_u64(in);
		spoil_addresses((uint8_t *)&a->data, 8);
		break;
	case KIND_BLOCK: {
		uint8_t *block = read_block(in, &a->len);

		a->data = (uintptr_t)block;
		if (a->len <= 8) {
			a->data = 0;
			memcpy(&a->data, block, a->len);
		}
		break;
	}
	case KIND_OUT:
		a->len = in_u16(in);
		a->data = take_out(a->len);
		break;
	case KIND_HANDLE:
		a->data = in_u8(in);
		break;
	case KIND_FD:
		a->data_s64 = event_fd(in_u8(in));
		break;
	case KIND_PLACE:
		a->data = place_at(in_u8(in));
		a->len = in_u16(in);
		break;
	case KIND_COUNT:
		break;
	}
}

static void call_ioctl(struct input *in)
{
	uint16_t object = read_id(in), method = read_id(in);
	uint8_t n = in_u8(in) % ATTRS;
	struct ib_uverbs_ioctl_hdr *hdr =
		(void *)take_buffer(scratch, &scratch_used, SCRATCH_BYTES - 8,
				    sizeof(*hdr) + n * sizeof(struct ib_uverbs_attr));

	*hdr = (struct ib_uverbs_ioctl_hdr){
		.length = (uint16_t)(sizeof(*hdr) + n * sizeof(struct ib_uverbs_attr)),
		.object_id = object,
		.method_id = method,
		.num_attrs = n,
		.driver_id = RDMA_DRIVER_MLX5,
	};
	memset(hdr->attrs, 0, n * sizeof(struct ib_uverbs_attr));
	for (unsigned i = 0; i < n; i++)
		read_attr(in, &hdr->attrs[i]);
	(void)cdev_ioctl(file_fd, RDMA_VERBS_IOCTL, hdr);
}

static void call_raw_ioctl(struct input *in)
{
	uint8_t where = in_u8(in);
	uint16_t len;
	uint8_t *block = read_block(in, &len);
	uint8_t request = in_u8(in);

	(void)cdev_ioctl(file_fd, request ? request : RDMA_VERBS_IOCTL,
			 where ? (void *)(uintptr_t)place_at(where) : block);
}

static void call_command(struct input *in)
{
	uint8_t number = in_u8(in), flags = in_u8(in);
	uint16_t out_words = in_u16(in), len;
	uint8_t *body, *all;
	struct ib_uverbs_cmd_hdr hdr = {.command = number, .out_words = out_words};
	uint64_t response = take_out((size_t)out_words * 4);

	body = read_block(in, &len);
	/* Most commands begin with the address of their response. */
	if (flags & 1 && len >= sizeof(response))
		memcpy(body, &response, sizeof(response));
	hdr.in_words = flags & 2 ? in_u16(in) : (uint16_t)((sizeof(hdr) + len) / 4);
	all = take_buffer(scratch, &scratch_used, SCRATCH_BYTES - 8, sizeof(hdr) + len);
	memmove(all + sizeof(hdr), body, len);
	memcpy(all, &hdr, sizeof(hdr));
	(void)cdev_write(file_fd, all, sizeof(hdr) + len);
}

static void call_ex_command(struct input *in)
{
	uint8_t number = in_u8(in), flags = in_u8(in), out_words = in_u8(in), uhw_out = in_u8(in);
	uint16_t core_len, uhw_len;
	uint8_t *core = read_block(in, &core_len), *uhw = read_block(in, &uhw_len), *all;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
	} head = {
		.hdr = {.command = number | IB_USER_VERBS_CMD_FLAG_EXTENDED,
			.in_words = (uint16_t)(core_len / 8),
			.out_words = out_words},
		.ex = {.response = flags & 1 ? take_out((out_words + uhw_out) * (size_t)8)
					     : place_at(flags >> 1),
		       .provider_in_words = (uint16_t)(uhw_len / 8),
		       .provider_out_words = uhw_out},
	};

	core_len &= 0xfff8;
	uhw_len &= 0xfff8;
	all = take_buffer(scratch, &scratch_used, SCRATCH_BYTES - 8,
			  sizeof(head) + (size_t)core_len + uhw_len);
	memmove(all + sizeof(head) + core_len, uhw, uhw_len);
	memmove(all + sizeof(head), core, core_len);
	memcpy(all, &head, sizeof(head));
	(void)cdev_write(file_fd, all, sizeof(head) + core_len + uhw_len);
}

static void store_doorbell(struct input *in)
{
	unsigned area = in_u8(in) % AREA_READ_ONLY;
	size_t off = in_u16(in) * 4u % areas[area].bytes;
	size_t n = min_u64(in_u8(in), areas[area].bytes - off);

	in_bytes(in, areas[area].start + off, n);
}

static void read_event(struct input *in)
{
	struct pollfd p = {.fd = event_fd(in_u8(in)), .events = POLLIN};
	uint8_t event[16];

	if (p.fd != file_fd && poll(&p, 1, 0) == 1 && p.revents & POLLIN)
		(void)!read(p.fd, event, sizeof(event));
}

static void ring_bells(struct input *in)
{
	uint8_t handle = in_u8(in);

	uverbs_qp_doorbell(file_fd, handle);
	uverbs_qp_recv_posted(file_fd, handle);
	uverbs_cq_doorbell(file_fd, handle);
	(void)process_progress(process);
}

static void perform_step(uint8_t op, struct input *in)
{
	switch ((enum op)op) {
	case OP_IOCTL:
		call_ioctl(in);
		break;
	case OP_RAW_IOCTL:
		call_raw_ioctl(in);
		break;
	case OP_COMMAND:
		call_command(in);
		break;
	case OP_EX_COMMAND:
		call_ex_command(in);
		break;
	case OP_BELLS:
		ring_bells(in);
		break;
	case OP_STORE:
		store_doorbell(in);
		break;
	case OP_CLOSE_FD:
		close_fd(event_fd(in_u8(in)));
		break;
	case OP_READ_EVENT:
		read_event(in);
		break;
	case OP_PORT_EVENT:
		uverbs_event_port(in_u8(in), IB_EVENT_PORT_ACTIVE);
		break;
	case OP_COUNT:
		break;
	}
}

/* But for what the device itself keeps once it was asked for it. */
static void must_be_unused(const struct number_space *s, uint32_t kept)
{
	MUST(s->capacity - s->count <= kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	for (unsigned i = 0; i < AREA_READ_ONLY; i++)
		memset(areas[i].start, 0, MEMORY_PAGE);
	file_fd = cdev_open(in_u8(&in) & 1 ? "uverbs1" : "uverbs0", 0);
	MUST(file_fd >= 0);
	while (in.left) {
		scratch_used = out_used = 0;
		perform_step(in_u8(&in) % OP_COUNT, &in);
	}
	if (cdev_is_ours(file_fd))
		close_fd(file_fd);
	for (int fd = first_fd; fd < first_fd + FDS; fd++)
		if (cdev_is_ours(fd))
			close_fd(fd);
	fuzz_no_fds_from(first_fd);
	for (unsigned i = 0; i < process->nhcas; i++) {
		struct adapter *a = process->hcas[i].adapter;

		must_be_unused(&a->qps, 0);
		must_be_unused(&a->srqs, 0);
		must_be_unused(&a->mkeys, 1 /* the null key */);
	}
	return 0;
}
