// SPDX-License-Identifier: BSD-2-Clause
/* What each field of a connection's attributes does, as its peer and its completions show. */
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "host.h"
#include "prm/cmd_qp.h"

#define AT	  4096u
#define GRH_WORDS 10u

struct link {
	struct end e;
	struct peer p;
	struct flexio_qp_attr attr;
};

static void link_open(struct link *l, bool ethernet)
{
	end_open(&l->e, ethernet, FLEXIO_QPC_ST_RC);
	end_make(&l->e);
	peer_up(&l->p, ethernet, "rc", NULL);
	l->attr = end_attr(&l->e, &l->p);
}

static void link_join(struct link *l, unsigned reads)
{
	end_move(&l->e, &l->attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
	peer_meet(&l->p, &l->e, &l->attr, reads);
	l->e.post.bytes = 64;
	l->e.post.remote = l->p.memory + AT;
	l->e.post.rkey = l->p.rkey;
}

static void link_close(struct link *l)
{
	peer_down(&l->p);
	end_close(&l->e);
}

static double seconds(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What the port says of packets that have gone out. */
static unsigned long port_count(const struct end *e, const char *counter)
{
	char path[128];
	unsigned long count;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/counters/%s",
		 ibv_get_device_name(e->ctx->device), counter);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%lu", &count) == 1);
	fclose(f);
	return count;
}

/* The same of a write and its answer; more than once, as a busy machine may send again. */
static unsigned long write_counts(struct end *e, const char *counter)
{
	unsigned long least = ULONG_MAX;

	for (unsigned i = 0; i < 8; i++) {
		unsigned long n = port_count(e, counter);

		end_done(e, POST_WRITE);
		n = port_count(e, counter) - n;
		least = n < least ? n : least;
	}
	return least;
}

/* All sizes carry messages of several packets, which are no larger. */
static void path_mtu(void)
{
	for (unsigned mtu = 1; mtu <= 5; mtu++) {
		unsigned long least = (20000 + (128ul << mtu) - 1) / (128ul << mtu), sent;
		struct link l;

		link_open(&l, mtu & 1);
		l.attr.path_mtu = (enum flexio_qp_qpc_mtu)mtu;
		link_join(&l, 1);
		l.e.post.bytes = 20000;
		end_call(&l.e, &fill, l.e.data, 20000, mtu);
		sent = write_counts(&l.e, "port_xmit_packets");
		CHECK_SAY(sent > least && sent < least + least / 2 + 2,
			  "%lu packets of 20000 bytes", sent);
		CHECK(peer_ask(&l.p, "same %u 20000 %u", AT, mtu) == 20000);
		end_done(&l.e, POST_READ);
		CHECK(l.e.last.bytes == 20000);
		link_close(&l);
	}
}

/* Without a receive here, the peer waits as long as we say, and goes on when there is one. */
static void rnr_timer(void)
{
	struct flexio_qp_attr_opt_param_mask mask = {.min_rnr_nak_timer = true};
	struct heard h;
	struct link l;
	double begin;

	link_open(&l, false);
	/* 0 stands for 655 ms */
	l.attr.min_rnr_nak_timer = 0;
	link_join(&l, 1);
	peer_do(&l.p, "post %d 0 64", IBV_WR_SEND);
	begin = seconds();
	/* until the peer has been told */
	while (peer_ask(&l.p, "none") == 0 && seconds() - begin < 0.1)
		;
	end_receive(&l.e, 1, l.e.data, 64);
	CHECK(end_take(&l.e, &l.e.received) == DONE_SEND);
	CHECK_SAY(seconds() - begin > 0.5, "%f s", seconds() - begin);
	h = peer_wait(&l.p);
	CHECK(!h.status);
	/* 1 for 10 us: by the mask alone */
	l.attr.next_state = FLEXIO_QP_STATE_RTS;
	l.attr.min_rnr_nak_timer = 1;
	OK(flexio_qp_modify(l.e.qp, &l.attr, &mask));
	/* which without it stays */
	l.attr.min_rnr_nak_timer = 0;
	OK(flexio_qp_modify(l.e.qp, &l.attr, NULL));
	for (unsigned i = 0; i < 5; i++) {
		peer_do(&l.p, "post %d 0 64", IBV_WR_SEND);
		begin = seconds();
		while (peer_ask(&l.p, "none") == 0 && seconds() - begin < 0.01)
			;
		begin = seconds();
		end_receive(&l.e, 1, l.e.data, 64);
		CHECK(end_take(&l.e, &l.e.received) == DONE_SEND);
		CHECK(!peer_wait(&l.p).status);
		if (seconds() - begin < 0.5)
			break;
		CHECK(i < 4);
	}
	link_close(&l);
}

/* The peer's request of that kind here, where it has one of the rights, by the mask, which stays without it. */
static int right_asked(int right, enum ibv_wr_opcode opcode)
{
	struct flexio_qp_attr_opt_param_mask mask = {.qp_access_mask = true};
	struct link l;
	int status;

	link_open(&l, false);
	l.attr.qp_access_mask = 0;
	link_join(&l, 1);
	l.attr.next_state = FLEXIO_QP_STATE_RTS;
	l.attr.qp_access_mask = right;
	OK(flexio_qp_modify(l.e.qp, &l.attr, &mask));
	l.attr.qp_access_mask = RIGHTS & ~right;
	OK(flexio_qp_modify(l.e.qp, &l.attr, NULL));
	peer_do(&l.p, "post %d 0 8 %llu %u", (int)opcode, (unsigned long long)l.e.data, l.e.key);
	status = peer_wait(&l.p).status;
	link_close(&l);
	return status;
}

static void rights(void)
{
	static const struct {
		int right;
		enum ibv_wr_opcode opcode;
	} rows[] = {
		{IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE},
		{IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ},
		{IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD},
	};

	for (unsigned has = 0; has < 3; has++)
		for (unsigned asks = 0; asks < 3; asks++)
			CHECK(right_asked(rows[has].right, rows[asks].opcode) ==
			      (has == asks ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR));
}

/* A peer that does not ask again hears that there is no receive, and nothing has come here. */
static void rnr_gives_up(void)
{
	struct link l;

	for (unsigned ready = 0; ready < 2; ready++) {
		link_open(&l, ready);
		peer_do(&l.p, "patience 0");
		link_join(&l, 1);
		if (ready)
			end_receive(&l.e, 1, l.e.data, 64);
		peer_do(&l.p, "post %d 0 64", IBV_WR_SEND);
		CHECK(peer_wait(&l.p).status ==
		      (ready ? IBV_WC_SUCCESS : IBV_WC_RNR_RETRY_EXC_ERR));
		if (ready)
			CHECK(end_take(&l.e, &l.e.received) == DONE_SEND);
		CHECK(end_quiet(&l.e, &l.e.received));
		CHECK(flexio_qp_state_get(l.e.qp) == FLEXIO_QP_STATE_RTS);
		link_close(&l);
	}
}

/* The other way round: we wait for a receive of the peer's. */
static void rnr_here(void)
{
	struct link l;

	link_open(&l, true);
	link_join(&l, 1);
	end_post(&l.e, POST_SEND);
	CHECK(end_quiet(&l.e, &l.e.sent));
	peer_do(&l.p, "recv 1 0 64");
	CHECK(end_take(&l.e, &l.e.sent) == DONE_REQUEST);
	CHECK(!peer_wait(&l.p).status);
	link_close(&l);
}

/* A peer that is not there: how long it takes to know follows the retries. */
static void retry_count(void)
{
	double took[2];

	for (unsigned i = 0; i < 2; i++) {
		struct link l;

		link_open(&l, false);
		l.attr.retry_count = i ? 2 : 0;
		link_join(&l, 1);
		CHECK(!kill(l.p.pid, SIGKILL));
		peer_gone(&l.p);
		took[i] = seconds();
		end_fails(&l.e, POST_WRITE, SYNDROME_RETRIES);
		took[i] = seconds() - took[i];
		CHECK(flexio_qp_state_get(l.e.qp) == FLEXIO_QP_STATE_ERR);
		end_close(&l.e);
	}
	CHECK_SAY(took[1] > 0.1 && took[0] < took[1], "%f and %f s", took[0], took[1]);
}

/* The peer expects other numbers: it answers that a packet is missing, and gets the same again. */
static void packet_numbers(void)
{
	struct link l;
	struct flexio_qp_attr other;

	link_open(&l, false);
	l.attr.retry_count = 1;
	end_move(&l.e, &l.attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
	other = l.attr;
	other.next_send_psn -= 10;
	peer_meet(&l.p, &l.e, &other, 1);
	l.e.post.bytes = 64;
	l.e.post.remote = l.p.memory + AT;
	l.e.post.rkey = l.p.rkey;
	end_fails(&l.e, POST_WRITE, SYNDROME_RETRIES);
	link_close(&l);
}

/* With a global route header the entry of the own GID counts, and one that there is not is refused; each packet
 * is longer. */
static void global_route(void)
{
	unsigned long words[2];

	for (unsigned grh = 0; grh < 2; grh++) {
		struct link l;

		link_open(&l, false);
		l.attr.grh = (uint8_t)grh;
		l.attr.gid_table_index = 5;
		end_move(&l.e, &l.attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_INIT);
		l.attr.next_state = FLEXIO_QP_STATE_RTR;
		if (grh) {
			FAILS(flexio_qp_modify(l.e.qp, &l.attr, NULL));
			l.attr.gid_table_index = 0;
		}
		end_move(&l.e, &l.attr, FLEXIO_QP_STATE_INIT, FLEXIO_QP_STATE_RTS);
		peer_meet(&l.p, &l.e, &l.attr, 1);
		l.e.post.bytes = 64;
		l.e.post.remote = l.p.memory + AT;
		l.e.post.rkey = l.p.rkey;
		words[grh] = write_counts(&l.e, "port_xmit_data");
		link_close(&l);
	}
	CHECK_SAY(words[1] >= words[0] + GRH_WORDS && words[0] >= 64 / 4, "%lu and %lu words",
		  words[0], words[1]);
}

/* Looped back, packets come to the own port whatever the address says. */
static void looped_back(void)
{
	for (unsigned ethernet = 0; ethernet < 2; ethernet++) {
		struct link l;

		link_open(&l, ethernet);
		l.e.looped = true;
		l.attr = end_attr(&l.e, &l.p);
		link_join(&l, 1);
		end_done(&l.e, POST_WRITE);
		link_close(&l);
	}
}

/* The device has one, which is named by 0, too. */
static void other_port(void)
{
	for (uint8_t right = 0; right < 2; right++) {
		struct link l;

		link_open(&l, false);
		l.attr.vhca_port_num = 2;
		l.attr.next_state = FLEXIO_QP_STATE_INIT;
		FAILS(flexio_qp_modify(l.e.qp, &l.attr, NULL));
		CHECK(flexio_qp_state_get(l.e.qp) == FLEXIO_QP_STATE_RST);
		l.attr.vhca_port_num = right;
		link_join(&l, 1);
		end_done(&l.e, POST_WRITE);
		link_close(&l);
	}
}

/* The object of the last modification: the library's calls come here first. */
static struct mlx5dv_devx_obj *modified;

int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			   size_t outlen)
{
	__typeof__(&mlx5dv_devx_obj_modify) next;

	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_devx_obj_modify");
	CHECK(next);
	modified = obj;
	return next(obj, in, inlen, out, outlen);
}

/* What is asked for stands in the context; of the port frames tell, too (captured.py), of a lane nothing else. */
static void context(void)
{
	for (unsigned set = 0; set < 2; set++) {
		uint8_t in[CMD_IN_BYTES] = {0}, out[QUERY_QP_OUT_BYTES] = {0};
		const uint8_t *qpc = out + QUERY_QP_CONTEXT;
		struct link l;

		link_open(&l, true);
		l.attr.isolate_vl_tc = (uint8_t)set;
		l.attr.udp_sport = (uint16_t)(0xc456 + set);
		link_join(&l, 1);
		end_done(&l.e, POST_WRITE);
		prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_QP);
		prm_set(in, CMD_IN_NUMBER, l.e.qpn);
		CHECK(!mlx5dv_devx_obj_query(modified, in, sizeof(in), out, sizeof(out)));
		CHECK(prm_get(qpc, QPC_ISOLATE) == set);
		CHECK(prm_get(qpc + QPC_PRIMARY_PATH, ADS_UDP_SPORT) == 0xc456 + set);
		link_close(&l);
	}
}

const struct host_case field_cases[] = {
	{"path_mtu", path_mtu},
	{"rnr_timer", rnr_timer},
	{"rights", rights},
	{"rnr_gives_up", rnr_gives_up},
	{"rnr_here", rnr_here},
	{"retry_count", retry_count},
	{"packet_numbers", packet_numbers},
	{"global_route", global_route},
	{"looped_back", looped_back},
	{"other_port", other_port},
	{"context", context},
	{NULL, NULL},
};
