/* SPDX-License-Identifier: BSD-2-Clause */
/* dif-store-client: options and the report of what went wrong. */
#include "client.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "complain.h"
#include "store.h"

static const char usage[] =
	"usage: dif-store-client COMMAND [OPTION...] HOST\n"
	"Reads and writes blocks of a dif-store-target.  The adapters on both sides check the\n"
	"protection information of each block on its way.\n"
	"\n"
	"  read     reads blocks and names the bad ones; --out FILE keeps the data\n"
	"  verify   reads all and checks in software as well\n"
	"  write    writes blocks: --in FILE or --seed N\n"
	"  bench    reads with and without pipelining, in turn, and compares\n"
	"  raw      sends one request as given by --operation, --offset and --length\n"
	"\n"
	"  -p, --port N        TCP port of the target (18650)\n"
	"  -d, --device NAME   RDMA device (the first with T10-DIF signature offload)\n"
	"      --ib-port N     port of the device (1)\n"
	"      --gid N         GID index (Ethernet: the first of RoCE v2)\n"
	"      --plain         responses wait until the data are checked (else: pipelined)\n"
	"      --depth N       requests under way at a time (8)\n"
	"      --request N     blocks in a request (8)\n"
	"      --bare          memory here holds data only; the adapter adds and removes the\n"
	"                      protection information\n"
	"  read, write, verify:\n"
	"      --block N       first block (0)\n"
	"      --count N       number of blocks (to the end of the store or of the input)\n"
	"      --software      check in software as well\n"
	"  write:\n"
	"      --damage FIELD  flip a bit of data, guard, app or ref before sending\n"
	"      --damage-block N, --bit N   where (the first block, bit 0)\n"
	"  bench:\n"
	"      --ms N          how long each mode is measured at each depth (1000)\n"
	"Status: 0 good, 1 bad blocks or refused requests, 2 wrong use, 3 connection failed.\n";

bool client_report(const struct initiator *i, const struct flight *f)
{
	const struct proto_response *r = &f->response;
	const struct dif_error *bad = r->status == PROTO_BAD_BLOCK ? &r->error : &f->here;

	if (r->status == PROTO_OK && f->here.part == DIF_NO_ERROR)
		return false;
	if (r->status != PROTO_OK && r->status != PROTO_BAD_BLOCK) {
		printf("blocks from %" PRIu64 ", %u bytes: %s\n", f->block, f->request.length,
		       proto_status_name(r->status));
		return true;
	}
	printf("block %" PRIu64 ": bad %s, expected %04" PRIx64 ", actual %04" PRIx64
	       " (found by %s)\n",
	       bad->block, dif_part_name(bad->part), bad->expected, bad->actual,
	       r->status == PROTO_OK	      ? "the adapter here"
	       : f->here.part == DIF_NO_ERROR ? "the target's adapter"
					      : "both adapters");
	if (r->status == PROTO_BAD_BLOCK && f->here.part != DIF_NO_ERROR &&
	    (f->here.part != bad->part || f->here.block != bad->block ||
	     f->here.expected != bad->expected || f->here.actual != bad->actual))
		printf("  the adapter %s disagrees: block %" PRIu64 ", bad %s, expected %04" PRIx64
		       ", actual %04" PRIx64 "\n",
		       ibv_get_device_name(i->e.ctx->device), f->here.block,
		       dif_part_name(f->here.part), f->here.expected, f->here.actual);
	return true;
}

bool client_block_exists(const struct initiator *i, const struct client_options *o)
{
	if (o->block < i->target.blocks)
		return true;
	complain("--block: the store has the blocks 0 to %" PRIu64 " only", i->target.blocks - 1);
	return false;
}

struct parsed {
	struct client_options o;
	uint64_t tcp_port, port, gid, depth, request;
	bool gid_given;
};

