// SPDX-License-Identifier: BSD-2-Clause
/* Network files: read from the disk with those that they include, one line after the other; see
 * netfile.h. */
#include "fabric/daemon/topology/netfile.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the lines of a network file, one after the other ---- */

#define LINE_ERROR(n, ...) plan_error((n)->plan, (n)->file, (n)->line, (n)->error, __VA_ARGS__)

static void netfile_open(struct netfile *n, struct plan *plan, char error[PLAN_ERROR_BYTES])
{
	*n = (struct netfile){.plan = plan, .error = error, .node = -1};
	guid_rule_start(&n->guids);
	plan->like_ibsim = true;
	error[0] = '\0';
}

static void netfile_close(struct netfile *n)
{
	free(n->remotes);
	free(n->aliases);
}

static int no_memory(struct netfile *n)
{
	(void)LINE_ERROR(n, "not enough memory");
	return -ENOMEM;
}

/* ---- names ---- */

/* A name without '#' belongs to the module being described; one with '#' in front to none. */
static int name_expand(struct netfile *n, char name[PLAN_NAME_BYTES])
{
	char whole[PLAN_NAME_BYTES + NETFILE_PREFIX_BYTES];

	if (name[0] == '#') {
		memmove(name, name + 1, strlen(name));
		return name[0] ? 0 : LINE_ERROR(n, "the name is empty");
	}
	if (!n->prefix[0] || strchr(name, '#'))
		return 0;
	(void)snprintf(whole, sizeof(whole), "%s#%s", n->prefix, name);
	if (!text_copy(name, PLAN_NAME_BYTES, whole))
		return LINE_ERROR(n, "the name '%s' has more than 64 characters", whole);
	return 0;
}

/* An alias belongs to the module that defines it, as ids do.  '@' in front tells them apart. */
static int alias_expand(struct netfile *n, char name[PLAN_NAME_BYTES])
{
	char bare[PLAN_NAME_BYTES];
	int ret;

	text_copy(bare, sizeof(bare), name[0] == '@' ? name + 1 : name);
	ret = name_expand(n, bare);
	if (ret)
		return ret;
	if (strlen(bare) + 1 >= PLAN_NAME_BYTES)
		return LINE_ERROR(n, "the alias '%s' is too long", bare);
	(void)snprintf(name, PLAN_NAME_BYTES, "@%.63s", bare);
	return 0;
}

static const struct netfile_alias *alias_find(const struct netfile *n, const char *name)
{
	for (uint32_t i = 0; i < n->naliases; i++)
		if (!strcmp(n->aliases[i].name, name))
			return &n->aliases[i];
	return NULL;
}

/* ---- nodes ---- */

/* Grows the parallel array that says where ports lead to. */
static int remotes_grow(struct netfile *n)
{
	void *p;

	if (n->remotes_room >= n->plan->ports_room)
		return 0;
	p = reallocarray(n->remotes, n->plan->ports_room, sizeof(*n->remotes));
	if (!p)
		return no_memory(n);
	n->remotes = p;
	n->remotes_room = n->plan->ports_room;
	return 0;
}

static int lid_check(struct netfile *n, uint32_t *at, uint32_t lmc)
{
	uint32_t lid = *at;

	/* A port says so that no subnet manager has reached (IBTA 4.1.3, the permissive LID). */
	if (lid == 0xffff) {
		*at = 0;
		return 0;
	}
	if (lid >= 0xc000 || lmc > 7 || lid & ((1u << lmc) - 1))
		return LINE_ERROR(n, "lid %u with lmc %u is not a unicast LID", lid, lmc);
	return 0;
}

static void port_default(struct netfile *n, struct plan_port *p)
{
	p->width = n->width;
	p->speed = n->speed;
	p->ext_speed = n->ext_speed;
}

