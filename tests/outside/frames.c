// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends frames to a program that sends them back with the addresses exchanged, and judges what comes:
 * each frame once, with its own bytes.  Frames that the device dropped for want of a buffer are counted by
 * its counter out_of_buffer; the others must come back.
 *
 * frames [-n FRAMES] [-w WINDOW] [-b BYTES] [-k KEPT] [-z] DEVICE OWN-ADDRESS PEER-ADDRESS
 *
 * WINDOW frames are under way at most.  The first is sent again and again until it comes back, since nothing
 * else says when the other program is ready.  Of an answer KEPT bytes must be those that were sent, by default
 * all.  -z: the payload is zeros.  Ends with 0 if nothing is lost, changed or repeated.
 */
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netinet/ether.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "mac_rule.h"
#include "verbs_device.h"

#define SLOTS	     1024u
#define SLOT_BYTES   9216u
#define HEADER_BYTES 42u /* Ethernet, IPv4, UDP */
#define FRAMES_MAX   (1u << 24)
#define FIRST_MS     100u /* between two sends of the first frame */
#define FIRST_TRIES  600u
#define PATIENCE_MS  5000u /* without a frame: what is missing is lost */
#define AT_A_TIME    16
#define COUNTER	     "/sys/class/infiniband/%s/ports/1/hw_counters/out_of_buffer"

struct options {
	const char *device;
	struct ether_addr own, peer;
	uint32_t frames, window, bytes, kept;
	int zeros;
};

struct generator {
	struct options o;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
	uint8_t *memory;     /* SLOTS to receive, then one to send for each of the window */
	uint8_t *back;	     /* of each frame how often it has come back */
	uint32_t sent, lost; /* frames; the first counts once */
	uint32_t firsts;     /* how often the first was sent */
	uint32_t returned, repeated, changed;
};

static uint64_t now_ms(void)
{
	return device_now_ns() / 1000000;
}

/* ---- frames: the source address of the datagram is the number, from 10.0.0.0 on ---- */

static uint16_t header_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void frame_make(const struct options *o, uint32_t number, const void *to, const void *from,
		       uint8_t *frame)
{
	uint8_t *ip = frame + 14, *udp = ip + 20;

	memset(frame, 0, HEADER_BYTES);
	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	put16(frame + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 2, o->bytes - 14);
	ip[8] = 64;
	ip[9] = 17;
	ip[12] = 10;
	ip[13] = (uint8_t)(number >> 16);
	put16(ip + 14, number);
	memcpy(ip + 16, "\xc0\x00\x02\x02", 4);
	put16(ip + 10, header_sum(ip));
	put16(udp, 1024 + number % 32768);
	put16(udp + 2, 4000);
	put16(udp + 4, o->bytes - 34);
	for (uint32_t i = HEADER_BYTES; i < o->bytes; i++)
		frame[i] = o->zeros ? 0 : (uint8_t)(number + i);
}

static uint32_t frame_number(const uint8_t *frame)
{
	return (uint32_t)frame[27] << 16 | (uint32_t)frame[28] << 8 | frame[29];
}

/* ---- queues ---- */

