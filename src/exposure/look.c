// SPDX-License-Identifier: BSD-2-Clause
/* See look.h. */
#include "exposure/look.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/endian.h"
#include "base/thread.h"

/* ---- work that another program may hold up ---- */

/*
 * A read of its memory waits if it serves the faults itself (userfaultfd, FUSE), for as long as it
 * likes.  So a child does the work, and is killed if need be.  The child is made by bare system calls:
 * we may be a guest in a program with threads, handlers of fork and of SIGCHLD, and a child of that
 * program's would be its affair.
 */

#define GUARDED_END_MS 100

/* Runs in the child, and says when it has come to the end. */
static _Noreturn void guarded_child(void (*work)(void *arg), void *arg, int out, pid_t parent)
{
	char end = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (syscall(SYS_getppid) != parent)
		syscall(SYS_exit_group, 1);
	work(arg);
	for (;;)
		syscall(SYS_exit_group, syscall(SYS_write, out, &end, 1) == 1 ? 0 : 1);
}

/* As poll(2), without the C library, and by the system call that every machine has. */
static long pipe_poll(struct pollfd *p, int milliseconds)
{
	struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

	return syscall(SYS_ppoll, p, 1, &limit, NULL, 0);
}

/* Tells whether the child comes to the end before the time is over. */
static bool guarded_wait(int in, int milliseconds)
{
	uint64_t until = clock_ns() + (uint64_t)milliseconds * 1000000u;
	struct pollfd p = {.fd = in, .events = POLLIN};
	char end;

	for (;;) {
		uint64_t now = clock_ns();
		int left = now < until ? (int)((until - now) / 1000000u) + 1 : 0;
		long n = pipe_poll(&p, left);

		if (n > 0)
			return syscall(SYS_read, in, &end, 1) == 1;
		if (n < 0 && errno != EINTR)
			return false;
		if (!left)
			return false;
	}
}

/* Makes a child that no SIGCHLD tells of, in which no handler of the program runs. */
static pid_t guarded_fork(void)
{
	uint64_t signals;
	long pid;

	signals_hold(&signals);
	pid = syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (pid)
		signals_release(&signals);
	return (pid_t)pid;
}

/* Ends a child.  One that hangs in a read goes within moments of the signal, which closes its end of
 * the pipe; one that does not even then is left alone. */
static void guarded_end(pid_t pid, int in, bool done)
{
	struct pollfd p = {.fd = in, .events = POLLIN};
	long n = done;

	syscall(SYS_kill, pid, SIGKILL);
	if (!done)
		do
			n = pipe_poll(&p, GUARDED_END_MS);
		while (n < 0 && errno == EINTR);
	syscall(SYS_wait4, pid, NULL, __WALL | (n > 0 ? 0 : WNOHANG), NULL);
}

/* Calls work(arg) in a child.  False: it did not return within 'milliseconds', or not at all.  What
 * it is to leave must lie in shared memory. */
static bool guarded_run(void (*work)(void *arg), void *arg, int milliseconds)
{
	pid_t self = getpid(), pid;
	int ends[2];
	bool done;

	if (syscall(SYS_pipe2, ends, O_CLOEXEC))
		return false;
	pid = guarded_fork();
	if (!pid) {
		syscall(SYS_close, ends[0]);
		guarded_child(work, arg, ends[1], self);
	}
	syscall(SYS_close, ends[1]);
	done = pid > 0 && guarded_wait(ends[0], milliseconds);
	if (pid > 0)
		guarded_end(pid, ends[0], done);
	syscall(SYS_close, ends[0]);
	return done;
}

/* ---- a look at another process ---- */

struct look_task {
	const struct slot *slot;
	struct look *look;
};

static bool place_ok(const struct object_place *p)
{
	return (p->bytes == 1 || p->bytes == 2 || p->bytes == 4 || p->bytes == 8) &&
	       p->offset + p->bytes <= OBJECT_MAX_BYTES;
}

/* Returns how many bytes of an object hold its figures. */
static size_t form_bytes(const struct object_form *form)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < FIGURES; i++) {
		const struct object_place *p = &form->figures[i];

		if (place_ok(p) && (size_t)p->offset + p->bytes > bytes)
			bytes = (size_t)p->offset + p->bytes;
	}
	return bytes;
}

/* Returns 0 or an errno. */
static int memory_read(int32_t pid, uint64_t at, void *to, size_t bytes)
{
	struct iovec local = {to, bytes};
	struct iovec remote = {(void *)(uintptr_t)at, bytes};
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return errno;
	return (size_t)n == bytes ? 0 : EFAULT;
}

