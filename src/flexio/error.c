// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the library says of a process that has failed, and what such a process leaves to its author.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lines.h"
#include "base/text.h"
#include "flexio/image.h"
#include "flexio/internal.h"
#include "prm/eqe.h"

/* ---- what a failed process leaves to its author: the crash report and the core file ---- */

#define FRAMES	    256u
#define LINE_FRAMES 4u /* of them in a line of the log */
#define PATH_BYTES  4096u

/* Opens PATH.NNN.SUFFIX, with the number of this process; NULL: it cannot. */
static FILE *dump_open(const char *outfile, const char *suffix, char path[PATH_BYTES])
{
	const char *name = outfile ? outfile : "flexio_dev";
	const char *base = text_file_name(name);
	FILE *f;

	snprintf(path, PATH_BYTES, "%s.%d.%s", name, (int)getpid(), suffix);
	f = fopen(path, "we");
	if (f || name[0] == '/')
		return f;
	snprintf(path, PATH_BYTES, "%s/%s.%d.%s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
		 base, (int)getpid(), suffix);
	return fopen(path, "we");
}

/* ---- text ---- */

/* A line that grows; what finds no room is cut. */
struct line_text {
	char text[1024];
	size_t bytes;
};

static void line_add(struct line_text *line, const char *fmt, ...) printf_like(2, 3);
static void line_add(struct line_text *line, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line->text + line->bytes, sizeof(line->text) - line->bytes, fmt, ap);
	va_end(ap);
	line->bytes = min_u64(line->bytes + (n > 0 ? (size_t)n : 0), sizeof(line->text) - 1);
}

/* ---- places in the host program ---- */

/* A function of the host program: the object that has the address, and the place in its file. */
struct host_place {
	uint64_t addr; /* in memory, then in the file */
	const char *object;
	char path[PATH_BYTES];
};

static int object_has(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct host_place *place = arg;
	uint64_t at = place->addr - info->dlpi_addr;

	(void)bytes;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || at - ph->p_vaddr >= ph->p_memsz)
			continue;
		place->addr = at;
		/* The program itself has no name there. */
		snprintf(place->path, sizeof(place->path), "%s",
			 *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
		place->object = *info->dlpi_name ? text_file_name(place->path)
						 : program_invocation_short_name;
		return 1;
	}
	return 0;
}

/* Maps a file to be read; NULL: it cannot. */
static void *file_map(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *file = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && st.st_size > 0)
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	*bytes = (size_t)st.st_size;
	return file == MAP_FAILED ? NULL : file;
}

/* Adds " in FUNCTION at FILE:LINE" of the call that returns to that address. */
static void line_add_host(struct line_text *text, uint64_t addr)
{
	struct host_place place = {.addr = addr - 1};
	const char *name = NULL;
	struct elf_line line;
	size_t bytes = 0;
	void *file;

	if (!addr || !dl_iterate_phdr(object_has, &place))
		return;
	file = file_map(place.path, &bytes);
	if (file)
		name = flx_symbol_at(file, bytes, place.addr);
	line_add(text, " in %s", name ? name : place.object);
	if (file && elf_line_find(file, bytes, place.addr, &line))
		line_add(text, " at %s:%llu", line.file, (unsigned long long)line.line);
	else if (!name)
		line_add(text, "+0x%llx", (unsigned long long)place.addr);
	if (file)
		munmap(file, bytes);
}

/* ---- what the fault was ---- */

/* Where an access lies in the block of the heap that it was meant for, and whose the block is. */
static void line_add_block(struct line_text *text, const uint8_t *crash)
{
	uint64_t block = prm_get(crash, DPA_CRASH_BLOCK), addr = prm_get(crash, DPA_CRASH_ADDR);
	uint64_t last = addr - block + prm_get(crash, DPA_CRASH_BYTES) - 1;

	if (addr < block)
		line_add(text, "%llu bytes in front", (unsigned long long)(block - addr));
	else
		line_add(text, "bytes %llu to %llu", (unsigned long long)(addr - block),
			 (unsigned long long)last);
	line_add(text, " of a block of %llu bytes at 0x%llx, allocated",
		 (unsigned long long)prm_get(crash, DPA_CRASH_BLOCK_BYTES),
		 (unsigned long long)block);
	line_add_host(text, prm_get(crash, DPA_CRASH_ALLOCATED_BY));
	if (!prm_get(crash, DPA_CRASH_FREED))
		return;
	line_add(text, " and freed");
	line_add_host(text, prm_get(crash, DPA_CRASH_FREED_BY));
}

static void line_add_fault(struct line_text *text, const uint8_t *crash)
{
	unsigned long long addr = prm_get(crash, DPA_CRASH_ADDR);

	if (prm_get(crash, DPA_CRASH_STACK)) {
		line_add(text, "stack overflow at address 0x%llx", addr);
	} else if (prm_get(crash, DPA_CRASH_BYTES)) {
		line_add(text, "%s of %llu bytes at 0x%llx: ",
			 prm_get(crash, DPA_CRASH_WRITE) ? "store" : "load",
			 (unsigned long long)prm_get(crash, DPA_CRASH_BYTES), addr);
		if (prm_get(crash, DPA_CRASH_BLOCK_BYTES))
			line_add_block(text, crash);
		else
			line_add(text, "it is none of the process's memory");
	} else {
		line_add(text, "%s at address 0x%llx",
			 strsignal((int)prm_get32(crash, DPA_CRASH_SIGNAL)), addr);
	}
}

