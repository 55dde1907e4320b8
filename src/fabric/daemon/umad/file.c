// SPDX-License-Identifier: BSD-2-Clause
/* Life of a umad file, and its agents. */
#include "fabric/daemon/umad/file.h"

#include "base/clock.h"
#include "base/memory_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The page that a umad file shares with its program; the daemon believes nothing in it. */

/* Makes the file's page, with a descriptor for the program. */
static must_check int umad_page_open(struct umad_page **page, int *fd)
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

static void umad_page_close(struct umad_page *page)
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

#define CM_CLASS_VERSION 2u

void umad_open(struct umad *u, struct mad_fabric *f, struct sm *sm)
{
	*u = (struct umad){
		.fabric = f,
		.sm = sm, /* A file of a daemon that has died must not be taken for one of this one. */
		.next_token = clock_ns(),
		.batches_work.run = umad_batches_send};
	f->after = &u->batches_work;
}

static void file_free(struct loop_grave *g)
{
	free(container_of(g, struct umad_file, grave));
}

static struct umad_file **token_place(struct umad *u, uint64_t token)
{
	return &u->files[token % UMAD_TOKENS];
}

static void file_link(struct umad *u, struct umad_file *f)
{
	struct umad_file **place;

	f->token = u->next_token++;
	place = token_place(u, f->token);
	f->next = *place;
	f->prev = place;
	if (f->next)
		f->next->prev = &f->next;
	*place = f;
	u->nfiles++;
}

static void file_unlink(struct umad_file *f)
{
	*f->prev = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->umad->nfiles--;
}

static void page_describe(struct umad_page *page, const struct net *net, uint32_t row)
{
	assert(page);
	*page = (struct umad_page){
		.magic = UMAD_MAGIC,
		.port = net->subnet->ports[row].number,
		.gids = subnet_port_gids(&net->subnet->ports[row]),
		.is_switch = net_is_switch(net, row),
		.header_bytes = UMAD_HEADER_OLD,
	};
}

/* Makes a socket whose other end is the program's. */
static int stream_open(struct umad_file *f, int *other)
{
	const int room = STREAM_ROOM;
	struct stat st;
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	f->sock = (struct source){umad_file_ready, pair[0]};
	for (unsigned i = 0; i < 2; i++)
		(void)setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	ret = fstat(pair[1], &st) ? -errno : 0;
	if (!ret)
		ret = loop_watch(f->umad->fabric->loop, &f->sock, EPOLLIN | EPOLLET);
	if (ret) {
		close(pair[0]);
		close(pair[1]);
		return ret;
	}
	f->inode = st.st_ino;
	*other = pair[1];
	return 0;
}

int umad_file_open(struct umad *u, uint32_t row, uint64_t *token, int fds[2])
{
	struct umad_file *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return -ENOMEM;
	f->umad = u;
	f->row = row;
	f->queue_end = &f->queue;
	f->grave.bury = file_free;
	f->header_bytes = UMAD_HEADER_OLD;
	ret = umad_page_open(&f->page, &f->page_fd);
	if (ret)
		goto free_file;
	fds[UMAD_OPEN_FD_PAGE] = fcntl(f->page_fd, F_DUPFD_CLOEXEC, 0);
	if (fds[UMAD_OPEN_FD_PAGE] < 0) {
		ret = -errno;
		goto close_page;
	}
	page_describe(f->page, u->fabric->net, row);
	ret = stream_open(f, &fds[UMAD_OPEN_FD_SOCKET]);
	if (ret)
		goto close_copy;
	file_link(u, f);
	*token = f->token;
	return 0;

close_copy:
	close(fds[UMAD_OPEN_FD_PAGE]);
close_page:
	close(f->page_fd);
	umad_page_close(f->page);
free_file:
	free(f);
	return ret;
}

struct umad_file *umad_file_find(struct umad *u, uint64_t token)
{
	struct umad_file *f = *token_place(u, token);

	while (f && f->token != token)
		f = f->next;
	return f;
}

