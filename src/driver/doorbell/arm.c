// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the program has mapped the pages, and the protection of these mappings while the engine
 * sleeps.
 *
 * No store is lost: the engine makes known that it sleeps, protects, and looks at the registers
 * once more.  That look finds a store that came before the protection.  A later store faults, and
 * the handler (doorbell_fault, in the thread that stores) serves the queues of the page.  Then it
 * does one of two things:
 *
 *   takes it   for executed: it knows the value from the instruction, and serves the queue that it
 *              names.  The page stays protected, the engine asleep.  That is the quickest, for a
 *              store that stands alone on a DIRECT page.
 *   lets it go and ends the engine's sleep, when more are likely to follow soon, or the thread
 *              could not serve the queues by itself.  Then the store itself is still to come, so
 *              such a page is not protected again before its value was seen: protecting it at once
 *              would catch the same store for ever.
 *
 * A page stays protected when the engine wakes for other reasons, until something is stored to it.
 * So a page that nobody uses costs one system call ever, and one that hooks serve one fault ever.
 * Only DIRECT pages are let go at once: a program that is woken by a message often answers it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/trace.h"
#include "base/checkers.h"
#include "driver/doorbell/page.h"
#include "driver/doorbell/store.h"
#include "prm/uar.h"
#include "usermem/usermem.h"

struct uffd;

/* ---- protection by userfaultfd ---- */

/*
 * userfaultfd(2) tells of stores to chosen pages of our own address space, in write-protect mode,
 * for faults of user mode only, which needs no privilege.  A thread that stores to a protected page
 * gets SIGBUS (UFFD_FEATURE_SIGBUS), so it hears of the store itself, and nobody has to be woken.
 *
 * A program may close every descriptor that it does not know and open files in their places; with
 * the last descriptor the protection would go, unnoticed.  So a thread that does nothing else keeps
 * one: it has its own copy of the descriptor table, with nothing else in it.  In the program's
 * table, the descriptor serves to protect pages.  If the program closes it there, protecting fails,
 * and the thread's end lifts all protection.
 */

#define STACK_BYTES (128u << 10)

struct uffd {
	struct hidden file;
	pthread_t thread;
	sem_t started;
	bool failed; /* before started */
	sem_t end;
};

/* A plain system call, because ioctl() is the preload library's. */
static int uffd_control(const struct uffd *u, unsigned long request, void *arg)
{
	if (!hidden_ours(&u->file))
		return -EBADF;
	return syscall(SYS_ioctl, u->file.fd, request, arg) < 0 ? -errno : 0;
}

/* Whole pages of a shared or anonymous mapping.  Call uffd_add first, once for each mapping. */
static must_check int uffd_add(struct uffd *u, uintptr_t addr, size_t len)
{
	struct uffdio_register reg = {
		.range = {addr, len},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return uffd_control(u, UFFDIO_REGISTER, &reg);
}

static must_check int uffd_protect(struct uffd *u, uintptr_t addr, size_t len, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = {addr, len},
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};
	int ret;

	/* EAGAIN: another thread is changing the address space. */
	do {
		ret = uffd_control(u, UFFDIO_WRITEPROTECT, &wp);
	} while (ret == -EAGAIN);
	return ret;
}

