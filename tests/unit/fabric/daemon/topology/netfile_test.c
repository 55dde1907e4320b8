// SPDX-License-Identifier: BSD-2-Clause
/* Network files: what is read from them, what is wrong with them, and in which line. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "fabric/daemon/topology/plan.h"

static struct plan plan;
static char error[PLAN_ERROR_BYTES];

static int parse(const char *text)
{
	int ret;

	plan_free(&plan);
	ret = plan_parse(&plan, "net", text, strlen(text), error);
	if (!ret)
		ret = plan_check(&plan, error);
	return ret;
}

static const struct plan_node *node(const char *id)
{
	int64_t at = plan_find(&plan, id);

	CHECK(at >= 0);
	return &plan.nodes[at];
}

static const struct plan_port *port(const char *id, uint32_t number)
{
	uint32_t at = plan_port_index(node(id), number);

	CHECK(at != PLAN_NONE);
	return &plan.ports[at];
}

static bool leads(const char *id, uint32_t number, const char *other, uint32_t other_number)
{
	return port(id, number)->cable == plan_port_index(node(other), other_number);
}

/* ---- what is read ---- */

static void test_small(void)
{
	CHECK(!parse("Switch 8 \"S1\"\n[1] \"H1\"[1]\n[2] \"H2\"\n\n"
		     "Hca 1 \"H1\"\n[1] \"S1\"[1]\n\nHca 1 \"H2\"\n[1] \"S1\"[2]"));
	CHECK(plan.nnodes == 3 && plan.nports == 9 + 2 && plan.like_ibsim);
	CHECK(node("S1")->type == SMP_NODE_SWITCH && node("S1")->nports == 8);
	CHECK(node("S1")->guid == 0x200000 && node("S1")->system_guid == 0x200000);
	CHECK(node("H1")->guid == 0x100000 && node("H2")->guid == 0x100002);
	CHECK(leads("S1", 1, "H1", 1) && leads("H2", 1, "S1", 2) && leads("S1", 2, "H2", 1));
	CHECK(port("S1", 3)->cable == PLAN_NONE && port("S1", 1)->width == 0);
	CHECK(!strcmp(node("H1")->description, "H1"));
}

/* Output of ibnetdiscover: values before each node, descriptions, LIDs, rates. */
static void test_discovered(void)
{
	CHECK(!parse(
		"#\n# Topology file: generated on Sun Nov 22 05:08:45 2026\n#\n"
		"# Initiated from node 0000000000100000 port 0000000000100001\n\n"
		"vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x200077\n"
		"switchguid=0x200000(200000)\n"
		"Switch\t8 \"S-0000000000200000\"\t\t# \"S1 x\" enhanced port 0 lid 9 lmc 0\n"
		"[1]\t\"H-0000000000100000\"[1](100001) \t\t# \"H1\" lid 4 4xHDR\n"
		"[2]\t\"H-0000000000100004\"[2](100006) \t\t# \"H2\" lid 6 1xQDR\n"
		"\nvendid=0x0\ndevid=0x5\nsysimgguid=0x100002\ncaguid=0x100004\n"
		"Ca\t2 \"H-0000000000100004\"\t\t# \"H2\"\n"
		"[2](100006) \t\"S-0000000000200000\"[2]\t\t# lid 6 lmc 1 \"S1 x\" lid 9 1xQDR\n"
		"\ncaguid=0x100000\nCa\t1 \"H-0000000000100000\"\t\t# \"H1\"\n"
		"[1](100001) \t\"S-0000000000200000\"[1]\t\t# lid 4 lmc 0 \"S1 x\" lid 9 4xHDR\n"));
	CHECK(!strcmp(node("S-0000000000200000")->description, "S1 x"));
	CHECK(node("S1 x")->enhanced_port0 && port("S1 x", 0)->lid == 9);
	CHECK(node("S1 x")->vendor_id == 0x2c9 && node("S1 x")->device_id == 0xd2f0);
	CHECK(node("S1 x")->system_guid == 0x200077);
	CHECK(node("H2")->guid == 0x100004 && node("H2")->device_id == 5);
	CHECK(node("H1")->guid == 0x100000 && !node("H1")->system_guid);
	CHECK(node("H1")->vendor_id == 0 && node("H1")->device_id == 5);
	CHECK(port("H2", 2)->lid == 6 && port("H2", 2)->lmc == 1 && port("H2", 1)->lid == 0);
	CHECK(port("S1 x", 1)->lid == 0 && port("H1", 1)->lid == 4);
	CHECK(port("H1", 1)->width == 2 && port("H1", 1)->speed == 4 &&
	      port("H1", 1)->ext_speed == 4);
	CHECK(port("H2", 2)->width == 1 && port("H2", 2)->speed == 4 && !port("H2", 2)->ext_speed);
	CHECK(leads("H2", 2, "S1 x", 2) && port("H2", 1)->cable == PLAN_NONE);
}