/* ---- the report ---- */

static void report_state(FILE *f, const struct flexio_process *p, const uint8_t *out)
{
	static const char *const states[] = {
		[DPA_RUNNING] = "runs",
		[DPA_FINISHED] = "has finished",
		[DPA_FATAL] = "has failed",
		[DPA_ENDED] = "has been destroyed",
	};
	uint32_t state = prm_get32(out, DPA_OUT_STATE);
	const uint8_t *crash = out + DPA_OUT_BYTES;
	struct line_text fault = {0};

	fprintf(f, "DPA process 0x%x of application %s %s, code 0x%x\n", p->number, p->app->name,
		state < array_size(states) ? states[state] : "?", prm_get32(out, DPA_OUT_CODE));
	if (!prm_get(crash, DPA_CRASH_FAULT))
		return;
	line_add_fault(&fault, crash);
	fprintf(f, "%s\n", fault.text);
}

static void report_frame(FILE *f, const struct flexio_process *p, const uint8_t *frame)
{
	uint64_t image = prm_get(frame, DPA_FRAME_IMAGE);
	const char *name = (const char *)frame + DPA_FRAME_NAME;
	struct elf_line line;

	if (!prm_get(frame, DPA_FRAME_DEPTH))
		fprintf(f, "%s %u%s: sp 0x%llx, fp 0x%llx\n",
			prm_get(frame, DPA_FRAME_LATE) ? "call" : "thread",
			prm_get32(frame, DPA_FRAME_THREAD),
			prm_get(frame, DPA_FRAME_LATE)	   ? ", which took too long"
			: prm_get(frame, DPA_FRAME_THREAD) ? ""
							   : ", which failed",
			(unsigned long long)prm_get(frame, DPA_FRAME_SP),
			(unsigned long long)prm_get(frame, DPA_FRAME_FP));
	fprintf(f, "  #%u 0x%llx", prm_get32(frame, DPA_FRAME_DEPTH),
		(unsigned long long)prm_get(frame, DPA_FRAME_PC));
	if (name[0])
		fprintf(f, " in %.*s+0x%llx", (int)DPA_FRAME_NAME_BYTES, name,
			(unsigned long long)prm_get(frame, DPA_FRAME_OFFSET));
	if (image != UINT64_MAX && elf_line_find(p->app->elf, p->app->elf_bytes, image, &line))
		fprintf(f, " at %s:%llu", line.file, (unsigned long long)line.line);
	fputc('\n', f);
}

static void report_write(FILE *f, const struct flexio_process *p, const uint8_t *out)
{
	uint32_t n = prm_get32(out + DPA_OUT_BYTES, DPA_CRASH_FRAMES);

	report_state(f, p, out);
	for (uint32_t i = 0; i < n && i < FRAMES; i++)
		report_frame(f, p, out + DPA_OUT_BYTES + DPA_CRASH_HEADER + i * DPA_FRAME_BYTES);
}

/* Returns what the device knows, to be freed; NULL with an errno. */
static uint8_t *crash_read(const struct flexio_process *p)
{
	size_t bytes = DPA_OUT_BYTES + DPA_CRASH_HEADER + FRAMES * DPA_FRAME_BYTES;
	uint8_t in[DPA_IN_FIXED] = {0}, *out = calloc(1, bytes);
	int err = out ? flx_devx_op(p, DPA_OP_CRASH, in, sizeof(in), out, bytes) : ENOMEM;

	if (!err)
		return out;
	free(out);
	errno = err;
	return NULL;
}

/* ---- the same in one line of the log ---- */

/* Function, file and line of the frames of one thread or late call, the innermost first. */
static void line_add_frames(struct line_text *text, const struct flexio_process *p,
			    const uint8_t *out, uint32_t thread, bool late)
{
	uint32_t n = prm_get32(out + DPA_OUT_BYTES, DPA_CRASH_FRAMES);
	const uint8_t *frame = out + DPA_OUT_BYTES + DPA_CRASH_HEADER;
	const char *word = " in ";

	for (uint32_t i = 0; i < n && i < FRAMES; i++, frame += DPA_FRAME_BYTES) {
		const char *name = (const char *)frame + DPA_FRAME_NAME;
		struct elf_line line;

		if (prm_get32(frame, DPA_FRAME_THREAD) != thread ||
		    prm_get(frame, DPA_FRAME_LATE) != late ||
		    prm_get(frame, DPA_FRAME_DEPTH) >= LINE_FRAMES || !name[0])
			continue;
		line_add(text, "%s%.*s", word, (int)DPA_FRAME_NAME_BYTES, name);
		if (elf_line_find(p->app->elf, p->app->elf_bytes, prm_get(frame, DPA_FRAME_IMAGE),
				  &line))
			line_add(text, " at %s:%llu", line.file, (unsigned long long)line.line);
		word = ", called by ";
	}
}