static bool take_number(struct parsed *p, int letter, const char *text)
{
	const struct {
		int letter;
		const char *name;
		uint64_t lowest, highest;
		uint64_t *to;
	} numbers[] = {
		{'p', "--port", 1, UINT16_MAX, &p->tcp_port},
		{'i', "--ib-port", 1, 255, &p->port},
		{'g', "--gid", 0, 255, &p->gid},
		{'D', "--depth", 1, PROTO_DEPTH_MAX, &p->depth},
		{'R', "--request", 1, PROTO_BLOCKS_MAX, &p->request},
		{'b', "--block", 0, STORE_BLOCKS_MAX, &p->o.block},
		{'c', "--count", 1, STORE_BLOCKS_MAX, &p->o.count},
		{'s', "--seed", 0, UINT64_MAX, &p->o.seed},
		{'B', "--damage-block", 0, STORE_BLOCKS_MAX, &p->o.damage_block},
		{'t', "--bit", 0, 8 * 4096, &p->o.damage_bit},
		{'O', "--operation", 0, UINT8_MAX, &p->o.operation},
		{'f', "--offset", 0, UINT64_MAX, &p->o.offset},
		{'l', "--length", 0, UINT32_MAX, &p->o.length},
		{'m', "--ms", 1, 3600000, &p->o.milliseconds},
	};

	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
		if (numbers[n].letter == letter)
			return parse_number(numbers[n].name, text, numbers[n].lowest,
					    numbers[n].highest, numbers[n].to);
	return false; /* no option; getopt has complained */
}

static bool take_option(struct parsed *p, int letter, const char *text)
{
	switch (letter) {
	case 'd':
		p->o.connection.device = text;
		return true;
	case 'P':
		p->o.connection.pipelined = false;
		return true;
	case 'M':
		p->o.connection.memory = KEY_BARE;
		return true;
	case 'S':
		p->o.software = true;
		return true;
	case 'F':
		p->o.file = text;
		return true;
	case 'X':
		p->o.damage = dif_part_parse(text, &p->o.damage_part);
		if (!p->o.damage)
			complain("--damage takes data, guard, app or ref, not '%s'", text);
		return p->o.damage;
	case 'g':
		p->gid_given = true;
		break;
	case 's':
		p->o.seed_given = true;
		break;
	case 'B':
		p->o.damage_block_given = true;
		break;
	default:
		break;
	}
	return take_number(p, letter, text);
}

static const struct option longs[] = {
	{"port", required_argument, NULL, 'p'},
	{"device", required_argument, NULL, 'd'},
	{"ib-port", required_argument, NULL, 'i'},
	{"gid", required_argument, NULL, 'g'},
	{"plain", no_argument, NULL, 'P'},
	{"depth", required_argument, NULL, 'D'},
	{"request", required_argument, NULL, 'R'},
	{"bare", no_argument, NULL, 'M'},
	{"block", required_argument, NULL, 'b'},
	{"count", required_argument, NULL, 'c'},
	{"software", no_argument, NULL, 'S'},
	{"in", required_argument, NULL, 'F'},
	{"out", required_argument, NULL, 'F'},
	{"seed", required_argument, NULL, 's'},
	{"damage", required_argument, NULL, 'X'},
	{"damage-block", required_argument, NULL, 'B'},
	{"bit", required_argument, NULL, 't'},
	{"operation", required_argument, NULL, 'O'},
	{"offset", required_argument, NULL, 'f'},
	{"length", required_argument, NULL, 'l'},
	{"ms", required_argument, NULL, 'm'},
	{"help", no_argument, NULL, 'h'},
	{},
};

static void settle(struct parsed *p)
{
	struct client_options *o = &p->o;

	o->connection.tcp_port = (unsigned)p->tcp_port;
	o->connection.port = (int)p->port;
	o->connection.gid_index = p->gid_given ? (int)p->gid : -1;
	o->connection.depth = (uint32_t)p->depth;
	o->connection.max_blocks = (uint32_t)p->request;
	if (!o->damage_block_given)
		o->damage_block = o->block;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct client_options *o);
	} commands[] = {
		{"read", client_read},	 {"verify", client_verify}, {"write", client_write},
		{"bench", client_bench}, {"raw", client_raw},
	};
	struct parsed p = {
		.o = {.connection = {.pipelined = true},
		      .operation = PROTO_READ,
		      .milliseconds = 1000},
		.tcp_port = PROTO_DEFAULT_PORT,
		.port = 1,
		.depth = 8,
		.request = 8,
	};
	int letter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt_long(argc, argv, "p:d:h", longs, NULL)) != -1) {
		if (letter == 'h') {
			fputs(usage, stdout);
			return CLIENT_GOOD;
		}
		if (!take_option(&p, letter, optarg))
			return CLIENT_USAGE;
	}
	if (argc - optind != 2) {
		complain("needs a command and a host; try dif-store-client --help");
		return CLIENT_USAGE;
	}
	settle(&p);
	p.o.connection.host = argv[optind + 1];
	for (size_t n = 0; n < sizeof(commands) / sizeof(commands[0]); n++)
		if (strcmp(argv[optind], commands[n].name) == 0)
			return commands[n].run(&p.o);
	complain("there is no command '%s'; try dif-store-client --help", argv[optind]);
	return CLIENT_USAGE;
}