/* What adapters of real clusters have: port GUIDs of their own, no LID yet, any description. */
static void test_real(void)
{
	CHECK(!parse(
		"switchguid=0x2c5eab0300000010(2c5eab0300000018)\n"
		"Switch\t65 \"S-2c5eab0300000010\"\t\t# \"\" base port 0 lid 65535 lmc 0\n"
		"[1][ext 3]\t\"H-e09d730300000020\"[1](e09d730300000020) \t\t# \"a \"b\" c\" lid 1 "
		"4xNDR\n"
		"ibwarn: [1] mad_rpc: _do_madrpc failed; dport (Lid 3)\n"
		"[2]\t\"R-e09d730300000030\"[2][ext 1](e09d7303000000aa) \t\t# \"r\" lid 2 4xNDR "
		"s=4 w=2 v=4\n"
		" \nsysimgguid=0x7\t\t# Chassis 1\nCa\t1 \"H-e09d730300000020\"\t\t# \"a \"b\" c\" "
		"(scp)\n"
		"[1](e09d730300000020) \t\"S-2c5eab0300000010\"[1]\t\t# lid 65535 lmc 0 \"\" lid 8 "
		"4xNDR\n"
		"\nChassis 1 (guid 0x9)\nHostname: h\n\n  Rt\t2 \"R-e09d730300000030\"\t\t# \"r\"\n"
		"  [2] () \t\"S-2c5eab0300000010\"[2]\t\t# lid 6 lmc 0 \"\" lid 8 ??SDR\n"));
	CHECK(node("S-2c5eab0300000010")->guid == 0x2c5eab0300000010);
	CHECK(plan_port_guid(&plan, node("S-2c5eab0300000010"), 5) == 0x2c5eab0300000018);
	CHECK(!node("S-2c5eab0300000010")->description[0] && !port("S-2c5eab0300000010", 0)->lid);
	CHECK(node("a \"b\" c")->guid == 0xe09d730300000020 && node("a \"b\" c")->system_guid == 7);
	CHECK(port("a \"b\" c", 1)->guid == 0xe09d730300000020 && !port("a \"b\" c", 1)->lid);
	CHECK(node("r")->guid == 0xe09d730300000030 && !node("r")->system_guid);
	CHECK(!port("r", 1)->guid && port("r", 2)->guid == 0xe09d7303000000aa);
	CHECK(plan_port_guid(&plan, node("r"), node("r")->first_port) == 0xe09d730300000031);
	CHECK(port("r", 2)->speed == 1 && !port("r", 2)->width && port("r", 2)->rated);
	CHECK(leads("r", 2, "S-2c5eab0300000010", 2));
}

