// SPDX-License-Identifier: BSD-2-Clause
/* The heap. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"

/* Blocks of all sizes come and go, some of them beside others that stay; all of the heap is there afterwards. */
static void all_comes_back(struct flexio_process *p)
{
	struct flexio_heap_mem_info info, after;
	flexio_uintptr_t kept[16] = {0}, a;

	OK(flexio_process_mem_info_get(p, &info));
	for (unsigned i = 0; i < 50000; i++) {
		flexio_uintptr_t *at = i % 7 ? &a : &kept[i / 7 % 16];

		if (i % 7 == 0)
			OK(flexio_buf_dev_free(p, *at));
		OK(flexio_buf_dev_alloc(p, 1 + i % 5000 * (i % 3 ? 1 : 200), at));
		CHECK(*at && *at % 64 == 0);
		if (i % 7)
			OK(flexio_buf_dev_free(p, *at));
	}
	for (unsigned i = 0; i < 16; i++)
		OK(flexio_buf_dev_free(p, kept[i]));
	OK(flexio_process_mem_info_get(p, &after));
	CHECK(after.requested == info.requested && after.allocated == info.allocated);
	OK(flexio_buf_dev_alloc(p, info.size, &a));
	OK(flexio_buf_dev_free(p, a));
}

static void allocation(void)
{
	struct flexio_process *p = host_process();
	struct flexio_heap_mem_info info, after;
	flexio_uintptr_t a;

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
	all_comes_back(p);
	OK(flexio_process_destroy(p));
}

/* Returns how much memory the program has, in bytes. */
static size_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;

	CHECK(file && fscanf(file, "%*u %lu", &pages) == 1 && !fclose(file));
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* What public programs take: blocks of hundreds of megabytes, which cost nothing until they are used. */
static void large_blocks(void)
{
	struct flexio_process *p = host_process();
	size_t before = resident(), mib = 1 << 20;
	struct flexio_heap_mem_info info;
	flexio_uintptr_t a, b, c;

	OK(flexio_process_mem_info_get(p, &info));
	CHECK(info.size == 1024 * mib);
	OK(flexio_buf_dev_alloc(p, 512 * mib, &a));
	OK(flexio_buf_dev_alloc(p, 256 * mib, &b));
	OK(flexio_buf_dev_alloc(p, 64, &c));
	OK(flexio_buf_dev_memset(p, 7, 8, a + 512 * mib - 8));
	OK(flexio_buf_dev_memset(p, 8, 8, b));
	CHECK(RESULT(p, &load, a + 512 * mib - 8) == 0x0707070707070707);
	CHECK(RESULT(p, &load, b) == 0x0808080808080808 && RESULT(p, &load, a) == 0);
	FAILS(flexio_buf_dev_alloc(p, 512 * mib, &c)); /* the row looks at the log */
	CHECK(c == 0);
	CHECK_SAY(resident() - before < 32 * mib, "%zu bytes", resident() - before);
	OK(flexio_process_destroy(p));
}

/* The heap has as many MiB as the variable says. */
static void heap_chosen(void)
{
	uint64_t mib = strtoul(getenv("SOFTHCA_DPA_HEAP_MIB"), NULL, 10);
	struct flexio_process *p = host_process();
	struct flexio_heap_mem_info info;
	flexio_uintptr_t a;

	OK(flexio_process_mem_info_get(p, &info));
	CHECK_SAY(info.size == mib << 20, "%zu bytes", info.size);
	OK(flexio_buf_dev_alloc(p, info.size, &a));
	OK(flexio_buf_dev_memset(p, 7, 8, a + info.size - 8));
	CHECK(RESULT(p, &load, a + info.size - 8) == 0x0707070707070707);
	FAILS(flexio_buf_dev_alloc(p, 1, &a));
	OK(flexio_process_destroy(p));
}

/* With a limit of addresses that no heap fits into: the process is refused, the program goes on. */
static void heap_too_large(void)
{
	struct rlimit limit = {256 << 20, RLIM_INFINITY};
	struct ibv_context *device = host_device();
	struct flexio_process *p;

	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	FAILS(flexio_process_create(device, calls_app, NULL, &p));
	limit.rlim_cur = RLIM_INFINITY;
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	OK(flexio_process_create(device, calls_app, NULL, &p));
	OK(flexio_process_destroy(p));
}