static int close_all_but(int fd)
{
	if (syscall(SYS_close_range, (unsigned)fd + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
		return -errno;
	if (fd > 0)
		(void)syscall(SYS_close_range, 0, (unsigned)fd - 1, 0);
	return 0;
}

static void *uffd_main(void *arg)
{
	struct uffd *u = arg;
	int fd = u->file.fd;

	if (close_all_but(fd) < 0) {
		u->failed = true;
		sem_post(&u->started);
		return NULL;
	}
	sem_post(&u->started);
	while (sem_wait(&u->end) < 0)
		;
	/* A thread counts as ended before the kernel drops its descriptors.  The pages would still be
	 * registered, and the next one to protect them would be refused (EBUSY). */
	syscall(SYS_close, fd);
	return NULL;
}

static int uffd_spawn(struct uffd *u)
{
	const struct own_thread_attr attr = {
		.name = OWN_THREAD_KEEPER,
		.stack_bytes = STACK_BYTES,
	};
	int ret = own_thread_start(&u->thread, &attr, uffd_main, u);

	if (ret)
		return ret;
	while (sem_wait(&u->started) < 0)
		;
	if (!u->failed)
		return 0;
	pthread_join(u->thread, NULL);
	return -ENOSYS;
}

static int open_fd(struct uffd *u)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
			    UFFD_FEATURE_SIGBUS,
	};

	/* Valgrind does not know the call, and would tell its user to report that. */
	if (runs_in_valgrind())
		return -ENOSYS;
	u->file = hidden_keep((int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
	return u->file.fd < 0 ? -errno : uffd_control(u, UFFDIO_API, &api);
}

static void uffd_release(struct uffd *u)
{
	sem_destroy(&u->end);
	sem_destroy(&u->started);
	free(u);
}

/* -ENOSYS, -EPERM or -EINVAL where the system does not allow it. */
static must_check int uffd_open(struct uffd **out)
{
	struct uffd *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	sem_init(&u->started, 0, 0);
	sem_init(&u->end, 0, 0);
	ret = open_fd(u);
	if (ret == 0)
		ret = uffd_spawn(u);
	if (ret == 0) {
		*out = u;
		return 0;
	}
	hidden_close(&u->file);
	uffd_release(u);
	return ret;
}

/* Ends all protection. */
static void uffd_close(struct uffd *u)
{
	sem_post(&u->end);
	pthread_join(u->thread, NULL);
	hidden_close(&u->file);
	uffd_release(u);
}

/* The same without waiting, for signal handlers; the protection ends a moment later. */
static void uffd_abandon(struct uffd *u)
{
	sem_post(&u->end);
}

/* The forked child calls this: it has neither the thread nor the protection. */
static void uffd_fork_child(struct uffd *u)
{
	hidden_close(&u->file);
}

/* ---- mappings ---- */

/* A store that was let go and has not come within this time was not one to a register. */
#define STORE_PATIENCE_NS 1000000u
/* A store stands alone if none came within this time before it; about as long as the engine stays
 * awake for the next. */
#define ALONE_NS 20000u
/* Time between searches for a mapping of a page without one: a program need not map it. */
#define SEARCH_APART_NS 1000000000u

struct doorbell_mapping {
	struct doorbell_mapping *next;	       /* list of all mappings */
	struct doorbell_mapping *next_of_page; /* list of page's mappings, if page is not NULL */
	struct doorbell_page *page;
	const uint8_t *regs;
	uintptr_t addr;
	bool added; /* uffd has it */
	bool armed;
};

/* The lock of the mappings guards all of this. */
static struct {
	struct spin lock;
	struct doorbell_mapping *list;
	struct uffd *uffd; /* NULL: there was nothing to protect yet */
	bool refused;	   /* the system did not allow it, so we do not ask again */
	bool opening;	   /* some thread is opening it */
	bool never_arm;	   /* a child of fork has that stack, too */
	struct uffd *abandoned;
	/* All mappings lie between these two: most munmap calls of a program end at this check. */
	_Atomic(uintptr_t) lowest, end;
} maps;

/* ---- which mapping belongs to which page ---- */

static void mapping_join(struct doorbell_mapping *m, struct doorbell_page *page)
{
	m->page = page;
	m->next_of_page = page->mappings;
	page->mappings = m;
}

static void mapping_leave(struct doorbell_mapping *m)
{
	struct doorbell_mapping **at;

	if (!m->page)
		return;
	for (at = &m->page->mappings; *at != m; at = &(*at)->next_of_page)
		;
	*at = m->next_of_page;
	m->page = NULL;
}

void doorbell_mappings_join(struct doorbell_page *page)
{
	spin_lock(&maps.lock);
	for (struct doorbell_mapping *m = maps.list; m; m = m->next)
		if (m->regs == page->attr.regs)
			mapping_join(m, page);
	spin_unlock(&maps.lock);
}

void doorbell_mappings_leave(struct doorbell_page *page)
{
	spin_lock(&maps.lock);
	while (page->mappings)
		mapping_leave(page->mappings);
	spin_unlock(&maps.lock);
}

static void set_bounds(void)
{
	uintptr_t lowest = UINTPTR_MAX, end = 0;

	for (const struct doorbell_mapping *m = maps.list; m; m = m->next) {
		lowest = m->addr < lowest ? m->addr : lowest;
		end = m->addr + UAR_BYTES > end ? m->addr + UAR_BYTES : end;
	}
	atomic_store_explicit(&maps.lowest, lowest, memory_order_relaxed);
	atomic_store_explicit(&maps.end, end, memory_order_relaxed);
}

static bool ranges_overlap(uintptr_t a, size_t alen, uintptr_t b, size_t blen)
{
	return a <= b ? b - a < alen : a - b < blen;
}

static bool out_of_bounds(uintptr_t addr, size_t len)
{
	uintptr_t lowest = atomic_load_explicit(&maps.lowest, memory_order_relaxed);
	uintptr_t end = atomic_load_explicit(&maps.end, memory_order_relaxed);

	return end <= lowest || !ranges_overlap(addr, len, lowest, end - lowest);
}

/* Tells whether the caller is to open it. */
static bool uffd_claim(void)
{
	bool claimed;

	spin_lock(&maps.lock);
	claimed = !maps.uffd && !maps.refused && !maps.opening;
	if (claimed)
		maps.opening = true;
	spin_unlock(&maps.lock);
	return claimed;
}

/*
 * Opening takes the lowest free number for a moment, and a program may count on its numbers.  So we
 * open it while the program maps a page; for a mapping that nobody told us of, the engine opens it.
 */
static void open_uffd(void)
{
	struct uffd *u = NULL;
	int ret;

	if (!uffd_claim())
		return;
	ret = uffd_open(&u);
	spin_lock(&maps.lock);
	maps.uffd = u;
	maps.refused = ret < 0;
	maps.opening = false;
	spin_unlock(&maps.lock);
	if (ret < 0)
		log_info("userfaultfd: error %d; the engine polls doorbells that nobody announces",
			 -ret);
}

void doorbell_mapped(const uint8_t *regs, uintptr_t addr)
{
	struct doorbell_mapping *m = calloc(1, sizeof(*m));
	struct doorbell_page *page;
	bool listed = false;

	/* Then the page has no mapping, as far as we know, and the engine does not rely on it. */
	if (!m)
		return;
	m->regs = regs;
	m->addr = addr;
	spin_lock(&doorbell_set.lock);
	spin_lock(&maps.lock);
	m->next = maps.list;
	maps.list = m;
	set_bounds();
	for (page = doorbell_set.pages; page && page->attr.regs != regs; page = page->next)
		;
	if (page) {
		mapping_join(m, page);
		listed = page->listed;
	}
	spin_unlock(&maps.lock);
	spin_unlock(&doorbell_set.lock);
	open_uffd();
	if (listed)
		doorbell_tell_engine();
}

/* Lifts the protection: nobody would let a later store go.  Lock of the mappings held. */
static void mapping_disarm(struct doorbell_mapping *m)
{
	if (m->armed && maps.uffd && uffd_protect(maps.uffd, m->addr, UAR_BYTES, false) == 0)
		m->armed = false;
}

static bool lies_at(const struct doorbell_mapping *m, uintptr_t addr, size_t len)
{
	return ranges_overlap(m->addr, UAR_BYTES, addr, len);
}

/* Takes the mappings in that range off the list.  Lock held. */
static struct doorbell_mapping *mappings_take(uintptr_t addr, size_t len)
{
	struct doorbell_mapping **link = &maps.list, *taken = NULL;

	while (*link) {
		struct doorbell_mapping *m = *link;

		if (!lies_at(m, addr, len)) {
			link = &m->next;
			continue;
		}
		*link = m->next;
		mapping_leave(m);
		mapping_disarm(m);
		m->next = taken;
		taken = m;
	}
	set_bounds();
	return taken;
}

bool doorbell_page_mapped(const struct doorbell_page *page)
{
	bool mapped;

	spin_lock(&maps.lock);
	mapped = page->mappings != NULL;
	spin_unlock(&maps.lock);
	return mapped;
}

bool doorbell_unmapping(uintptr_t addr, size_t len)
{
	struct doorbell_mapping *m, *next;
	bool any;

	if (likely(out_of_bounds(addr, len)))
		return false;
	spin_lock(&maps.lock);
	m = mappings_take(addr, len);
	spin_unlock(&maps.lock);
	any = m != NULL;
	/* Frees without the lock: an allocator may unmap pages in free, which comes back here. */
	for (; m; m = next) {
		next = m->next;
		free(m);
	}
	return any;
}

/*
 * The program's mappings stay, and we still know them: a fault may have held up a store to one
 * already, and its handler is still to come.  It then lets the store go and tells nobody.
 */
void doorbell_forget(const uint8_t *regs, size_t len)
{
	spin_lock(&maps.lock);
	for (struct doorbell_mapping *m = maps.list; m; m = m->next) {
		if (!ranges_overlap((uintptr_t)m->regs, UAR_BYTES, (uintptr_t)regs, len))
			continue;
		mapping_leave(m);
		mapping_disarm(m);
		m->regs = NULL;
	}
	spin_unlock(&maps.lock);
}

void doorbell_moved(uintptr_t from, size_t len, uintptr_t to)
{
	bool any = false;

	if (likely(out_of_bounds(from, len)))
		return;
	spin_lock(&maps.lock);
	for (struct doorbell_mapping *m = maps.list; m; m = m->next) {
		if (!lies_at(m, from, len))
			continue;
		/* The kernel dropped the protection when it moved the mapping. */
		m->addr = to + (m->addr - from);
		m->added = m->armed = false;
		any = true;
	}
	set_bounds();
	spin_unlock(&maps.lock);
	if (any)
		doorbell_tell_engine();
}

/* ---- protection ---- */

static struct uffd *forget_uffd(void)
{
	struct uffd *u = maps.uffd;

	maps.uffd = NULL;
	for (struct doorbell_mapping *m = maps.list; m; m = m->next)
		m->added = m->armed = false;
	return u;
}

/* The program has closed our descriptor, so the engine polls from now on. */
static void give_up(void)
{
	maps.refused = true;
	maps.abandoned = forget_uffd();
	uffd_abandon(maps.abandoned);
}

/* Lets a held-up store go.  False: the page is not ours.  Lock of the mappings held. */
static bool let_go(struct doorbell_mapping *m)
{
	bool armed = m->armed;
	uint32_t value;

	m->armed = false;
	if (maps.uffd && m->added && uffd_protect(maps.uffd, m->addr, UAR_BYTES, false) < 0)
		give_up();
	/* When two threads store at once, the second finds the page open, or about to be; but the
	 * page must be there. */
	if (!armed && !usermem_load_be32((const void *)m->addr, &value))
		return false;
	if (m->page)
		atomic_store_explicit(&m->page->fault_ns, clock_ns(), memory_order_relaxed);
	return true;
}

static bool stays_armed(void)
{
	const struct doorbell_engine *engine =
		atomic_load_explicit(&doorbell_set.engine, memory_order_relaxed);

	return engine && engine->stays_armed;
}

/*
 * A library may copy a work request as a whole, in blocks (BlueFlame).  A block that is not the
 * first of its register says nothing that the first one has not said.
 */
static bool continues_copy(const struct doorbell_mapping *m, uintptr_t addr)
{
	uintptr_t at = addr - m->addr;

	return at >= UAR_SQ && at % UAR_SQ_HALF >= STORE_BLOCK;
}

/* A store to a register of send queues, which names one of them.  The number and the index of the
 * others do not matter, because their records tell. */
static bool names_queue(const struct doorbell_mapping *m, uintptr_t addr)
{
	return addr - m->addr >= UAR_SQ && m->page->group[DOORBELL_SQ].count;
}

/*
 * Tells whether to take the store and others of its block for executed; *value is then what it
 * stores to a register of send queues, or 0.  One that soon follows another is not taken: the next
 * should find the page open.  Lock of the mappings held.
 */
static bool mapping_take(const struct doorbell_mapping *m, uintptr_t addr, void *ucontext,
			 uint64_t *value)
{
	struct doorbell_page *page = m->page;
	bool named = names_queue(m, addr);
	uint64_t now;

	/* Only the register has what a store for an EQ says, as in pages of another kind. */
	if (!m->armed || !doorbell_is_direct(page) || page->group[DOORBELL_EQ].count ||
	    page->attr.look)
		return false;
	if (continues_copy(m, addr))
		return store_skip(ucontext, addr, NULL);
	/* Only the beginning of the register says it. */
	if (named && (addr - m->addr) % UAR_SQ_HALF)
		return false;
	now = clock_ns();
	if (now - page->taken_ns < ALONE_NS && !stays_armed())
		return false;
	if (!store_skip(ucontext, addr, named ? value : NULL))
		return false;
	page->taken_ns = now;
	return true;
}

static struct doorbell_mapping *mapping_at(uintptr_t addr)
{
	struct doorbell_mapping *m = maps.list;

	while (m && !lies_at(m, addr, 1))
		m = m->next;
	return m;
}

/* The same order as in doorbell_tell_engine. */
static void drive_device(void)
{
	const struct doorbell_engine *engine;

	atomic_fetch_add(&doorbell_set.telling, 1);
	engine = atomic_load(&doorbell_set.engine);
	if (engine && engine->drive && !engine->drive(engine->user))
		engine->kick(engine->user);
	atomic_fetch_sub(&doorbell_set.telling, 1);
}

void doorbell_await_none(void)
{
	while (atomic_load(&doorbell_set.telling))
		sched_yield();
}

bool doorbell_may_be_at(uintptr_t addr)
{
	return !out_of_bounds(addr, 1);
}

/*
 * The program wrote the rings and their records before the register, so a store that is still to
 * come rarely says anything new: the handler serves the queues here and now.
 */
bool doorbell_fault(uintptr_t addr, void *ucontext, bool may_serve)
{
	struct doorbell_page *page = NULL;
	struct doorbell_mapping *m;
	bool serve, ours, done;
	uint64_t value = 0;

	if (out_of_bounds(addr, 1))
		return false;
	/* If another thread holds the lock, or the stack has no room, the engine serves them. */
	serve = may_serve && spin_try(&doorbell_set.lock);
	spin_lock(&maps.lock);
	m = mapping_at(addr);
	if (m && serve && m->page && !m->page->gone)
		page = m->page;
	done = page && mapping_take(m, addr, ucontext, &value);
	if (done && continues_copy(m, addr))
		page = NULL; /* the first block has served it */
	ours = done || (m && let_go(m));
	spin_unlock(&maps.lock);
	if (ours)
		trace(doorbell, noticed, done ? "fault-skipped" : "fault-opened", "page", addr);
	if (page && ours) {
		if (value)
			doorbell_serve_named(page, value);
		done &= doorbell_serve_now(page);
	}
	if (serve)
		spin_unlock(&doorbell_set.lock);
	if (page && ours)
		drive_device();
	if (ours && !done)
		doorbell_tell_engine();
	return ours;
}

/* False: that is not possible. */
static bool arm_mapping(struct doorbell_mapping *m)
{
	if (!m->added && uffd_add(maps.uffd, m->addr, UAR_BYTES) < 0)
		return false;
	m->added = true;
	if (uffd_protect(maps.uffd, m->addr, UAR_BYTES, true) < 0)
		return false;
	m->armed = true;
	/* The records, too, tell of earlier stores, not only the registers. */
	doorbell_serve_all(m->page);
	return true;
}

static bool store_is_coming(struct doorbell_page *page, uint64_t *now)
{
	uint64_t fault = atomic_load_explicit(&page->fault_ns, memory_order_relaxed);

	if (likely(!fault))
		return false;
	if (!*now)
		*now = clock_ns();
	if (*now - fault < STORE_PATIENCE_NS)
		return true;
	atomic_compare_exchange_strong(&page->fault_ns, &fault, 0);
	return false;
}

static enum doorbell_sleep arm_page(struct doorbell_page *page, uint64_t *now)
{
	if (store_is_coming(page, now))
		return DOORBELL_STAY;
	if (!page->mappings || !maps.uffd || maps.never_arm)
		return DOORBELL_POLL;
	for (struct doorbell_mapping *m = page->mappings; m; m = m->next_of_page)
		if (!m->armed && !arm_mapping(m))
			return DOORBELL_POLL;
	return DOORBELL_SLEEP;
}

/* Returns a watched page of which we know no mapping, if it is time to look for one; or NULL. */
static const uint8_t *unmapped_page(void)
{
	const uint8_t *regs = NULL;
	uint64_t now = 0;

	spin_lock(&doorbell_set.lock);
	spin_lock(&maps.lock);
	for (struct doorbell_page *p = doorbell_set.watched; p && !regs; p = p->next_watched) {
		if (likely(p->mappings))
			continue;
		now = now ? now : clock_ns();
		if (now < p->search_ns)
			continue;
		p->search_ns = now + SEARCH_APART_NS;
		regs = p->attr.regs;
	}
	spin_unlock(&maps.lock);
	spin_unlock(&doorbell_set.lock);
	return regs;
}

enum doorbell_sleep doorbell_arm(void)
{
	enum doorbell_sleep sleep = DOORBELL_SLEEP;
	const uint8_t *regs = unmapped_page();
	uint64_t now = 0;

	if (unlikely(regs))
		doorbell_find(regs, doorbell_mapped);
	if (!maps.uffd && !maps.refused)
		open_uffd();
	spin_lock(&doorbell_set.lock);
	spin_lock(&maps.lock);
	for (struct doorbell_page *p = doorbell_set.watched; p && sleep != DOORBELL_STAY;
	     p = p->next_watched) {
		enum doorbell_sleep s = arm_page(p, &now);

		sleep = s < sleep ? s : sleep;
	}
	spin_unlock(&maps.lock);
	if (doorbell_look_locked(DOORBELL_WATCHED_PAGES))
		sleep = DOORBELL_STAY;
	spin_unlock(&doorbell_set.lock);
	return sleep;
}

void doorbell_wake(void)
{
	if (stays_armed())
		return;
	spin_lock(&maps.lock);
	for (struct doorbell_mapping *m = maps.list; m; m = m->next) {
		if (m->page && doorbell_is_direct(m->page))
			mapping_disarm(m);
	}
	spin_unlock(&maps.lock);
}

void doorbell_never_arm(void)
{
	spin_lock(&maps.lock);
	maps.never_arm = true;
	for (struct doorbell_mapping *m = maps.list; m; m = m->next)
		mapping_disarm(m);
	spin_unlock(&maps.lock);
	doorbell_tell_engine();
}

/* ---- beginning and end ---- */

void doorbell_start(const struct doorbell_engine *engine)
{
	atomic_store(&doorbell_set.engine, engine);
}

void doorbell_stop(void)
{
	struct uffd *u;

	spin_lock(&maps.lock);
	u = forget_uffd();
	if (!u)
		u = maps.abandoned;
	maps.abandoned = NULL;
	spin_unlock(&maps.lock);
	if (u)
		uffd_close(u);
	atomic_store(&doorbell_set.engine, NULL);
	doorbell_await_none();
}

/*
 * The lists stay as they are, because another thread of the parent may have been changing them; the
 * child loses what they hold.
 */
void doorbell_fork_child(void)
{
	if (maps.uffd)
		uffd_fork_child(maps.uffd);
	doorbell_set = (struct doorbell_set){0};
	maps.lock = (struct spin){0};
	maps.list = NULL;
	maps.uffd = NULL;
	maps.abandoned = NULL;
	maps.refused = false;
	maps.opening = false;
	set_bounds();
	atomic_store(&doorbell_load.watched, 0);
	atomic_store(&doorbell_load.direct, 0);
}
