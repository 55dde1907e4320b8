// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a process that has failed leaves: the report with the calls of its threads, and the core
 * file.
 */
#include "dpa/crash.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dpa/process.h"
#include "usermem/usermem.h"

/* ---- the core file ---- */

/*
 * Pages of zeroes become holes of the file.  Threads that are in the middle of
 * something go on meanwhile, and the file gets what they have at that moment.
 */

#define PAGE	  4096u
#define PARTS_MAX (DPA_IMAGE_SEGMENTS + 2 + DPA_THREADS)

struct core {
	struct dpa_process *process;
	int fd;
	Elf64_Phdr part[PARTS_MAX];
	uint32_t nparts;
	uint8_t *notes;
	size_t notes_bytes, notes_room;
	int pagemap; /* /proc/self/pagemap, or -1 */
	int error;
};

/* ---- writing ---- */

static void core_put(struct core *c, const void *data, size_t bytes, uint64_t offset)
{
	const uint8_t *at = data;

	while (bytes && !c->error) {
		ssize_t n = pwrite(c->fd, at, bytes, (off_t)offset);

		if (n < 0) {
			c->error = -errno;
			return;
		}
		at += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
}

/*
 * Lets the kernel copy, if it may: stacks have parts that are not in use, and valgrind would report
 * it if we read them.
 */
static bool page_read(uint8_t page[PAGE], uint64_t addr)
{
	const struct iovec here = {page, PAGE}, there = {(void *)(uintptr_t)addr, PAGE};

	return process_vm_readv(gettid(), &here, 1, &there, 1, 0) == (ssize_t)PAGE ||
	       usermem_copy(page, there.iov_base, PAGE);
}

/* A page that is in none of these states has never been written to. */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_PAGES	512u

/*
 * Reads the states of pages, because most of a heap is untouched, and to read all of it takes
 * seconds.  Without /proc each page may hold something.
 */
static void pages_states(const struct core *c, uint64_t addr, uint64_t states[PAGEMAP_PAGES])
{
	const size_t bytes = PAGEMAP_PAGES * sizeof(states[0]);

	if (c->pagemap < 0 || pread(c->pagemap, states, bytes,
				    (off_t)(addr / PAGE * sizeof(states[0]))) != (ssize_t)bytes)
		memset(states, 0xff, bytes);
}

static void part_write(struct core *c, const Elf64_Phdr *part)
{
	static const uint8_t zeroes[PAGE];
	uint64_t states[PAGEMAP_PAGES];
	uint8_t page[PAGE];

	for (uint64_t at = 0; at < part->p_memsz && !c->error; at += PAGE) {
		uint64_t i = at / PAGE % PAGEMAP_PAGES;

		if (!i)
			pages_states(c, part->p_vaddr + at, states);
		/* Leaves out what cannot be read. */
		if ((states[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED)) &&
		    page_read(page, part->p_vaddr + at) && memcmp(page, zeroes, PAGE) != 0)
			core_put(c, page, PAGE, part->p_offset + at);
	}
}

/* ---- memory ---- */

static void part_add(struct core *c, uint64_t addr, uint64_t bytes, int prot)
{
	uint64_t start = addr & ~(uint64_t)(PAGE - 1), end = align_up(addr + bytes, PAGE);

	c->part[c->nparts++] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = (prot & PROT_READ ? PF_R : 0u) | (prot & PROT_WRITE ? PF_W : 0u) |
			   (prot & PROT_EXEC ? PF_X : 0u),
		.p_vaddr = start,
		.p_filesz = end - start,
		.p_memsz = end - start,
		.p_align = PAGE,
	};
}

/* The process's lock is held. */
static void parts_collect(struct core *c)
{
	const struct dpa_process *p = c->process;

	for (unsigned i = 0; i < p->image.nsegments; i++)
		part_add(c, (uintptr_t)p->region + p->image.segment[i].addr,
			 p->image.segment[i].bytes, p->image.segment[i].prot);
	part_add(c, p->heap.base, p->heap.bytes, PROT_READ | PROT_WRITE);
	for (const struct dpa_thread *t = p->threads; t && c->nparts < PARTS_MAX; t = t->next)
		part_add(c, (uintptr_t)dpa_slot_stack(p, t->slot), DPA_STACK_BYTES,
			 PROT_READ | PROT_WRITE);
	/* The error handler of the process is running. */
	if (p->crashed && p->crashed->slot != p->crash.slot)
		part_add(c, (uintptr_t)dpa_slot_stack(p, p->crash.slot), DPA_STACK_BYTES,
			 PROT_READ | PROT_WRITE);
}