static int node_line(struct netfile *n, const char *text)
{
	struct plan_node node = {.file = n->file, .line = n->line};
	struct node_line line;
	const char *wrong = node_line_read(text, &line);
	uint64_t guid;
	int ret;

	if (wrong)
		return LINE_ERROR(n, "%s", wrong);
	if (strchr(line.id, '@'))
		return LINE_ERROR(n, "'%s': '@' is not allowed in the id of a node", line.id);
	ret = name_expand(n, line.id);
	if (!ret)
		ret = lid_check(n, &line.lid, line.lmc);
	if (ret)
		return ret;
	node.type = line.type;
	node.nports = (uint8_t)line.nports;
	node.enhanced_port0 = line.enhanced_port0;
	guid = id_guid(line.id, line.type);
	if (guid && !n->guids.given[line.type])
		guid_rule_set(&n->guids, line.type, guid, false);
	node.guid = guid_rule_take(&n->guids, line.type, line.nports);
	/* ibnetdiscover leaves a GUID of 0 out, and ibsim takes the node's. */
	node.system_guid = n->system_guid_given ? n->system_guid : guid ? 0 : node.guid;
	node.vendor_id = n->vendor_id;
	node.device_id = (uint16_t)n->device_id;
	n->system_guid_given = false;
	n->vendor_id = 0;
	text_copy(node.id, sizeof(node.id), line.id);
	text_copy(node.description, sizeof(node.description),
		  line.described ? line.description : line.id);
	n->strange_line = 0;
	n->node = plan_add_node(n->plan, &node);
	if (n->node == -EEXIST)
		return LINE_ERROR(n, "two nodes have the id '%s'", node.id);
	if (n->node < 0)
		return no_memory(n);
	ret = remotes_grow(n);
	for (uint32_t i = n->plan->nodes[n->node].first_port; i < n->plan->nports; i++)
		port_default(n, &n->plan->ports[i]);
	if (node.type == SMP_NODE_SWITCH) {
		n->plan->ports[n->plan->nodes[n->node].first_port].lid = (uint16_t)line.lid;
		n->plan->ports[n->plan->nodes[n->node].first_port].lmc = (uint8_t)line.lmc;
		n->plan->ports[n->plan->nodes[n->node].first_port].guid = n->switch_port_guid;
		n->switch_port_guid = 0;
	}
	return ret;
}

/* ---- ports ---- */

static int own_port(struct netfile *n, uint32_t number, uint32_t *port)
{
	const struct plan_node *node = &n->plan->nodes[n->node];

	if (!number || number > node->nports)
		return LINE_ERROR(n, "'%s' has no port %u", node->id, number);
	*port = plan_port_index(node, number);
	return 0;
}

/* A line that means nothing and comes before ports is most likely a damaged one of a node. */
static int port_without_node(struct netfile *n)
{
	if (!n->strange_line)
		return LINE_ERROR(n, "a port, but no node that it could belong to");
	n->line = n->strange_line;
	return LINE_ERROR(n, "this line begins no node, and ports follow");
}

static int port_line(struct netfile *n, const char *text)
{
	struct port_line line;
	struct plan_port *p;
	const char *wrong;
	uint32_t port = 0;
	int ret;

	if (n->node < 0)
		return port_without_node(n);
	wrong = port_line_read(text, n->plan->nodes[n->node].type == SMP_NODE_SWITCH, &line);
	if (wrong)
		return LINE_ERROR(n, "%s", wrong);
	ret = own_port(n, line.number, &port);
	if (!ret)
		ret = lid_check(n, &line.lid, line.lmc);
	if (!ret)
		ret = line.remote[0] == '@' ? alias_expand(n, line.remote)
					    : name_expand(n, line.remote);
	if (ret)
		return ret;
	p = &n->plan->ports[port];
	if (p->line)
		return LINE_ERROR(n, "port %u has a cable already, by line %u", line.number,
				  p->line);
	p->line = n->line;
	p->lid = (uint16_t)line.lid;
	p->lmc = (uint8_t)line.lmc;
	p->width = line.width ? line.width : p->width;
	p->speed = line.speed ? line.speed : p->speed;
	p->ext_speed = line.ext_speed ? line.ext_speed : p->ext_speed;
	p->xdr = line.xdr;
	p->fdr10 = line.fdr10;
	p->rated = line.rated;
	p->guid = line.guid;
	text_copy(n->remotes[port].id, sizeof(n->remotes[port].id), line.remote);
	n->remotes[port].number = (uint8_t)line.remote_number;
	n->remotes[port].guid = line.remote_guid;
	return 0;
}