/* Names of speeds and widths as programs print them now or printed them once. */
static void test_rates(void)
{
	static const struct {
		const char *says;
		struct plan_port has;
	} rows[] = {
		{"1xSDR", {.width = 1, .speed = 1}},
		{"2xDDR", {.width = 16, .speed = 2}},
		{"4xQDR", {.width = 2, .speed = 4}},
		{"8xFDR10", {.width = 4, .speed = 4, .fdr10 = true}},
		{"12xFDR", {.width = 8, .speed = 4, .ext_speed = 1}},
		{"4xEDR", {.width = 2, .speed = 4, .ext_speed = 2}},
		{"4xHDR", {.width = 2, .speed = 4, .ext_speed = 4}},
		{"4xNDR", {.width = 2, .speed = 4, .ext_speed = 8}},
		{"4xXDR", {.width = 2, .speed = 4, .xdr = true}},
		{"4x SDR s=1 w=2", {.width = 2, .speed = 1}},
		{"4X 2.5 Gbps", {.width = 2, .speed = 1}},
		{"1X 5.0 Gbps Active", {.width = 1, .speed = 2}},
		{"4X 10.0 Gbps", {.width = 2, .speed = 4}},
		{"4X 10.0 Gbps (FDR10)", {.width = 2, .speed = 4, .fdr10 = true}},
		{"4X 14.0625 Gbps", {.width = 2, .speed = 4, .ext_speed = 1}},
		{"4X 25.78125 Gbps", {.width = 2, .speed = 4, .ext_speed = 2}},
		{"2X 53.125 Gbps", {.width = 16, .speed = 4, .ext_speed = 4}},
		{"4X 106.25 Gbps", {.width = 2, .speed = 4, .ext_speed = 8}},
		{"4X 212.5 Gbps", {.width = 2, .speed = 4, .xdr = true}},
		{"4x100Gbps", {.width = 2, .speed = 4, .ext_speed = 8}},
		{"4x???", {.width = 2}},
		{"??SDR", {.speed = 1}},
		{"", {0}},
	};

	for (unsigned i = 0; i < array_size(rows); i++) {
		const struct plan_port *want = &rows[i].has, *p;
		char text[160];

		snprintf(text, sizeof(text),
			 "Hca 1 \"A\"\n[1] \"B\"[1] # lid 1 lmc 0 \"d\" lid 2 %s\n"
			 "Hca 1 \"B\"\n[1] \"A\"[1]\n",
			 rows[i].says);
		CHECK(!parse(text));
		p = port("A", 1);
		if (p->width != want->width || p->speed != want->speed ||
		    p->ext_speed != want->ext_speed || p->xdr != want->xdr ||
		    p->fdr10 != want->fdr10 || p->rated != !!rows[i].says[0]) {
			fprintf(stderr, "'%s'\n", rows[i].says);
			CHECK(false);
		}
	}
}

/* Bases of GUIDs, defaults of ports, options, comments, Windows' line ends. */
static void test_values(void)
{
	CHECK(!parse(
		"switchguid = 0x5000\nhcaguids=0x6000\nrtguid=0x7000\r\nwidth=1\nspeed=2\n"
		"extspeed=1\ndo Verbose 5\nnonsense\nSwitch 4 \"A\" # some words lid 3\n# comment\n"
		"[1] \"B\"[1] w=8 s=4 e=2 # why\n@[2] \"out\"\n[2] \"R\"\n\n"
		"switchguid+0x10\nSwitch 4 \"B\"\n[1] \"A\"[1]\n\nswitchguid+0x20\n"
		"Rt 1 \"R\"\n[1] \"@out\"\n\nHca 2 \"C\"\n\nSwitch 1 \"D\"\nHca 1 \"E\"\n"));
	CHECK(node("A")->guid == 0x5000 && node("B")->guid == 0x5010 && node("D")->guid == 0x5020);
	CHECK(node("C")->guid == 0x6000 && node("E")->guid == 0x6003 && node("R")->guid == 0x7000);
	CHECK(node("R")->type == SMP_NODE_ROUTER && leads("R", 1, "A", 2));
	CHECK(!strcmp(node("A")->description, "some words") && port("A", 0)->lid == 3);
	CHECK(port("A", 1)->width == 8 && port("A", 1)->speed == 4 && port("A", 1)->ext_speed == 2);
	CHECK(port("B", 1)->width == 1 && port("B", 1)->speed == 2 && port("B", 1)->ext_speed == 1);
}

static void test_modules(void)
{
	CHECK(!parse("module \"m1\"\nHca 1 \"A\"\n[1] \"B\"\n\nHca 1 \"B\"\n[1] \"A\"\n@[1] \"x\"\n"
		     "\nmodule = \"m2\"\nHca 1 \"A\"\n[1] \"B\"\n\nHca 1 \"B\"\n[1] \"m2#A\"\n"
		     "\nHca 1 \"#C\"\n[1] \"D\"\n\nmodule \"\"\nHca 1 \"m2#D\"\n[1] \"C\"\n"));
	CHECK(plan.nnodes == 6 && leads("m1#A", 1, "m1#B", 1) && leads("m2#B", 1, "m2#A", 1));
	CHECK(leads("C", 1, "m2#D", 1));
}