static struct ibv_context *device_by_name(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	CHECK(list);
	for (unsigned i = 0; list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	CHECK_SAY(ctx, "%s", name);
	ibv_free_device_list(list);
	return ctx;
}

static void generator_post(struct generator *g, uint64_t slot)
{
	struct ibv_sge sge = {(uintptr_t)(g->memory + slot * SLOT_BYTES), SLOT_BYTES, g->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(g->qp, &wr, &bad));
}

static void generator_open(struct generator *g)
{
	struct ibv_qp_init_attr init = {.cap = {SLOTS, SLOTS, 1, 1, 0},
					.qp_type = IBV_QPT_RAW_PACKET};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	size_t bytes = (size_t)(SLOTS + 1) * SLOT_BYTES;

	g->ctx = device_by_name(g->o.device);
	CHECK((g->pd = ibv_alloc_pd(g->ctx)));
	CHECK((g->memory = calloc(1, bytes)));
	CHECK((g->back = calloc(g->o.frames, 1)));
	CHECK((g->mr = ibv_reg_mr(g->pd, g->memory, bytes, IBV_ACCESS_LOCAL_WRITE)));
	CHECK((g->send_cq = init.send_cq = ibv_create_cq(g->ctx, SLOTS, NULL, NULL, 0)));
	CHECK((g->recv_cq = init.recv_cq = ibv_create_cq(g->ctx, SLOTS, NULL, NULL, 0)));
	CHECK((g->qp = ibv_create_qp(g->pd, &init)));
	CHECK(!ibv_modify_qp(g->qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	for (uint64_t i = 0; i < SLOTS; i++)
		generator_post(g, i);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(g->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(g->qp, &attr, IBV_QP_STATE));
	CHECK((g->flow = mac_rule(g->qp, g->o.own.ether_addr_octet)));
}

static void generator_close(struct generator *g)
{
	CHECK(!ibv_destroy_flow(g->flow) && !ibv_destroy_qp(g->qp));
	CHECK(!ibv_destroy_cq(g->send_cq) && !ibv_destroy_cq(g->recv_cq));
	CHECK(!ibv_dereg_mr(g->mr) && !ibv_dealloc_pd(g->pd) && !ibv_close_device(g->ctx));
	free(g->memory);
	free(g->back);
}

/* Waits for the completion: the memory to send from serves for all frames. */
static void generator_send(struct generator *g, uint32_t number)
{
	uint8_t *frame = g->memory + (size_t)SLOTS * SLOT_BYTES;
	struct ibv_sge sge = {(uintptr_t)frame, g->o.bytes, g->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	uint64_t end = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;

	frame_make(&g->o, number, &g->o.peer, &g->o.own, frame);
	CHECK(!ibv_post_send(g->qp, &wr, &bad));
	while (!ibv_poll_cq(g->send_cq, 1, &wc))
		CHECK(now_ms() < end);
	CHECK_SAY(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
}

/* ---- the judgement ---- */

static void generator_judge(struct generator *g, const uint8_t *got, uint32_t bytes)
{
	uint32_t number = bytes < HEADER_BYTES ? FRAMES_MAX : frame_number(got);
	uint8_t expected[SLOT_BYTES];

	if (number >= g->sent || bytes != g->o.bytes) {
		g->changed++;
		return;
	}
	frame_make(&g->o, number, &g->o.own, &g->o.peer, expected);
	if (memcmp(got, expected, g->o.kept) != 0) {
		g->changed++;
		return;
	}
	g->returned += !g->back[number];
	g->back[number] += g->back[number] < UINT8_MAX;
	if (number ? g->back[number] > 1 : g->back[number] > g->firsts)
		g->repeated++;
}

/* Takes what has come; whether anything has. */
static int generator_take(struct generator *g)
{
	struct ibv_wc wc[AT_A_TIME];
	int n = ibv_poll_cq(g->recv_cq, AT_A_TIME, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		CHECK_SAY(wc[i].status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
		generator_judge(g, g->memory + wc[i].wr_id * SLOT_BYTES, wc[i].byte_len);
		generator_post(g, wc[i].wr_id);
	}
	return n > 0;
}

/* Whether anything came within that time. */
static int generator_wait(struct generator *g, unsigned ms)
{
	uint64_t end = now_ms() + ms;

	do {
		if (generator_take(g))
			return 1;
	} while (now_ms() < end);
	return 0;
}

static void generator_first(struct generator *g)
{
	g->sent = 1;
	while (!g->returned) {
		CHECK_SAY(g->firsts < FIRST_TRIES, "nothing comes back");
		g->firsts++;
		generator_send(g, 0);
		generator_wait(g, FIRST_MS);
	}
}

static void generator_run(struct generator *g)
{
	generator_first(g);
	while (g->returned + g->lost < g->o.frames) {
		if (g->sent < g->o.frames && g->sent - g->returned - g->lost < g->o.window) {
			g->sent++;
			generator_send(g, g->sent - 1);
			generator_take(g);
		} else if (!generator_wait(g, PATIENCE_MS)) {
			g->lost = g->sent - g->returned;
		}
	}
	generator_wait(g, FIRST_MS); /* what comes too often */
}

static uint64_t dropped(const char *device)
{
	char path[256];
	uint64_t value = 0;
	FILE *file;

	snprintf(path, sizeof(path), COUNTER, device);
	file = fopen(path, "r");
	CHECK_SAY(file && fscanf(file, "%lu", &value) == 1, "%s", path);
	fclose(file);
	return value;
}

static uint32_t number_of(const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	CHECK_SAY(!*end && value >= least && value <= most, "%s", text);
	return (uint32_t)value;
}

static struct options options_of(int argc, char **argv)
{
	struct options o = {.frames = 20, .window = 1, .bytes = 65};
	const struct ether_addr *address;
	int letter;

	while ((letter = getopt(argc, argv, "n:w:b:k:z")) != -1) {
		CHECK(letter != '?');
		if (letter == 'n')
			o.frames = number_of(optarg, 1, FRAMES_MAX);
		else if (letter == 'w')
			o.window = number_of(optarg, 1, SLOTS);
		else if (letter == 'b')
			o.bytes = number_of(optarg, HEADER_BYTES, SLOT_BYTES);
		else if (letter == 'z')
			o.zeros = 1;
		else
			o.kept = number_of(optarg, 12, SLOT_BYTES);
	}
	CHECK(argc - optind == 3);
	if (!o.kept || o.kept > o.bytes)
		o.kept = o.bytes;
	o.device = argv[optind];
	CHECK((address = ether_aton(argv[optind + 1])));
	o.own = *address;
	CHECK((address = ether_aton(argv[optind + 2])));
	o.peer = *address;
	return o;
}

int main(int argc, char **argv)
{
	struct generator g = {.o = options_of(argc, argv)};
	uint64_t before, lacked;

	generator_open(&g);
	before = dropped(g.o.device);
	generator_run(&g);
	lacked = dropped(g.o.device) - before;
	printf("sent %u, returned %u, dropped %lu, changed %u, repeated %u\n", g.sent, g.returned,
	       lacked, g.changed, g.repeated);
	generator_close(&g);
	return g.changed || g.repeated || g.returned + lacked < g.sent;
}