static int alias_line(struct netfile *n, const char *text)
{
	struct netfile_alias *p;
	struct alias_line line;
	const char *wrong;
	uint32_t port = 0;
	int ret;

	if (n->node < 0)
		return LINE_ERROR(n, "an alias, but no node that it could belong to");
	wrong = alias_line_read(text, &line);
	if (wrong)
		return LINE_ERROR(n, "%s", wrong);
	ret = own_port(n, line.number, &port);
	if (!ret)
		ret = alias_expand(n, line.name);
	if (ret)
		return ret;
	if (alias_find(n, line.name))
		return LINE_ERROR(n, "two ports have the alias '%s'", line.name);
	p = reallocarray(n->aliases, n->naliases + 1u, sizeof(*p));
	if (!p)
		return no_memory(n);
	n->aliases = p;
	n->aliases[n->naliases].port = port;
	text_copy(n->aliases[n->naliases++].name, sizeof(p->name), line.name);
	return 0;
}

/* ---- everything else ---- */

/* Tells whether this is the keyword, with only blanks before its '=' or '+'. */
static bool is_assignment(const char *text, const char *word, const char **at)
{
	size_t n = strlen(word);

	if (strncmp(text, word, n) != 0 || !strchr("=+ \t", text[n]) || !text[n])
		return false;
	*at = text + n;
	return true;
}

static int module_line(struct netfile *n, const char *at)
{
	char name[PLAN_NAME_BYTES];
	const char *wrong;

	at += strspn(at, " \t=");
	/* An empty name ends the module. */
	if (!strncmp(at, "\"\"", 2)) {
		n->prefix[0] = '\0';
		return 0;
	}
	wrong = quoted_read(&at, name);
	if (wrong)
		return LINE_ERROR(n, "%s", wrong);
	if (!text_copy(n->prefix, sizeof(n->prefix), name))
		return LINE_ERROR(n, "the module '%s' has more than 20 characters", name);
	return 0;
}

static int include_line(struct netfile *n, const char *at)
{
	uint32_t file = n->file, line = n->line;
	char name[PLAN_ERROR_BYTES];
	const char *end;
	int ret;

	at += strspn(at, " \t");
	end = *at == '"' ? strchr(at + 1, '"') : NULL;
	if (!end || end == at + 1 || (size_t)(end - at) > sizeof(name))
		return LINE_ERROR(n, "include needs the name of a file in quotes");
	if (!n->include)
		return LINE_ERROR(n, "nothing can be included here");
	memcpy(name, at + 1, (size_t)(end - at - 1));
	name[end - at - 1] = '\0';
	n->node = -1;
	ret = n->include(n, name);
	n->file = file;
	n->line = line;
	n->node = -1;
	n->strange_line = 0;
	return ret;
}