/* ---- what is wrong ---- */

static void test_wrong(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"Hca 1 \"A\"\n[1] \"B\"[1]\n", "net:2: there is no node 'B'"},
		{"Hca 1 \"A\"\n\nHca 1 \"A\"\n", "net:3: two nodes have the id 'A'"},
		{"Hca 1 \"A\"\n[2] \"A\"\n", "net:2: 'A' has no port 2"},
		{"Hca 1 \"A\"\n[0] \"A\"\n", "net:2: 'A' has no port 0"},
		{"Hca 1 \"A\"\n[1] \"A\"\n", "net:2: the cable leads back to its own port"},
		{"Hca 1 \"A\"\n[1] \"B\"\n\nHca 1 \"B\"\n",
		 "net:2: 'B' port 1 does not say that a cable leads there"},
		{"Hca 1 \"A\"\n[1] \"B\"[1]\n\nHca 2 \"B\"\n[1] \"A\"\n[2] \"A\"\n",
		 "net:6: the cable of 'A' port 1 leads elsewhere (line 2)"},
		{"Hca 1 \"A\"\n[1] \"B\"[2]\n\nHca 1 \"B\"\n", "net:2: 'B' has no port 2"},
		{"Hca 1 \"A\"\n[1] \"B\"[0]\n\nHca 1 \"B\"\n", "net:2: 'B' has no port 0"},
		{"Hca 2 \"A\"\n[1] \"B\"\n[1] \"B\"\n",
		 "net:3: port 1 has a cable already, by line 2"},
		{"[1] \"B\"\n", "net:1: a port, but no node that it could belong to"},
		{"Hca 1 \"A\"\n[1] \"B\"\n[2] \"B\"\n", "net:3: 'A' has no port 2"},
		{"Hca 1 \"A\"\n\n@[1] \"B\"\n",
		 "net:3: an alias, but no node that it could belong to"},
		{"Hca 2 \"A\"\n@[1] \"B\"\n@[2] \"B\"\n", "net:3: two ports have the alias '@B'"},
		{"Hca 2 \"A\"\n@[3] \"B\"\n", "net:2: 'A' has no port 3"},
		{"Hca 2 \"A\"\n@[1 \"B\"\n", "net:2: ']' is missing"},
		{"Hca 2 \"A\"\n[] \"B\"\n", "net:2: the number of a port is from 1 to 254"},
		{"Hca 2 \"A\"\n[999] \"B\"\n", "net:2: the number of a port is from 1 to 254"},
		{"Hca 2 \"A\"\n[1] B\n", "net:2: a name in quotes is missing"},
		{"Hca 2 \"A\"\n[1] \"B\n", "net:2: the quote does not end"},
		{"Hca 2 \"A\"\n[1] \"\"\n", "net:2: the name is empty"},
		{"Hca 2 \"#\"\n", "net:1: the name is empty"},
		{"Hca 2 \"A\"\n[1] \"B\"[x]\n", "net:2: the number of a port is from 1 to 254"},
		{"Hca 2 \"A\"\n[1] \"B\"[1] w=32\n", "net:2: w=, s= and e= take a mask"},
		{"Hca 2 \"A\"\n[1] \"B\"[1] s=x\n", "net:2: w=, s= and e= take a mask"},
		{"Hca \"A\"\n", "net:1: a node has 1 to 254 ports"},
		{"Hca 0 \"A\"\n", "net:1: a node has 1 to 254 ports"},
		{"Switch 255 \"A\"\n", "net:1: a node has 1 to 254 ports"},
		{"Hca 1 A\n", "net:1: a name in quotes is missing"},
		{"Hca 1 \"a@b\"\n", "net:1: 'a@b': '@' is not allowed in the id of a node"},
		{"\n\nHca 5 \"A\"\n", "net:3: 'A' has 5 ports; a host has 4 at most"},
		{"Switch 5 \"A\"\n", "net: no Hca is in it"},
		{"", "net: no Hca is in it"},
		{"caguid=5\nHca 1 \"A\"\n\ncaguid=5\nHca 1 \"B\"\n",
		 "net:5: 'B' and 'A' (line 2) have the node GUID 0x5"},
		{"caguid=5\nHca 2 \"A\"\n\ncaguid=6\nHca 1 \"B\"\n",
		 "net:5: 'B' and 'A' (line 2) have the port GUID 0x7"},
		{"caguid=0\nHca 1 \"A\"\n", "net:2: 0x0 cannot be the GUID of 'A'"},
		{"caguid=0xffffffffffffffff\nHca 1 \"A\"\n", "cannot be the GUID of 'A'"},
		{"caguid=\n", "net:1: caguid: this is not a number"},
		{"devid 5\n", "net:1: devid: '=' is missing behind the word"},
		{"module \"a name that is too long\"\n", "net:1: the module"},
		{"include \"x\"\n", "net:1: nothing can be included here"},
		{"include x\n", "net:1: include needs the name of a file in quotes"},
		{"Switch 4 \"A\" # \"A\" lid 49152\n",
		 "net:1: lid 49152 with lmc 0 is not a unicast LID"},
		{"Hca 1 \"A\"\n[1] \"B\" # lid 5 lmc 1 \"B\" lid 1 4xSDR\n",
		 "net:2: lid 5 with lmc 1 is not a unicast LID"},
		/* what a terminal has damaged */
		{"\ncaguid=5\na\t1 \"H-5\"\n[1](6) \"S\"[1]\n",
		 "net:3: this line begins no node, and ports follow"},
		{"Hca 1 \"A\"\n[1](e09d7 \"B\"[1]\n", "net:2: in brackets stands a GUID"},
		{"Hca 1 \"A\"\n[1](g) \"B\"[1]\n", "net:2: in brackets stands a GUID"},
		{"Hca 1 \"A\"\n[1](00e09d73030000002) \"B\"[1]\n", "net:2: in brackets stands"},
		{"Hca 1 \"A\"\n[1] \"B\"[1](x)\n", "net:2: in brackets stands a GUID"},
		{"Hca 1 \"A\"\n[1] \"B\"[1] lid 5 lmc 0 \"B\" lid 2 4xSDR\n",
		 "net:2: something that is no comment follows the other end"},
		{"Hca 1 \"A\"\n[1] \"B\"[1] # lid 5 lmc 0 \"B\" lid 2 4xSD\n",
		 "net:2: this is no width and speed of a link"},
		{"Hca 1 \"A\"\n[1] \"B\"[1] # \"B\" lid 2 3xSDR\n",
		 "net:2: this is no width and speed of a link"},
		{"Hca 1 \"A\"\n[1] \"B\"[1] # \"B\" lid x 4xSDR\n",
		 "net:2: behind 'lid' stands a number"},
		{"Hca 1 \"A\"\n[1] \"B\"[1] # lid 5 lmc 0 \"B lid 2 4xSDR\n",
		 "net:2: the quote does not end"},
		{"Hca 1 \"A\"\t\t# \"half a na\n", "net:1: the quote does not end"},
		{"Hca 1 \"A\" \"A\"\n", "net:1: something that is no comment follows the id"},
		{"caguid=0xe09dz730\n", "net:1: caguid: the number does not end where it should"},
		{"switchguid=0x5(5\n", "net:1: switchguid: in brackets stands a GUID"},
		{"caguid=5\nHca 1 \"A\"\n[1](9) \"B\"\n\nHca 1 \"B\"\n[1](9) \"A\"\n",
		 "net:5: 'B' and 'A' (line 2) have the port GUID 0x9"},
		{"Hca 1 \"0123456789012345678901234567890123456789012345678901234567890123x\"\n",
		 "net:1: the name has more than 64 characters"},
	};

	for (unsigned i = 0; i < array_size(rows); i++) {
		int ret = parse(rows[i].text);

		if (ret != -EINVAL || !strstr(error, rows[i].says)) {
			fprintf(stderr, "%d, '%s', for:\n%s", ret, error, rows[i].text);
			CHECK(false);
		}
	}
}

