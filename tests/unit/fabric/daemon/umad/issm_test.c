/* SPDX-License-Identifier: BSD-2-Clause */
/* The token of a port's IsSM bit: one holder, then whoever came first. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "fabric/daemon/umad/umad.h"
#include "test_mad.h"

static struct test_mad mad;
static struct umad umad;
static struct sm sm = {.mode = SM_EXTERNAL};
static int granted[3] = {-1, -1, -1};

struct waiting {
	struct issm_waiter w;
	int *fd;
};

static void waiting_granted(struct issm_waiter *w, int fd)
{
	*container_of(w, struct waiting, w)->fd = fd;
}

static bool is_sm(uint32_t row)
{
	return net_info(&mad.t.net, row, (struct prm_field)PI_CAP_MASK) & CAP_IS_SM;
}

static void holder_close(int fd)
{
	close(fd);
	test_mad_run(&mad, 0);
}

static void test_one_holder(void)
{
	int fd, other;
	struct pollfd p;

	CHECK(!is_sm(mad.t.h1) && !issm_open(&umad, mad.t.h1, &fd));
	CHECK(is_sm(mad.t.h1) && umad.nfiles == 1 && sm.programs == 1);
	CHECK(issm_open(&umad, mad.t.h1, &other) == -EAGAIN);
	/* another port has its own */
	CHECK(!is_sm(mad.t.h2) && !issm_open(&umad, mad.t.h2, &other) && is_sm(mad.t.h2));
	p = (struct pollfd){fd, POLLIN | POLLOUT, 0};
	CHECK(poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLOUT));
	/* whatever is written into it, after exec perhaps, changes nothing */
	CHECK(send(fd, "x", 1, 0) == 1);
	test_mad_run(&mad, 0);
	CHECK(is_sm(mad.t.h1));
	holder_close(other);
	CHECK(!is_sm(mad.t.h2) && is_sm(mad.t.h1));
	holder_close(fd);
	CHECK(!is_sm(mad.t.h1) && !umad.nfiles && !sm.programs);
}

static void test_queue(void)
{
	struct waiting w[3];
	int fd, late;

	CHECK(!issm_open(&umad, mad.t.h1, &fd));
	for (unsigned i = 0; i < 3; i++) {
		w[i] = (struct waiting){{.row = mad.t.h1, .granted = waiting_granted}, &granted[i]};
		issm_wait(&umad, &w[i].w);
	}
	issm_wait_end(&w[1].w); /* goes away before its turn */
	issm_wait_end(&w[1].w);
	holder_close(fd);
	CHECK(granted[0] >= 0 && granted[1] < 0 && granted[2] < 0 && is_sm(mad.t.h1));
	holder_close(granted[0]);
	CHECK(granted[2] >= 0 && is_sm(mad.t.h1) && !umad.waiters);
	CHECK(issm_open(&umad, mad.t.h1, &late) == -EAGAIN);
	holder_close(granted[2]);
	CHECK(!is_sm(mad.t.h1) && !umad.nfiles && granted[1] < 0);
}

int main(void)
{
	test_mad_open(&mad);
	sm.fabric = &mad.mad;
	umad_open(&umad, &mad.mad, &sm);
	test_one_holder();
	test_queue();
	umad_close(&umad);
	test_mad_close(&mad);
	return 0;
}