static int number_line(struct netfile *n, const char *word, const char *at)
{
	bool relative;
	uint64_t v, guid;
	const char *wrong = number_read(at, &relative, &v, &guid);

	if (wrong)
		return LINE_ERROR(n, "%s: %s", word, wrong);
	if (!strcmp(word, "switchguid")) {
		guid_rule_set(&n->guids, SMP_NODE_SWITCH, v, relative);
		n->switch_port_guid = guid;
	} else if (!strcmp(word, "rtguid"))
		guid_rule_set(&n->guids, SMP_NODE_ROUTER, v, relative);
	else if (!strcmp(word, "hcaguids") || !strcmp(word, "hcaguid") || !strcmp(word, "caguid"))
		guid_rule_set(&n->guids, SMP_NODE_CA, v, relative);
	else if (!strcmp(word, "sysimgguid")) {
		n->system_guid = v;
		n->system_guid_given = true;
	} else if (!strcmp(word, "vendid"))
		n->vendor_id = (uint32_t)v & 0xffffff;
	else if (!strcmp(word, "devid"))
		n->device_id = (uint16_t)v;
	else if (!strcmp(word, "width"))
		n->width = v & 31;
	else if (!strcmp(word, "speed"))
		n->speed = v & 15;
	else if (!strcmp(word, "extspeed"))
		n->ext_speed = v & 15;
	return 0;
}

static int top_line(struct netfile *n, const char *text)
{
	static const char *const numbers[] = {"switchguid", "hcaguids", "hcaguid", "caguid",
					      "rtguid",	    "vendid",	"devid",   "sysimgguid",
					      "width",	    "speed",	"extspeed"};
	const char *at;

	if (node_line_begins(text))
		return node_line(n, text);
	if (is_assignment(text, "module", &at)) {
		n->node = -1;
		return module_line(n, at);
	}
	if (!strncmp(text, "include", 7) && (text[7] == ' ' || text[7] == '\t'))
		return include_line(n, text + 7);
	for (unsigned i = 0; i < array_size(numbers); i++)
		if (is_assignment(text, numbers[i], &at)) {
			n->node = -1;
			return number_line(n, numbers[i], at);
		}
	/*
	 * "do" is for ibsim's console, and any other line means nothing to ibsim either: headings,
	 * and what programs have written to the terminal in between.
	 */
	n->strange_line = n->line;
	return 0;
}

static int line_read(struct netfile *n, const char *text)
{
	text += strspn(text, " \t");
	switch (text[0]) {
	case '\0':
		n->node = -1;
		return 0;
	case '#':
		return 0;
	case '[':
		return port_line(n, text);
	case '@':
		return alias_line(n, text);
	default:
		return top_line(n, text);
	}
}

/* Reads the lines of a file, and changes 'text'.  An included file is read in between. */
static must_check int netfile_lines(struct netfile *n, const char *name, char *text, size_t bytes)
{
	char *end = text + bytes;
	int64_t file = plan_add_file(n->plan, name);
	int ret = 0;

	if (file < 0)
		return no_memory(n);
	n->file = (uint32_t)file;
	n->strange_line = 0;
	for (n->line = 1; text < end && !ret; n->line++) {
		char *stop = memchr(text, '\n', (size_t)(end - text));

		stop = stop ? stop : end;
		*stop = '\0';
		if (stop > text && stop[-1] == '\r')
			stop[-1] = '\0';
		ret = line_read(n, text);
		text = stop + 1;
	}
	n->node = -1;
	return ret;
}

/* ---- cables ---- */

static int remote_port(struct netfile *n, uint32_t port, uint32_t *out)
{
	const struct netfile_remote *r = &n->remotes[port];
	const struct netfile_alias *alias = alias_find(n, r->id);
	int64_t node;

	if (alias) {
		*out = alias->port;
		return 0;
	}
	node = plan_find_id(n->plan, r->id);
	if (node < 0)
		return LINE_ERROR(n, "there is no node '%s'", r->id);
	*out = r->number ? plan_port_index(&n->plan->nodes[node], r->number) : PLAN_NONE;
	if (*out == PLAN_NONE)
		return LINE_ERROR(n, "'%s' has no port %u", r->id, r->number);
	if (!n->plan->ports[*out].guid && n->plan->nodes[node].type != SMP_NODE_SWITCH)
		n->plan->ports[*out].guid = r->guid;
	return 0;
}