struct umad_file *umad_file_find_inode(struct umad *u, uint64_t inode)
{
	for (uint32_t i = 0; i < UMAD_TOKENS; i++)
		for (struct umad_file *f = u->files[i]; f; f = f->next)
			if (f->inode == inode)
				return f;
	return NULL;
}

int umad_file_adopt(const struct umad_file *f, uint64_t *token, uint32_t *row, int *page)
{
	*page = fcntl(f->page_fd, F_DUPFD_CLOEXEC, 0);
	if (*page < 0)
		return -errno;
	*token = f->token;
	*row = f->row;
	return 0;
}

/* ---- agents ---- */

/* Tells whether the agent would get what a subnet manager gets. */
static bool agent_manages(const struct mad_agent_attr *attr)
{
	const uint64_t sm_methods = 1ull << MAD_GET | 1ull << MAD_TRAP;

	return attr->qpn == 0 && attr->methods[0] & sm_methods &&
	       (attr->class == MAD_CLASS_SMP_LID || attr->class == MAD_CLASS_SMP_DIRECTED);
}

static void agent_receive(struct mad_agent *mad, struct mad_message *m)
{
	struct umad_agent *a = container_of(mad, struct umad_agent, mad);

	umad_file_receive(a->file, a->id, m);
}

static void agent_sent(struct mad_agent *mad, const uint8_t note[64], const uint8_t *header,
		       int status)
{
	struct umad_agent *a = container_of(mad, struct umad_agent, mad);

	a->file->sends--;
	if (status == -ETIMEDOUT)
		umad_file_report(a->file, a->id, note, header);
	umad_page_uncount(a->file->page, mad_get32(header, MAD_AT_TID + 4), header[MAD_AT_CLASS]);
}

static const struct mad_agent_ops agent_ops = {.receive = agent_receive, .sent = agent_sent};

/* The built-in SM stands back before, because it may have the same methods at this port. */
static void sm_hears(const struct umad *u, const struct umad_agent *a, bool began)
{
	if (!a->manages)
		return;
	if (began)
		sm_program_began(u->sm);
	else
		sm_program_ended(u->sm);
}

static int agent_begin(struct umad_file *f, uint32_t id, const struct mad_agent_attr *attr)
{
	struct umad_agent *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return -ENOMEM;
	a->file = f;
	a->id = id;
	a->manages = f->umad->sm && agent_manages(attr) && sm_minds(f->umad->sm, attr->row);
	sm_hears(f->umad, a, true);
	ret = mad_agent_register(f->umad->fabric, &a->mad, attr, &agent_ops, &f->scope);
	if (ret) {
		sm_hears(f->umad, a, false);
		free(a);
		return ret;
	}
	f->agents[id] = a;
	atomic_store_explicit(&f->page->agents[id],
			      UMAD_AGENT_THERE | (attr->qpn ? UMAD_AGENT_QP1 : 0) |
				      (attr->rmpp_version ? UMAD_AGENT_RMPP : 0) |
				      (attr->user_rmpp ? UMAD_AGENT_USER_RMPP : 0),
			      memory_order_release);
	return 0;
}

static void agent_end(struct umad_file *f, uint32_t id)
{
	struct umad_agent *a = f->agents[id];

	atomic_store_explicit(&f->page->agents[id], 0, memory_order_release);
	f->agents[id] = NULL;
	mad_agent_unregister(&a->mad);
	sm_hears(f->umad, a, false);
	free(a);
}

static struct mad_agent_attr agent_attr(const struct umad_file *f,
					const struct msg_umad_register *r)
{
	struct mad_agent_attr attr = {
		.row = f->row,
		.qpn = (uint8_t)r->qpn,
		.class = r->class,
		.class_version = r->class_version,
		.oui = {(uint8_t)(r->oui >> 16), (uint8_t)(r->oui >> 8), (uint8_t)r->oui},
		.rmpp_version = r->rmpp_version,
		.user_rmpp = r->flags & IB_USER_MAD_USER_RMPP,
	};

	/* An agent without a class gets no requests. */
	if (r->class)
		memcpy(attr.methods, r->methods, sizeof(attr.methods));
	return attr;
}

