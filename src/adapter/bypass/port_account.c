// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/port_account.h"

void port_account_read(const struct adapter *a, const struct path *path, struct remote *f,
		       const struct message_sizes *answers)
{
	struct message_sizes m = *answers;
	bool ethernet = a->port->ethernet;
	const struct port_account ours = {
		.sent = request_octets(path, ethernet, &m) * m.messages / 4,
		.sent_packets = m.messages,
		.received = message_octets(path, ethernet, &m) / 4,
		.received_packets = m.packets,
		.request = PORT_COUNTERS,
		.requests = m.messages,
	};

	port_account_both(a, path, f, &ours,
			  m.kind == MESSAGE_ANSWER ? HW_RX_READ_REQUESTS : HW_RX_ATOMIC_REQUESTS);
}