/* Connects the ports that lead to each other, when all is read. */
static must_check int netfile_connect(struct netfile *n)
{
	int ret = 0;

	for (uint32_t node = 0; node < n->plan->nnodes && !ret; node++) {
		const struct plan_node *of = &n->plan->nodes[node];

		n->file = of->file;
		for (uint32_t number = 1; number <= of->nports && !ret; number++) {
			uint32_t port = plan_port_index(of, number);

			n->line = n->plan->ports[port].line;
			if (n->line)
				ret = remote_port(n, port, &n->plan->ports[port].cable);
		}
	}
	return ret;
}

/* ---- reads network files from the disk, with the files that they include ---- */

#define INCLUDE_DEPTH	9u
#define FILE_BYTES_MAX	(256u << 20)
#define FILE_NAME_BYTES 4096u

static int file_fill(int fd, char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = read(fd, text + at, bytes - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += (size_t)n;
	}
	return 0;
}

/* Reads the file's bytes, into memory with room for one more. */
static int file_read(const char *path, char **text, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	*text = NULL;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	else if (st.st_size > (off_t)FILE_BYTES_MAX)
		ret = -EFBIG;
	if (!ret) {
		*bytes = (size_t)st.st_size;
		*text = malloc(*bytes + 1);
		ret = *text ? file_fill(fd, *text, *bytes) : -ENOMEM;
	}
	close(fd);
	if (ret)
		free(*text);
	return ret;
}

/* A name without '/' in front lies beside the file that names it. */
static bool path_beside(const char *of, const char *name, char path[FILE_NAME_BYTES])
{
	const char *slash = strrchr(of, '/');
	int dir = name[0] == '/' || !slash ? 0 : (int)(slash + 1 - of);
	int n = snprintf(path, FILE_NAME_BYTES, "%.*s%s", dir, of, name);

	return n >= 0 && (unsigned)n < FILE_NAME_BYTES;
}

static int file_include(struct netfile *n, const char *name)
{
	char path[FILE_NAME_BYTES], *text = NULL;
	size_t bytes = 0;
	int ret;

	if (n->depth == INCLUDE_DEPTH)
		return plan_error(n->plan, n->file, n->line, n->error,
				  "files include each other more than %u deep", INCLUDE_DEPTH);
	ret = path_beside(n->plan->files[n->file], name, path) ? file_read(path, &text, &bytes)
							       : -ENAMETOOLONG;
	if (ret) {
		(void)plan_error(n->plan, n->file, n->line, n->error, "%.200s: %s", name,
				 strerror(-ret));
		return ret;
	}
	n->depth++;
	ret = netfile_lines(n, path, text, bytes);
	n->depth--;
	free(text);
	return ret;
}

static int netfile_whole(struct netfile *n, const char *name, char *text, size_t bytes)
{
	int ret = netfile_lines(n, name, text, bytes);

	if (!ret)
		ret = netfile_connect(n);
	netfile_close(n);
	return ret;
}

int plan_read(struct plan *p, const char *path, char error[PLAN_ERROR_BYTES])
{
	struct netfile n;
	char *text = NULL;
	size_t bytes = 0;
	int ret;

	netfile_open(&n, p, error);
	n.include = file_include;
	ret = file_read(path, &text, &bytes);
	if (ret) {
		(void)snprintf(error, PLAN_ERROR_BYTES, "%.255s: %s", path, strerror(-ret));
		return ret;
	}
	ret = netfile_whole(&n, path, text, bytes);
	free(text);
	return ret;
}

int plan_parse(struct plan *p, const char *name, const char *text, size_t bytes,
	       char error[PLAN_ERROR_BYTES])
{
	char *copy = malloc(bytes + 1);
	struct netfile n;
	int ret;

	netfile_open(&n, p, error);
	if (!copy) {
		(void)snprintf(error, PLAN_ERROR_BYTES, "%.255s: not enough memory", name);
		return -ENOMEM;
	}
	memcpy(copy, text, bytes);
	ret = netfile_whole(&n, name, copy, bytes);
	free(copy);
	return ret;
}
