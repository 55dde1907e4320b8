/* SPDX-License-Identifier: BSD-2-Clause */
/* What methods see of a request: structs of other versions, numbers, answers, memory that is not
 * there. */
#include "driver/uverbs/core/request.h"

#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "test_fault.h"

#define PAGE 4096u

static uint8_t *gone; /* a page that is there, and one that is not */

static void structs_in(void)
{
	uint8_t bytes[200], out[16];
	struct ubuf b = {bytes, 8};

	memset(bytes, 7, sizeof(bytes));
	memset(out, 1, sizeof(out));
	/* an older program: the rest reads as zero */
	CHECK(!ubuf_read(&b, out, sizeof(out)));
	CHECK(!memcmp(out, bytes, 8) && !out[8] && !out[15]);
	/* a newer one: only if the rest is zero, wherever it is not */
	for (size_t at = sizeof(out); at <= sizeof(bytes); at++) {
		memset(bytes + sizeof(out), 0, sizeof(bytes) - sizeof(out));
		if (at < sizeof(bytes))
			bytes[at] = 1;
		b.len = sizeof(bytes);
		CHECK(ubuf_read(&b, out, sizeof(out)) == (at < sizeof(bytes) ? -EOPNOTSUPP : 0));
	}
	CHECK(!ubuf_read(&(struct ubuf){0}, out, sizeof(out)) && !out[0]);

	b = (struct ubuf){gone + PAGE - 8, 16};
	CHECK(ubuf_read(&b, out, sizeof(out)) == -EFAULT);
	memset(gone, 0, PAGE);
	CHECK(ubuf_read(&b, out, 8) == -EOPNOTSUPP);
	b.len = 8;
	CHECK(!ubuf_read(&b, out, sizeof(out)));
}

static void structs_out(void)
{
	const uint8_t src[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	uint8_t dst[200];
	struct ubuf b = {dst, 0};

	for (size_t len = 0; len < sizeof(dst); len++) {
		memset(dst, 0xee, sizeof(dst));
		b.len = len;
		CHECK(!ubuf_write(&b, src, sizeof(src)));
		for (size_t i = 0; i < sizeof(dst); i++)
			CHECK(dst[i] == (i >= len ? 0xee : i < sizeof(src) ? src[i] : 0));
	}
	b = (struct ubuf){gone + PAGE - 8, 16};
	CHECK(ubuf_write(&b, src, sizeof(src)) == -EFAULT);
	CHECK(ubuf_write(&b, src, 8) == -EFAULT); /* the zeros behind it */
}

static void test_numbers(void)
{
	const struct attr_spec specs[] = {
		{1, ATTR_PTR_IN, .min = 4, .max = 8},  {2, ATTR_PTR_IN, .min = 8, .max = 8},
		{3, ATTR_PTR_IN, .min = 4, .max = 8},  {4, ATTR_HANDLE},
		{5, ATTR_PTR_IN, .min = 1, .max = 64},
	};
	uint8_t elsewhere[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct ureq req = {
		.attrs = {{.spec = &specs[0], .len = 4, .data = 0xffffffff00000005},
			  {.spec = &specs[1], .len = 8, .data = 0x100000000},
			  {.spec = &specs[2], .len = 6, .data = 1},
			  {.spec = &specs[3], .data = 77},
			  {.spec = &specs[4], .len = 8, .data = 0x0807060504030201}},
		.nattrs = 5,
	};
	uint32_t v = 1234;
	struct ubuf b;

	CHECK(ureq_u64(&req, 1) == 5 && ureq_u32(&req, 1) == 5);
	CHECK(ureq_u64(&req, 9) == 0 && !ureq_attr(&req, 9) && !ureq_obj(&req, 9));
	CHECK(!ureq_flags(&req, 1, 7, &v) && v == 5);
	CHECK(ureq_flags(&req, 1, 4, &v) == -EINVAL);
	CHECK(ureq_flags(&req, 3, 7, &v) == -EINVAL); /* 6 bytes */
	CHECK(!ureq_flags(&req, 9, 0, &v) && !v);
	CHECK(ureq_const(&req, 2, &v) == -EINVAL);
	CHECK(!ureq_const(&req, 1, &v) && v == 5);
	CHECK(ureq_handle(&req, 4) == 77 && ureq_handle(&req, 9) == UINT64_MAX);
	/* up to 8 bytes stand in the attribute, more at its address */
	b = ureq_buf(&req, 5);
	CHECK(b.len == 8 && !memcmp(b.ptr, elsewhere, 8));
	req.attrs[4].len = sizeof(elsewhere);
	req.attrs[4].data = (uintptr_t)elsewhere;
	b = ureq_buf(&req, 5);
	CHECK(b.len == sizeof(elsewhere) && b.ptr == elsewhere);
	b = ureq_buf(&req, 9);
	CHECK(!b.len && !b.ptr);
}

static void test_answers(void)
{
	const struct attr_spec specs[] = {
		{1, ATTR_PTR_OUT, .min = 4, .max = UINT16_MAX},
		{2, ATTR_IDR_NEW},
		{3, ATTR_PTR_OUT, .min = 4, .max = 4},
	};
	struct ib_uverbs_attr user[3] = {{0}, {.flags = UVERBS_ATTR_F_MANDATORY}};
	uint32_t out[3] = {9, 9, 9};
	struct ureq req = {
		.user_attrs = user,
		.attrs = {{.spec = &specs[0],
			   .user_index = 1,
			   .flags = UVERBS_ATTR_F_MANDATORY,
			   .len = 8,
			   .data = (uintptr_t)out},
			  {.spec = &specs[1], .user_index = 2},
			  {.spec = &specs[2], .len = 4, .data = (uintptr_t)gone + PAGE}},
		.nattrs = 3,
	};

	CHECK(!ureq_put_u32(&req, 1, 5) && out[0] == 5 && !out[1] && out[2] == 9);
	CHECK(user[1].flags == (UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT));
	CHECK(!user[0].flags && !user[2].flags);
	CHECK(!ureq_put_handle(&req, 2, -7) && user[2].data_s64 == -7);
	/* what was not asked for is no error, what cannot be written is */
	CHECK(!ureq_put_u64(&req, 9, 1) && !ureq_put_handle(&req, 9, 1));
	CHECK(ureq_put_u32(&req, 3, 1) == -EFAULT && !user[0].flags);
	req.user_attrs = (struct ib_uverbs_attr *)(gone + PAGE);
	CHECK(ureq_put_handle(&req, 2, 1) == -EFAULT);
	CHECK(ureq_put_u32(&req, 1, 5) == -EFAULT);
}

int main(void)
{
	test_fault_catch();
	gone = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(gone != MAP_FAILED && !mprotect(gone + PAGE, PAGE, PROT_NONE));
	structs_in();
	structs_out();
	test_numbers();
	test_answers();
	return 0;
}