static void header_set(struct umad_file *f, uint32_t bytes)
{
	f->header_bytes = bytes;
	atomic_store_explicit(&f->page->header_bytes, bytes, memory_order_release);
}

/* The kernel's communication manager has these methods on each port, used or not. */
static bool methods_are_kernels(const struct mad_agent_attr *attr)
{
	return attr->class == MAD_CLASS_CM && attr->class_version == CM_CLASS_VERSION &&
	       attr->methods[0] >> MAD_SEND & 1;
}

int umad_file_register(struct umad_file *f, const struct msg_umad_register *r, uint32_t *id)
{
	const struct mad_agent_attr attr = agent_attr(f, r);
	uint32_t i = 0;
	int ret;

	umad_file_drain(f);
	if (f->ended)
		return -ESTALE;
	if (r->qpn > 1 || r->flags & ~IB_USER_MAD_REG_FLAGS_CAP)
		return -EINVAL;
	while (i < UMAD_AGENTS && f->agents[i])
		i++;
	if (i == UMAD_AGENTS)
		return -ENOMEM;
	if (r->class && r->oui >> 24)
		return -EINVAL;
	ret = methods_are_kernels(&attr) && attr.qpn ? -EINVAL : agent_begin(f, i, &attr);
	if (ret)
		return ret;
	*id = i;
	if (f->used)
		return 0;
	f->used = true;
	f->first_agent = i + 1;
	f->first_header = f->header_bytes;
	if (r->second)
		header_set(f, UMAD_HEADER_NEW);
	return 0;
}

int umad_file_unregister(struct umad_file *f, uint32_t id, bool undo)
{
	umad_file_drain(f);
	if (f->ended)
		return -ESTALE;
	if (id >= UMAD_AGENTS || !f->agents[id])
		return -EINVAL;
	agent_end(f, id);
	if (f->first_agent != id + 1)
		return 0;
	f->first_agent = 0;
	if (undo) {
		f->used = false;
		header_set(f, f->first_header);
	}
	return 0;
}

int umad_file_pkey(struct umad_file *f)
{
	umad_file_drain(f);
	if (f->ended)
		return -ESTALE;
	if (f->used)
		return -EINVAL;
	header_set(f, UMAD_HEADER_NEW);
	return 0;
}

int umad_file_in_flight(struct umad_file *f, const struct msg_umad_in_flight *r)
{
	struct mad_address to = {.lid = r->lid, .grh = r->grh};
	const struct umad_agent *a;
	bool response = mad_is_response(r->header);
	uint64_t tid = mad_get64(r->header, MAD_AT_TID);

	umad_file_drain(f);
	if (f->ended)
		return -ESTALE;
	a = r->agent < UMAD_AGENTS ? f->agents[r->agent] : NULL;
	if (!a)
		return -EIO;
	if (!response)
		tid = (uint64_t)a->mad.tid << 32 | (uint32_t)tid;
	memcpy(to.gid.raw, r->gid, sizeof(to.gid.raw));
	return mad_scope_has(&f->scope, tid, r->header[MAD_AT_CLASS], response, &to) ? -EINVAL : 0;
}

/* ---- the end ---- */

void umad_file_end(struct umad_file *f)
{
	if (f->ended)
		return;
	f->ended = true;
	for (uint32_t i = 0; i < UMAD_AGENTS; i++)
		if (f->agents[i])
			agent_end(f, i);
	umad_file_forget(f);
	umad_long_forget(f);
	file_unlink(f);
	close(f->sock.fd);
	close(f->page_fd);
	umad_page_close(f->page);
	loop_bury(f->umad->fabric->loop, &f->grave);
}

void umad_close(struct umad *u)
{
	for (uint32_t i = 0; i < UMAD_TOKENS; i++)
		while (u->files[i])
			umad_file_end(u->files[i]);
	issm_close(u);
}
