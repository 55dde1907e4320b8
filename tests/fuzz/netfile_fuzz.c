// SPDX-License-Identifier: BSD-2-Clause
/* Network files.  What is taken for a plan can be built: cables lead back, names end, ports are there. */
#include <string.h>

#include "fabric/daemon/topology/plan.h"
#include "fuzz.h"

void target_init(void)
{
}

void target_seeds(struct seed *s)
{
	static const char *const files[] = {
		"Switch 8 \"S1\"\n[1] \"H1\"[1]\n[2] \"H2\"\n\nHca 1 \"H1\"\n[1] \"S1\"[1]\n\n"
		"Hca 1 \"H2\"\n[1] \"S1\"[2]\n",
		"vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x200000\nswitchguid=0x200000(200000)\n"
		"Switch\t8 \"S-20\"\t\t# \"S1\" enhanced port 0 lid 9 lmc 0\n"
		"[1]\t\"H-10\"[1](100001) \t\t# \"H1\" lid 4 4xHDR\n\ncaguid=0x100000\n"
		"Ca\t1 \"H-10\"\t\t# \"H1\"\n[1](100001) \t\"S-20\"[1]\t\t# lid 4 lmc 0 \"S1\" lid "
		"9 4xHDR\n",
		"switchguid=0x5(6)\t# Spine 1\nSwitch\t8 \"S-0000000000000005\"\t\t# \"a \"b\"\" "
		"base "
		"port 0 lid 65535 lmc 0\n[1][ext 2]\t\"H-0000000000000010\"[1](10) \t\t# \"\" lid "
		"0 "
		"4xFDR10 s=4 w=2 v=4\nibwarn: [1] text\n\nCa\t1 \"H-0000000000000010\"\t\t# "
		"\"\"\n[1](10) \t\"S-0000000000000005\"[1]\t\t# lid 0 lmc 0 \"a \"b\"\" lid 5 4X "
		"10.0 Gbps (FDR10)\n",
		"module \"m1\"\nrtguid+0x10\nwidth=1\nspeed = 2\nextspeed=4\ndo Verbose 5\n"
		"Hca 2 \"A\" # words base port 0 lid 2\n@[1] \"x\"\n[1] \"B\" w=2 s=4 e=1\n\nRt 1 "
		"\"#B\"\n"
		"[1] \"@x\"\ninclude \"more\"\n",
	};
	char name[16];

	for (size_t i = 0; i < array_size(files); i++) {
		put_bytes(s, files[i], strlen(files[i]));
		snprintf(name, sizeof(name), "file%zu", i);
		put_end(s, name);
	}
}

static void plan_must_hold(const struct plan *p)
{
	for (uint32_t i = 0; i < p->nnodes; i++) {
		const struct plan_node *n = &p->nodes[i];

		MUST(memchr(n->id, '\0', sizeof(n->id)) && n->id[0]);
		MUST(memchr(n->description, '\0', sizeof(n->description)));
		MUST(n->nports && n->guid && plan_find_id(p, n->id) == i);
		MUST(plan_node_of(p, n->first_port) == i);
		MUST(plan_port_index(n, n->nports) < p->nports);
		MUST(plan_port_index(n, n->nports + 1u) == PLAN_NONE);
	}
	for (uint32_t i = 0; i < p->nports; i++)
		MUST(p->ports[i].cable == PLAN_NONE ||
		     (p->ports[i].cable < p->nports && p->ports[i].cable != i &&
		      p->ports[p->ports[i].cable].cable == i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[PLAN_ERROR_BYTES] = "";
	struct plan plan = {0};
	int ret = plan_parse(&plan, "net", (const char *)data, size, error);

	if (!ret)
		ret = plan_check(&plan, error);
	MUST(!!ret == !!error[0] && memchr(error, '\0', sizeof(error)));
	if (!ret)
		plan_must_hold(&plan);
	plan_free(&plan);
	return 0;
}