/* A core file has what the heap has, and holes where it has nothing. */
static void core_of_large_heap(void)
{
	struct flexio_process *p = host_process();
	char name[64];
	uint8_t bytes[8];
	struct stat st;
	flexio_uintptr_t a;
	bool found = false;
	int fd;

	OK(flexio_buf_dev_alloc(p, 900 << 20, &a));
	OK(flexio_buf_dev_memset(p, 0x5a, 8, a + (700 << 20)));
	OK(flexio_coredump_create(p, "large"));
	snprintf(name, sizeof(name), "large.%d.core", (int)getpid());
	fd = open(name, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && unlink(name) == 0 && fstat(fd, &st) == 0);
	CHECK_SAY(st.st_size > 1 << 30 && st.st_blocks < 2 * 32 << 10, "%ld bytes, %ld blocks",
		  (long)st.st_size, (long)st.st_blocks);
	for (off_t at = 0; !found && (at = lseek(fd, at, SEEK_DATA)) >= 0; at += 4096)
		for (off_t in = 0; !found && in < 4096; in += 8)
			found = pread(fd, bytes, 8, at + in) == 8 && !memcmp(bytes, "ZZZZZZZZ", 8);
	CHECK(found);
	close(fd);
	OK(flexio_process_destroy(p));
}

/* What digest has for the same bytes in the device. */
static uint64_t digest_of(const uint8_t *bytes, size_t n)
{
	uint64_t d = 0;

	for (size_t i = 0; i < n; i++)
		d = d * 31 + bytes[i];
	return d;
}

/* What is no memory of the process. */
static void copies_outside(struct flexio_process *p, void *bytes)
{
	struct flexio_heap_mem_info info;
	uint64_t end;

	OK(flexio_process_mem_info_get(p, &info));
	end = info.base_addr + info.size;
	FAILS(flexio_host2dev_memcpy(p, bytes, 11, end - 10));
	FAILS(flexio_host2dev_memcpy(p, bytes, 1, end));
	FAILS(flexio_host2dev_memcpy(p, bytes, 1, info.base_addr - 1));
	FAILS(flexio_host2dev_memcpy(p, bytes, 1, (uintptr_t)bytes));
	FAILS(flexio_buf_dev_memset(p, 0, info.size + 1, info.base_addr));
	FAILS(flexio_buf_dev_memset(p, 0, SIZE_MAX, info.base_addr));
	/* The code of the image is, but may not be written. */
	FAILS(flexio_buf_dev_memset(p, 0, 8, RESULT(p, &count_code)));
}

/* Copies and fills that leave a buffer of the heap: done, as on a card, and each buffer is named once in the log. */
static void copies_over(void)
{
	struct flexio_process *p = host_process();
	uint8_t bytes[8192];
	flexio_uintptr_t a, b, gone;

	memset(bytes, 3, sizeof(bytes));
	OK(flexio_buf_dev_alloc(p, 2048, &a));
	OK(flexio_buf_dev_alloc(p, 65536, &b));
	OK(flexio_buf_dev_alloc(p, 64, &gone));
	OK(flexio_buf_dev_memset(p, 0, 65536, b));
	for (unsigned i = 0; i < 3; i++) {
		OK(flexio_host2dev_memcpy(p, bytes, sizeof(bytes), a));
		OK(flexio_buf_dev_memset(p, 3, sizeof(bytes), a));
		OK(flexio_buf_dev_memset(p, 3, 2, b + 65535));
		OK(flexio_buf_dev_memset(p, 3, 65536, b));
	}
	CHECK(RESULT(p, &digest, a, (uint64_t)2048) == digest_of(bytes, 2048));
	CHECK(RESULT(p, &digest, b, (uint64_t)2048) == digest_of(bytes, 2048));
	/* One that was freed, and is given out again. */
	OK(flexio_buf_dev_free(p, gone));
	for (unsigned i = 0; i < 3; i++)
		OK(flexio_host2dev_memcpy(p, bytes, 8, gone));
	OK(flexio_buf_dev_alloc(p, 64, &gone));
	OK(flexio_host2dev_memcpy(p, bytes, 64, gone));
	/* Variables of the image are memory of the process. */
	CHECK(RESULT(p, &count, (uint64_t)1) == 41);
	OK(flexio_buf_dev_memset(p, 0, 8, RESULT(p, &count_at)));
	CHECK(RESULT(p, &count, (uint64_t)1) == 1);
	OK(flexio_process_destroy(p));
}