/* ---- notes ---- */

static void note_add(struct core *c, uint32_t type, const void *data, size_t bytes)
{
	const Elf64_Nhdr h = {.n_namesz = 5, .n_descsz = (uint32_t)bytes, .n_type = type};
	size_t need = sizeof(h) + 8 + align_up(bytes, 4);
	uint8_t *at;

	if (c->notes_room - c->notes_bytes < need) {
		c->error = -ENOMEM;
		return;
	}
	at = c->notes + c->notes_bytes;
	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h), "CORE", 5);
	memcpy(at + sizeof(h) + 8, data, bytes);
	c->notes_bytes += need;
}

static void registers_put(struct elf_prstatus *status, const struct dpa_registers *r)
{
	unsigned long long *out = (unsigned long long *)&status->pr_reg;

#if defined(__x86_64__)
	/* The order of struct user_regs_struct: from r15 to rip and rsp. */
	static const int order[] = {REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX,
				    REG_R11, REG_R10, REG_R9,  REG_R8,	REG_RAX, REG_RCX,
				    REG_RDX, REG_RSI, REG_RDI, REG_RAX, REG_RIP};

	for (unsigned i = 0; i < array_size(order); i++)
		out[i] = (unsigned long long)r->all.gregs[order[i]];
	out[4] = r->fp;
	out[16] = r->pc - r->returns;
	out[18] = (unsigned long long)r->all.gregs[REG_EFL];
	out[19] = r->sp;
#elif defined(__aarch64__)
	for (unsigned i = 0; i < 31; i++)
		out[i] = r->all.regs[i];
	out[29] = r->fp;
	out[31] = r->sp;
	out[32] = r->pc - r->returns;
	out[33] = r->all.pstate;
#endif
}

/* Returns the signal that a debugger is to name. */
static int signal_of(const struct dpa_left *left)
{
	if (left->outcome == DPA_OUT_FAULT)
		return left->fault.signum ? left->fault.signum : SIGSEGV;
	return left->outcome == DPA_OUT_ERROR ? SIGABRT : 0;
}

static bool dpa_crash_left(const struct dpa_thread *t, struct dpa_left *left);

static void thread_note(struct core *c, const struct dpa_thread *t)
{
	struct elf_prstatus status = {0};
	struct dpa_left left;

	status.pr_pid = t ? atomic_load(&t->tid) : getpid();
	if (t && dpa_crash_left(t, &left)) {
		status.pr_cursig = (short)signal_of(&left);
		status.pr_info.si_signo = signal_of(&left);
		registers_put(&status, &left.registers);
	}
	note_add(c, NT_PRSTATUS, &status, sizeof(status));
}

/* Tells gdb where the image lies. */
static void place_note(struct core *c)
{
	const struct dpa_process *p = c->process;
	uint64_t base = (uintptr_t)p->region;
	Elf64_Ehdr h;

	memcpy(&h, p->image.file, sizeof(h));
	const Elf64_auxv_t aux[] = {
		{AT_PHDR, {base + h.e_phoff}},	{AT_PHENT, {h.e_phentsize}},
		{AT_PHNUM, {h.e_phnum}},	{AT_PAGESZ, {PAGE}},
		{AT_ENTRY, {base + h.e_entry}}, {AT_NULL, {0}},
	};

	note_add(c, NT_AUXV, aux, sizeof(aux));
}

/* A thread that has nothing to do is nowhere in device code, so the file leaves it out. */
static bool thread_is_shown(const struct dpa_thread *t)
{
	struct dpa_left left;

	return atomic_load(&t->running) || dpa_crash_left(t, &left);
}

/* The thread that failed comes first, because gdb begins there. */
static void notes_collect(struct core *c)
{
	const struct dpa_process *p = c->process;
	struct elf_prpsinfo info = {.pr_pid = getpid(), .pr_fname = "dpa"};

	if (p->crashed || !p->threads)
		thread_note(c, p->crashed);
	note_add(c, NT_PRPSINFO, &info, sizeof(info));
	place_note(c);
	for (const struct dpa_thread *t = p->threads; t; t = t->next)
		if (t != p->crashed && thread_is_shown(t))
			thread_note(c, t);
}

/* ---- the file ---- */