void flx_late_log(const struct flexio_process *process, const char *function, uint32_t number)
{
	struct line_text text = {0};
	uint8_t *out = number ? crash_read(process) : NULL;

	line_add(&text, "the function took too long and was stopped");
	if (out)
		line_add_frames(&text, process, out, number, true);
	free(out);
	flx_fail(function, "%s", text.text);
}

void flx_crash_log(struct flexio_process *process, const char *function)
{
	struct line_text text = {0};
	uint8_t *out;

	if (atomic_exchange(&process->told, true))
		return;
	out = crash_read(process);
	if (out && prm_get32(out, DPA_OUT_STATE) == DPA_FATAL) {
		if (prm_get(out + DPA_OUT_BYTES, DPA_CRASH_FAULT))
			line_add_fault(&text, out + DPA_OUT_BYTES);
		else
			line_add(&text, "error 0x%x", prm_get32(out, DPA_OUT_CODE));
		line_add_frames(&text, process, out, 0, false);
		flx_fail(function, "%s", text.text);
	}
	free(out);
}

flexio_status flexio_crash_data(struct flexio_process *process, const char *outfile)
{
	FLX_HOLD(hold);
	char path[PATH_BYTES];
	uint8_t *out;
	FILE *f;
	int err;

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	out = crash_read(process);
	if (!out && errno == ENOMEM)
		return flx_fail(__func__, "no memory");
	if (!out)
		return flx_refused(process, __func__, errno);
	f = dump_open(outfile, "crash", path);
	if (f) {
		report_write(f, process, out);
		err = fclose(f) ? errno : 0;
	} else {
		err = errno;
	}
	report_write(stdout, process, out);
	free(out);
	return f && !err ? FLEXIO_STATUS_SUCCESS
			 : flx_fail(__func__, "outfile: %s: %s", path, strerror(err));
}

flexio_status flexio_coredump_create(struct flexio_process *process, const char *outfile)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	char path[PATH_BYTES];
	FILE *f;
	int err;

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	f = dump_open(outfile, "core", path);
	if (!f)
		return flx_fail(__func__, "outfile: %s: %s", path, strerror(errno));
	prm_set(in, DPA_IN_FILE, (uint32_t)fileno(f));
	err = flx_devx_op(process, DPA_OP_CORE, in, sizeof(in), out, sizeof(out));
	if (fclose(f) && !err)
		err = errno;
	return err ? flx_fail(__func__, "outfile: %s: %s", path, strerror(err))
		   : FLEXIO_STATUS_SUCCESS;
}

/* ---- how a process tells that it has failed ---- */

#define USER_ERROR 0x80u /* the program's own codes begin here */

enum flexio_err_status flexio_err_status_get(struct flexio_process *process)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};

	if (!process)
		return FLEXIO_DEV_NO_ERROR;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    flx_devx_op(process, DPA_OP_STATE, in, sizeof(in), out, sizeof(out)))
		return FLEXIO_DEV_FATAL_ERROR;
	if (prm_get(out, DPA_OUT_STATE) != DPA_FATAL)
		return FLEXIO_DEV_NO_ERROR;
	return prm_get(out, DPA_OUT_CODE) >= USER_ERROR ? FLEXIO_DEV_USER_ERROR
							: FLEXIO_DEV_FATAL_ERROR;
}

/* The lock is held. */
static int errors_open(struct flexio_process *p, const char *function)
{
	uint16_t events[] = {EQE_OBJECT_CHANGE};

	p->errors = mlx5dv_devx_create_event_channel(
		p->ctx, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
	if (p->errors && mlx5dv_devx_subscribe_devx_event(p->errors, p->devx, sizeof(events),
							  events, p->number)) {
		mlx5dv_devx_destroy_event_channel(p->errors);
		p->errors = NULL;
	}
	if (p->errors)
		return p->errors->fd;
	flx_fail(function, "no event channel: %s", strerror(errno));
	return -1;
}

int flexio_err_handler_fd(struct flexio_process *process)
{
	FLX_HOLD(hold);
	int fd;

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return -1;
	pthread_mutex_lock(&process->lock);
	fd = process->errors ? process->errors->fd : errors_open(process, __func__);
	pthread_mutex_unlock(&process->lock);
	return fd;
}

flexio_status flexio_process_error_handler_set(struct flexio_process *process,
					       flexio_func_t *error_handler)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	struct flx_address f;
	int err;

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given((const void *)(uintptr_t)error_handler, __func__, "error_handler") ||
	    !flx_function_find(process, error_handler, __func__, "error_handler", &f))
		return FLEXIO_STATUS_FAILED;
	prm_set(in, DPA_IN_ADDR, f.addr);
	err = flx_devx_op(process, DPA_OP_ON_ERROR, in, sizeof(in), out, sizeof(out));
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	if (err == EBUSY)
		return flx_fail(__func__, "error_handler: it is to be set before the first call");
	return flx_refused(process, __func__, err);
}