static void figures_take(const struct object_form *form, const uint8_t *object,
			 struct look_object *out)
{
	for (unsigned i = 0; i < FIGURES; i++) {
		const struct object_place *p = &form->figures[i];

		/* x86-64 has the low bytes first */
		if (place_ok(p))
			memcpy(&out->figures[i], object + p->offset, p->bytes);
	}
}

/* Returns 0, or an errno if no other object could be read either. */
static int object_read(struct look *l, int fd, int32_t pid, uint32_t row)
{
	const struct object_row *r = &l->mem.objects[row];
	const struct object_form *form = &l->mem.forms[r->about.kind];
	uint8_t object[OBJECT_MAX_BYTES];
	struct look_object seen = {0};
	const size_t bytes = form_bytes(form);
	int ret = bytes ? memory_read(pid, r->about.at, object, bytes) : 0;
	be32 record[2];

	if (ret || !bytes)
		return ret == EFAULT ? 0 : ret;
	figures_take(form, object, &seen);
	if (seen.figures[FIGURE_RECORD] &&
	    !memory_read(pid, seen.figures[FIGURE_RECORD], record, sizeof(record))) {
		seen.record[0] = be32_get(record[0]);
		seen.record[1] = be32_get(record[1]);
		seen.record_known = true;
	}
	seen.known = seen.figures[FIGURE_NUMBER] == r->about.number &&
		     expose_object_stands(fd, row, r->serial);
	l->objects[row] = seen;
	return 0;
}

static void objects_read(struct look *l, int fd, int32_t pid)
{
	for (uint32_t row = 0; row < OBJECT_ROWS && !l->error; row++)
		if (look_about(l, row))
			l->error = object_read(l, fd, pid, row);
}

/* Runs in the child. */
static void look_work(void *arg)
{
	const struct look_task *t = arg;
	struct look *l = t->look;
	int fd = expose_snapshot_open(t->slot);

	l->copied = fd >= 0 && expose_snapshot(fd, &l->mem);
	if (l->copied)
		objects_read(l, fd, t->slot->pid);
	l->end = l->copied ? LOOK_DONE : LOOK_CLOSED;
}

struct look *look_at(const struct slot *s, int milliseconds)
{
	struct look *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct look_task t = {s, l};

	if (l == MAP_FAILED)
		return NULL;
	if (!guarded_run(look_work, &t, milliseconds))
		l->end = LOOK_HELD_UP;
	return l;
}

void look_free(struct look *l)
{
	if (l)
		munmap(l, sizeof(*l));
}

const struct object_about *look_about(const struct look *l, uint32_t row)
{
	const struct object_row *r = &l->mem.objects[row];
	uint64_t serial = atomic_load_explicit(&r->serial, memory_order_relaxed);

	/* UINT64_MAX: the process is filling it */
	return serial && serial != UINT64_MAX && r->about.kind < OBJECT_KINDS ? &r->about : NULL;
}

/* ---- what a copy of an exposure says ---- */

const struct key_block *look_key_block(const struct expose_mem *m, uint32_t i)
{
	const struct key_block *k = &m->keys[i];

	return k->key && !(k->seq & 1) && (unsigned)k->place.way <= KEY_MAPPED ? k : NULL;
}

bool look_key(const struct expose_mem *m, uint32_t i, struct key_block *out)
{
	const struct expose_note *n = &m->other_keys[i % EXPOSE_BLOCKS];
	const struct key_block *k = i < EXPOSE_BLOCKS ? look_key_block(m, i) : NULL;

	if (k)
		*out = *k;
	else if (i >= EXPOSE_BLOCKS && n->number)
		*out = (struct key_block){
			.key = n->number,
			.pdn = n->pdn,
			.access = n->access,
			.iova = n->iova,
			.length = n->length,
			.place = {.way = KEY_PACKETS, .why = (enum key_why)n->kind},
		};
	else
		return false;
	return true;
}

const struct qp_block *look_qp_block(const struct expose_mem *m, uint32_t qpn)
{
	const struct qp_block *b = &m->qps[qpn % EXPOSE_BLOCKS];

	return b->qpn == qpn ? b : NULL;
}

bool look_expected_psn(const struct expose_mem *m, uint32_t qpn, uint32_t *psn)
{
	const struct qp_block *b = look_qp_block(m, qpn);
	uint64_t word = b ? qp_word_load(&b->word) : 0;

	*psn = qp_word_epsn(word);
	return qp_word_is_open(word);
}