/* ---- files ---- */

static char dir[] = "/tmp/softhca-netfile-XXXXXX";

static const char *file(const char *name, const char *text)
{
	static char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	return path;
}

static int read_file(const char *path)
{
	plan_free(&plan);
	return plan_read(&plan, path, error);
}

static void test_include(void)
{
	char path[256];

	CHECK(mkdtemp(dir));
	file("inner", "Hca 1 \"B\"\n[1] \"A\"\n");
	CHECK(!read_file(file("outer", "Hca 1 \"A\"\ninclude \"inner\"\n[1] \"B\"\n")) == false);
	CHECK(strstr(error, "outer:3: a port, but no node"));
	CHECK(!read_file(file("outer", "Hca 1 \"A\"\n[1] \"B\"\n\ninclude \"inner\"\n")));
	CHECK(!plan_check(&plan, error) && leads("A", 1, "B", 1));
	/* What is wrong with a file is said with its name. */
	file("inner", "\nHca 1 \"B\"\n[1] \"C\"\n");
	CHECK(read_file(file("outer", "Hca 1 \"A\"\ninclude \"inner\"\n")) == -EINVAL);
	CHECK(strstr(error, "inner:3: there is no node 'C'"));
	CHECK(read_file(file("loop", "\ninclude \"loop\"\n")) == -EINVAL);
	CHECK(strstr(error, "loop:2: files include each other more than 9 deep"));
	CHECK(read_file(file("lost", "include \"nowhere\"\n")) == -ENOENT);
	CHECK(strstr(error, "lost:1: nowhere: No such file"));
	CHECK(read_file(dir) == -EISDIR && read_file("/dev/null") == -EINVAL);
	snprintf(path, sizeof(path), "%s/absent", dir);
	CHECK(read_file(path) == -ENOENT && strstr(error, "absent: No such file"));
	for (unsigned i = 0; i < 4; i++) {
		static const char *const names[] = {"inner", "outer", "loop", "lost"};

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		CHECK(!unlink(path));
	}
	CHECK(!rmdir(dir));
}

