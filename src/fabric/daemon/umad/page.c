// SPDX-License-Identifier: BSD-2-Clause
/* The page that a umad file shares with its program; the daemon believes nothing in it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory_file.h"
#include "fabric/daemon/umad/file.h"

int umad_page_open(struct umad_page **page, int *fd)
{
	int ret;

	*fd = memfd_create("softhca-umad-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	ret = memory_file_resize(*fd, sizeof(**page));
	/* If a program cut the page short, the next access would kill us. */
	if (!ret && fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		ret = -ENOMEM;
	if (!ret) {
		void *memory =
			mmap(NULL, sizeof(**page), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);

		*page = memory;
		ret = memory == MAP_FAILED ? -errno : 0;
	}
	if (ret)
		close(*fd);
	return ret;
}

void umad_page_close(struct umad_page *page)
{
	munmap(page, sizeof(*page));
}

/* A program that wrote without counting (after execve, say) must not bring the count below zero. */
static void word_uncount(_Atomic(uint32_t) *word)
{
	uint32_t n = atomic_load_explicit(word, memory_order_relaxed);

	while (n && !atomic_compare_exchange_weak(word, &n, n - 1))
		;
}

static void place_uncount(_Atomic(uint16_t) *place)
{
	uint16_t n = atomic_load_explicit(place, memory_order_relaxed);

	while (n && !atomic_compare_exchange_weak(place, &n, (uint16_t)(n - 1)))
		;
}

void umad_page_count_report(struct umad_page *page)
{
	atomic_fetch_add_explicit(&page->sends, 1, memory_order_relaxed);
}

void umad_page_uncount_report(struct umad_page *page)
{
	word_uncount(&page->sends);
}

void umad_page_uncount(struct umad_page *page, uint32_t tid_low, uint8_t class)
{
	place_uncount(&page->in_flight[umad_in_flight_at(tid_low, class)]);
	word_uncount(&page->sends);
}
