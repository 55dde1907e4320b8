// SPDX-License-Identifier: BSD-2-Clause
#include "woken.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_device.h"

struct woken_words *woken_map(unsigned n)
{
	void *p = mmap(NULL, n * sizeof(struct woken_words), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		device_die("mmap: %m");
	return p;
}

static void words_ask(struct woken_words *words)
{
	atomic_fetch_add(&words->asked, 1);
	syscall(SYS_futex, &words->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *woken_run(void *arg)
{
	struct woken *w = arg;
	uint32_t done = atomic_load(&w->words->answered);

	for (;;) {
		while (atomic_load(&w->words->asked) == done)
			syscall(SYS_futex, &w->words->asked, FUTEX_WAIT, done, NULL, NULL, 0);
		if (atomic_load(&w->words->over))
			return NULL;
		atomic_fetch_add(w->at, 1);
		atomic_store(&w->words->answered, ++done);
	}
}

void woken_begin(struct woken *w, struct woken_words *words, _Atomic(uint64_t) *at)
{
	*w = (struct woken){.words = words, .at = at};
	if (pthread_create(&w->thread, NULL, woken_run, w))
		device_die("pthread_create");
}

void woken_end(struct woken *w)
{
	atomic_store(&w->words->over, true);
	words_ask(w->words);
	pthread_join(w->thread, NULL);
}

void woken_ask(struct woken_words *words)
{
	uint32_t asked = atomic_load(&words->asked) + 1;

	words_ask(words);
	while (atomic_load_explicit(&words->answered, memory_order_acquire) != asked)
		;
}