static void header_write(struct core *c)
{
	const Elf64_Ehdr h = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_CORE,
#if defined(__aarch64__)
		.e_machine = EM_AARCH64,
#else
		.e_machine = EM_X86_64,
#endif
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h),
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)(c->nparts + 1),
	};
	const Elf64_Phdr note = {
		.p_type = PT_NOTE,
		.p_offset = sizeof(h) + (c->nparts + 1ull) * sizeof(note),
		.p_filesz = c->notes_bytes,
		.p_align = 4,
	};
	uint64_t offset = align_up(note.p_offset + note.p_filesz, PAGE);

	for (uint32_t i = 0; i < c->nparts; i++) {
		c->part[i].p_offset = offset;
		offset += c->part[i].p_filesz;
	}
	core_put(c, &h, sizeof(h), 0);
	core_put(c, &note, sizeof(note), sizeof(h));
	core_put(c, c->part, c->nparts * sizeof(c->part[0]), sizeof(h) + sizeof(note));
	core_put(c, c->notes, c->notes_bytes, note.p_offset);
	if (!c->error && ftruncate(c->fd, (off_t)offset))
		c->error = -errno;
}

static int pagemap_open(void)
{
	return sysconf(_SC_PAGESIZE) == (long)PAGE
		       ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)
		       : -1;
}

int dpa_core_write(struct dpa_process *p, int fd)
{
	struct core *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->process = p;
	c->fd = fd;
	c->pagemap = pagemap_open();
	c->notes_room = (DPA_THREADS + 4) * (sizeof(struct elf_prstatus) + 64);
	c->notes = calloc(1, c->notes_room);
	if (!c->notes)
		c->error = -ENOMEM;
	pthread_mutex_lock(&p->lock);
	if (!c->error) {
		parts_collect(c);
		notes_collect(c);
		header_write(c);
	}
	for (uint32_t i = 0; i < c->nparts && !c->error; i++)
		part_write(c, &c->part[i]);
	pthread_mutex_unlock(&p->lock);
	if (c->pagemap >= 0)
		close(c->pagemap);
	ret = c->error;
	free(c->notes);
	free(c);
	return ret;
}

/* ---- the report ---- */

/*
 * See dpa/crash.h.  Device code keeps frame pointers, and its stacks are memory that it may have
 * spoiled: each frame has to lie above the one before it, on the same stack.
 */

struct frames {
	struct dpa_frame *frame;
	uint32_t n, room;
};

static bool in_code(const struct dpa_process *p, uint64_t pc)
{
	return dpa_image_has(&p->image, pc - (uintptr_t)p->region, 1, PROT_EXEC);
}

/* Reads two words of the stack; false: it has none there. */
static bool stack_words(const struct dpa_process *p, uint32_t slot, uint64_t addr,
			uint64_t words[2])
{
	uint64_t low = (uintptr_t)dpa_slot_stack(p, slot);

	if (addr % sizeof(words[0]) ||
	    !range_inside(addr - low, 2 * sizeof(words[0]), DPA_STACK_BYTES))
		return false;
	memcpy(words, (const void *)(uintptr_t)addr, 2 * sizeof(words[0]));
	return true;
}

/* back: pc is where a call returns to, so this looks for the instruction before it. */
static void frame_add(struct frames *f, const struct dpa_process *p, struct dpa_frame frame,
		      bool back)
{
	if (f->n == f->room)
		return;
	frame.image = UINT64_MAX;
	if (in_code(p, frame.pc - back)) {
		frame.image = frame.pc - back - (uintptr_t)p->region;
		frame.name = dpa_image_where(&p->image, frame.image, &frame.offset);
	}
	f->frame[f->n++] = frame;
}

/*
 * A function has a frame, except during its first two instructions and its last.  There the frame
 * pointer is still, or again, the caller's, and the return address is at the top of the stack.  The
 * same holds behind a jump to nowhere.  0: the frame is there.
 */
static uint64_t return_address(const struct dpa_process *p, const struct dpa_left *left)
{
#if defined(__aarch64__)
	return in_code(p, left->registers.pc) ? 0 : left->registers.all.regs[30];
#else
	const uint8_t ret = 0xc3;
	uint64_t pc = left->registers.pc, offset = 0, words[2];
	bool named;

	if (left->registers.returns || !stack_words(p, left->slot, left->registers.sp, words))
		return 0;
	if (!in_code(p, pc))
		return words[0];
	named = dpa_image_where(&p->image, pc - (uintptr_t)p->region, &offset);
	if (named && offset == 1)
		return words[1];
	return (named && !offset) || !memcmp((const void *)(uintptr_t)pc, &ret, 1) ? words[0] : 0;
#endif
}