/* ---- fat trees ---- */

/* All hosts reach each other, and no port has two cables. */
static void test_tree(uint32_t hosts, uint32_t switches)
{
	uint32_t *todo, count = 1, seen = 0;
	bool *known;

	plan_free(&plan);
	for (uint32_t i = 0; i < hosts; i++) {
		struct plan_node n = {.type = SMP_NODE_CA, .nports = 1};

		snprintf(n.id, sizeof(n.id), "h%u", i);
		CHECK(plan_add_node(&plan, &n) == i);
		plan.nodes[i].guid = 2ull * i + 2;
	}
	CHECK(!plan_add_switches(&plan));
	CHECK(plan.nnodes == hosts + switches && !plan_check(&plan, error));
	todo = calloc(plan.nnodes, sizeof(*todo));
	known = calloc(plan.nnodes, sizeof(*known));
	CHECK(todo && known);
	known[0] = true;
	for (; seen < count; seen++) {
		const struct plan_node *n = &plan.nodes[todo[seen]];

		for (uint32_t i = 1; i <= n->nports; i++) {
			uint32_t cable = plan.ports[plan_port_index(n, i)].cable;
			uint32_t next = cable == PLAN_NONE ? 0 : plan_node_of(&plan, cable);

			if (!known[next])
				todo[count++] = next;
			known[next] = true;
		}
	}
	CHECK(count == plan.nnodes);
	free(todo);
	free(known);
}

int main(void)
{
	test_small();
	test_discovered();
	test_real();
	test_rates();
	test_values();
	test_modules();
	test_wrong();
	test_include();
	test_tree(1, 1);
	test_tree(36, 1);
	test_tree(37, 3 + 18);
	test_tree(648, 36 + 18);
	test_tree(649, 21 + 32);
	test_tree(1024, 32 + 32);
	test_tree(1025, 33 + 64 + 32);
	test_tree(5000, 157 + 160 + 4 * 32);
	test_tree(43520, 1360 + 43 * 32 + 32 * 32);
	test_tree(45400, 1419 + 45 * 32 + 23 * 32);
	plan_free(&plan);
	return 0;
}
