// SPDX-License-Identifier: BSD-2-Clause
/* The heap. */
#include <string.h>

#include "host.h"

static void allocation(void)
{
	struct flexio_process *p = host_process();
	struct flexio_heap_mem_info info, after;
	flexio_uintptr_t a, b;

	OK(flexio_process_mem_info_get(p, &info));
	CHECK(info.base_addr && info.size && info.requested <= info.allocated &&
	      info.allocated <= info.size);
	OK(flexio_buf_dev_alloc(p, 1000, &a));
	CHECK(a && a % 64 == 0);
	OK(flexio_process_mem_info_get(p, &after));
	CHECK(after.requested == info.requested + 1000 && after.allocated >= after.requested);
	OK(flexio_buf_dev_free(p, a));
	OK(flexio_process_mem_info_get(p, &after));
	CHECK(after.requested == info.requested);
	FAILS(flexio_buf_dev_free(p, a)); /* twice */
	FAILS(flexio_buf_dev_free(p, 12345));
	OK(flexio_buf_dev_free(p, 0));
	a = 1;
	FAILS(flexio_buf_dev_alloc(p, info.size + 1, &a));
	CHECK(a == 0);
	a = 1;
	FAILS(flexio_buf_dev_alloc(p, 0, &a));
	CHECK(a == 0);
	for (unsigned i = 0; i < 20000; i++) {
		OK(flexio_buf_dev_alloc(p, 1 + i % 5000, &a));
		OK(flexio_buf_dev_alloc(p, 1 << 20, &b));
		OK(flexio_buf_dev_free(p, a));
		OK(flexio_buf_dev_free(p, b));
	}
	OK(flexio_process_destroy(p));
}

static void copies(void)
{
	struct flexio_process *p = host_process();
	uint8_t bytes[1000];
	flexio_uintptr_t a;
	uint64_t n = 0;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		n += bytes[i] = (uint8_t)(i * 7);
	OK(flexio_copy_from_host(p, bytes, sizeof(bytes), &a));
	CHECK(RESULT(p, &sum, a, (uint64_t)sizeof(bytes)) == n);
	memset(bytes, 1, sizeof(bytes));
	OK(flexio_buf_dev_memset(p, 2, 1000, a));
	OK(flexio_host2dev_memcpy(p, bytes, 10, a + 500));
	CHECK(RESULT(p, &sum, a, (uint64_t)1000) == 990 * 2 + 10);
	OK(flexio_buf_dev_memset(p, 0x1ff, 1, a + 999));
	CHECK(RESULT(p, &sum, a + 998, (uint64_t)2) == 2 + 255);
	FAILS(flexio_host2dev_memcpy(p, bytes, 11, a + 990));
	FAILS(flexio_host2dev_memcpy(p, bytes, 1, a + 1000));
	FAILS(flexio_host2dev_memcpy(p, bytes, 1, a - 1));
	FAILS(flexio_buf_dev_memset(p, 0, 1001, a));
	FAILS(flexio_buf_dev_memset(p, 0, SIZE_MAX, a));
	/* Host memory that is not there. */
	FAILS(flexio_host2dev_memcpy(p, (void *)8, 10, a));
	FAILS(flexio_host2dev_memcpy(p, NULL, 10, a));
	FAILS(flexio_copy_from_host(p, (void *)8, 10, &a));
	CHECK(a == 0);
	FAILS(flexio_copy_from_host(NULL, bytes, 10, &a));
	FAILS(flexio_buf_dev_alloc(NULL, 10, &a));
	FAILS(flexio_buf_dev_alloc(p, 10, NULL));
	FAILS(flexio_process_mem_info_get(p, NULL));
	OK(flexio_process_destroy(p));
}

const struct host_case memory_cases[] = {
	{"allocation", allocation},
	{"copies", copies},
	{NULL, NULL},
};