static void thread_frames(struct frames *f, const struct dpa_process *p,
			  const struct dpa_left *left, uint32_t number)
{
	struct dpa_frame frame = {
		.thread = number,
		.pc = left->registers.pc,
		.sp = left->registers.sp,
		.fp = left->registers.fp,
	};
	uint64_t words[2], caller = return_address(p, left);

	frame_add(f, p, frame, left->registers.returns);
	if (in_code(p, caller)) {
		frame.depth++;
		frame.pc = caller;
		frame_add(f, p, frame, true);
	}
	while (frame.depth < DPA_FRAMES_MAX && stack_words(p, left->slot, frame.fp, words) &&
	       words[1]) {
		bool upwards = words[0] > frame.fp;

		frame.depth++;
		frame.pc = words[1];
		frame.sp = frame.fp + sizeof(words);
		frame.fp = words[0];
		if (!in_code(p, frame.pc))
			return;
		frame_add(f, p, frame, true);
		if (!upwards)
			return;
	}
}

/*
 * Gives where a thread was when it failed or was stopped; false: it did neither, or runs.  The
 * process's lock is held.
 */
static bool dpa_crash_left(const struct dpa_thread *t, struct dpa_left *left)
{
	if (t == t->process->crashed)
		*left = t->process->crash;
	else if (atomic_load(&t->running))
		return false;
	else
		*left = (struct dpa_left){t->outcome, t->registers, t->fault, t->slot};
	return left->registers.known &&
	       (left->outcome == DPA_OUT_FAULT || left->outcome == DPA_OUT_ERROR ||
		left->outcome == DPA_OUT_STOPPED);
}

uint32_t dpa_crash_late(struct dpa_process *p, const struct dpa_thread *t)
{
	struct dpa_late_calls *late = &p->late;
	struct frames f = {.room = DPA_LATE_FRAMES};
	struct dpa_left left;
	uint32_t slot, number = 0;

	pthread_mutex_lock(&p->lock);
	/* The thread of a process that has been destroyed may be gone. */
	if (dpa_process_state(p) == DPA_RUNNING && dpa_crash_left(t, &left)) {
		slot = late->count++ % DPA_LATE_CALLS;
		number = late->count;
		f.frame = late->frame[slot];
		thread_frames(&f, p, &left, number);
		for (uint32_t i = 0; i < f.n; i++)
			f.frame[i].late = true;
		late->frames[slot] = f.n;
	}
	pthread_mutex_unlock(&p->lock);
	return number;
}

static void frames_copy(struct frames *f, const struct dpa_frame *frame, uint32_t n)
{
	n = min_u32(n, f->room - f->n);
	memcpy(f->frame + f->n, frame, n * sizeof(*frame));
	f->n += n;
}

/* Copies the frames of all late calls that are remembered, the oldest first. */
static void late_copy(struct frames *f, const struct dpa_late_calls *late)
{
	uint32_t n = min_u32(late->count, DPA_LATE_CALLS);

	for (uint32_t i = late->count - n; i != late->count; i++)
		frames_copy(f, late->frame[i % DPA_LATE_CALLS], late->frames[i % DPA_LATE_CALLS]);
}

/* The threads of a process that has failed.  The lock is held. */
static void threads_copy(struct frames *f, struct dpa_process *p)
{
	struct dpa_left left;
	uint32_t number = 0;

	if (p->crashed && dpa_crash_left(p->crashed, &left))
		thread_frames(f, p, &left, number);
	for (const struct dpa_thread *t = p->threads; t; t = t->next)
		if (t != p->crashed && dpa_crash_left(t, &left))
			thread_frames(f, p, &left, ++number);
}

uint32_t dpa_crash_read(struct dpa_process *p, struct dpa_crash *crash, struct dpa_frame *frame,
			uint32_t room)
{
	struct frames f = {frame, 0, room};

	*crash = (struct dpa_crash){0};
	pthread_mutex_lock(&p->lock);
	if (p->crashed && p->crash.outcome == DPA_OUT_FAULT) {
		const struct dpa_fault *fault = &p->crash.fault;

		*crash = (struct dpa_crash){true,	  (uint32_t)fault->signum,
					    fault->write, fault->addr,
					    fault->bytes, fault->stack,
					    fault->block};
	}
	if (dpa_process_state(p) == DPA_FATAL)
		threads_copy(&f, p);
	late_copy(&f, &p->late);
	pthread_mutex_unlock(&p->lock);
	return f.n;
}