static void copies(void)
{
	struct flexio_process *p = host_process();
	uint8_t bytes[1000], wanted[1000];
	flexio_uintptr_t a;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		wanted[i] = bytes[i] = (uint8_t)(i * 7);
#define SAME() CHECK(RESULT(p, &digest, a, (uint64_t)1000) == digest_of(wanted, 1000))
	OK(flexio_copy_from_host(p, bytes, sizeof(bytes), &a));
	SAME();
	/* into the middle, and not beside it */
	memset(bytes, 1, sizeof(bytes));
	memset(wanted + 500, 1, 10);
	OK(flexio_host2dev_memcpy(p, bytes, 10, a + 500));
	SAME();
	memset(wanted + 301, 2, 99);
	OK(flexio_buf_dev_memset(p, 2, 99, a + 301));
	SAME();
	wanted[999] = 0xff;
	OK(flexio_buf_dev_memset(p, 0x1ff, 1, a + 999));
	SAME();
	copies_outside(p, bytes);
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

/* A device function that gets addresses in or beside two buffers of 64 and 100 bytes, and what comes of it. */
struct access {
	flexio_func_t *f;
	int64_t a, b, c;
	bool near; /* inside of the heap, so only redzones tell */
};

/* SOFTHCA_DPA_REDZONES says whether the heap has redzones. */
static void redzones(void)
{
	const char *text = getenv("SOFTHCA_DPA_REDZONES");
	const struct access all[] = {
		{&load, 0, 0, 0, false},    {&load, 56, 0, 0, false},  {&sum, 0, 64, 0, false},
		{&sum, 0, 65, 0, true},	    {&load, 57, 0, 0, true},   {&store, 64, 0, 0, true},
		{&store, 120, 0, 0, true},  {&load, -8, 0, 0, true},   {&store, -64, 0, 0, true},
		{&copy, 0, 0, 64, false},   {&copy, 0, 0, 65, true},   {&copy, 1, 0, 64, true},
		{&digest, 0, 64, 0, false}, {&digest, 64, 1, 0, true},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct flexio_process *p = host_process();
		bool fault = all[i].near && text && *text == '1';
		flexio_uintptr_t first, a;
		flexio_status status;
		uint64_t value, b = (uint64_t)all[i].b;

		OK(flexio_buf_dev_alloc(p, 4096, &first));
		OK(flexio_buf_dev_alloc(p, 64, &a));
		OK(flexio_buf_dev_free(p, first));
		/* all else is as it was */
		CHECK(RESULT(p, &count, (uint64_t)1) == 41 && RESULT(p, &context) == 1);
		status = flexio_process_call(p, all[i].f, &value, a + (uint64_t)all[i].a,
					     all[i].f == &copy ? a + b : b, (uint64_t)all[i].c);
		CHECK_SAY(status == (fault ? FLEXIO_STATUS_FATAL_ERR : FLEXIO_STATUS_SUCCESS),
			  "%zu: %d", i, (int)status);
		CHECK(flexio_err_status_get(p) ==
		      (fault ? FLEXIO_DEV_FATAL_ERROR : FLEXIO_DEV_NO_ERROR));
		OK(flexio_process_destroy(p));
	}
}

const struct host_case memory_cases[] = {
	{"allocation", allocation},
	{"copies", copies},
	{"copies_over", copies_over},
	{"redzones", redzones},
	{"large_blocks", large_blocks},
	{"heap_chosen", heap_chosen},
	{"heap_too_large", heap_too_large},
	{"core_of_large_heap", core_of_large_heap},
	{NULL, NULL},
};
