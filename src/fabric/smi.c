// SPDX-License-Identifier: BSD-2-Clause
/* Hop pointers of directed routes; see smi.h. */
#include "fabric/smi.h"

struct smi_route {
	uint8_t *hop;
	uint8_t hops;
	bool back;
	bool lid_first; /* the part before the directed one is not empty */
	bool lid_then;
};

static struct smi_route smi_route_of(uint8_t *mad)
{
	bool slid = mad_get16(mad, MAD_AT_DR_SLID) != MAD_LID_PERMISSIVE;
	bool dlid = mad_get16(mad, MAD_AT_DR_DLID) != MAD_LID_PERMISSIVE;
	bool back = mad_get16(mad, MAD_AT_STATUS) & MAD_STATUS_DIRECTION;

	return (struct smi_route){
		.hop = &mad[MAD_AT_HOP_POINTER],
		.hops = mad[MAD_AT_HOP_COUNT],
		.back = back,
		.lid_first = back ? dlid : slid,
		.lid_then = back ? slid : dlid,
	};
}

/* Sends the MAD on to the port that the path names for the present hop. */
static enum smi_way smi_out(const uint8_t *mad, const struct smi_route *r, uint8_t nports,
			    uint8_t *port)
{
	*port = mad[(r->back ? MAD_AT_DR_RETURN : MAD_AT_DR_INITIAL) + *r->hop];
	return *port && *port <= nports ? SMI_OUT : SMI_DISCARD;
}

/* Makes the first hop of a path that begins here. */
static enum smi_way smi_begin(const uint8_t *mad, const struct smi_route *r, bool is_switch,
			      uint8_t own, uint8_t *port)
{
	enum smi_way way = smi_out(mad, r, UINT8_MAX, port);

	return is_switch || *port == own ? way : SMI_DISCARD;
}

static enum smi_way smi_send_request(const uint8_t *mad, const struct smi_route *r, bool is_switch,
				     uint8_t own, uint8_t *port)
{
	if (*r->hop == 0 && r->hops) {
		++*r->hop;
		return smi_begin(mad, r, is_switch, own, port);
	}
	if (*r->hop < r->hops) {
		if (!is_switch)
			return SMI_DISCARD;
		++*r->hop;
		return smi_out(mad, r, UINT8_MAX, port);
	}
	if (*r->hop == r->hops) {
		++*r->hop;
		return is_switch || !r->lid_then ? SMI_LOCAL : SMI_DISCARD;
	}
	return *r->hop == r->hops + 1 ? SMI_LOCAL : SMI_DISCARD;
}

static enum smi_way smi_send_response(const uint8_t *mad, const struct smi_route *r, bool is_switch,
				      uint8_t own, uint8_t *port)
{
	if (*r->hop == 0)
		return SMI_LOCAL;
	if (*r->hop > r->hops + 1)
		return SMI_DISCARD;
	if (r->hops && *r->hop == r->hops + 1) {
		--*r->hop;
		return smi_begin(mad, r, is_switch, own, port);
	}
	if (*r->hop == 1) {
		*r->hop = 0;
		return is_switch || !r->lid_then ? SMI_LOCAL : SMI_DISCARD;
	}
	if (!is_switch)
		return SMI_DISCARD;
	--*r->hop;
	return smi_out(mad, r, UINT8_MAX, port);
}

enum smi_way smi_send(uint8_t *mad, bool is_switch, uint8_t own, uint8_t *port)
{
	struct smi_route r = smi_route_of(mad);

	if (r.lid_first)
		return *r.hop == (r.back ? 0 : r.hops + 1) ? SMI_LOCAL : SMI_BY_LID;
	if (r.hops >= MAD_DR_HOPS)
		return SMI_DISCARD;
	return r.back ? smi_send_response(mad, &r, is_switch, own, port)
		      : smi_send_request(mad, &r, is_switch, own, port);
}

/* The directed part ends: handle the MAD here, or send it on by LIDs, which only a switch does. */
static enum smi_way smi_end(const struct smi_route *r, bool is_switch)
{
	if (!r->lid_then)
		return SMI_LOCAL;
	return is_switch ? SMI_BY_LID : SMI_DISCARD;
}

static enum smi_way smi_receive_request(uint8_t *mad, const struct smi_route *r, bool is_switch,
					uint8_t ingress, uint8_t nports, uint8_t *port)
{
	uint8_t *back = &mad[MAD_AT_DR_RETURN];

	if (*r->hop == r->hops + 1)
		return SMI_LOCAL;
	if (*r->hop > r->hops)
		return SMI_DISCARD;
	if (*r->hop == r->hops) {
		if (r->hops)
			back[*r->hop] = ingress;
		++*r->hop;
		return smi_end(r, is_switch);
	}
	/* It has come by LIDs to where the directed part begins; otherwise its sender forgot the
	 * hop. */
	if (!is_switch || (!*r->hop && !r->lid_first))
		return SMI_DISCARD;
	if (*r->hop)
		back[*r->hop] = ingress;
	++*r->hop;
	return smi_out(mad, r, nports, port);
}

static enum smi_way smi_receive_response(const uint8_t *mad, const struct smi_route *r,
					 bool is_switch, uint8_t nports, uint8_t *port)
{
	if (*r->hop == 0)
		return SMI_LOCAL;
	if (*r->hop > r->hops + 1)
		return SMI_DISCARD;
	if (*r->hop == 1) {
		*r->hop = 0;
		return smi_end(r, is_switch);
	}
	/* It has come by LIDs if the hop is still the one beyond the path. */
	if (!is_switch || (*r->hop == r->hops + 1 && !r->lid_first))
		return SMI_DISCARD;
	--*r->hop;
	return smi_out(mad, r, nports, port);
}

enum smi_way smi_receive(uint8_t *mad, bool is_switch, uint8_t ingress, uint8_t nports,
			 uint8_t *port)
{
	struct smi_route r = smi_route_of(mad);

	if (r.hops >= MAD_DR_HOPS)
		return SMI_DISCARD;
	return r.back ? smi_receive_response(mad, &r, is_switch, nports, port)
		      : smi_receive_request(mad, &r, is_switch, ingress, nports, port);
}
