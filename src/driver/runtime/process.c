// SPDX-License-Identifier: BSD-2-Clause
/*
 * Brings the process's share of the fabric up with the first open device and down with the last.
 *
 * The order of bringing up: fault handler (from now on the device touches program memory),
 * connection, wire host, per port a wire and an adapter, engine.  Taking down reverses it.
 *
 * Locks: 'lock' covers references and bringing up and down.  'host_lock' covers the short time
 * between the first notification that the control thread may deliver and the moment at which the
 * wire host is there to take it; the control thread takes no other lock.
 */
#include "driver/runtime/process.h"

#include <errno.h>
#include <string.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "base/thread.h"
#include "base/explain.h"
#include "base/hazard.h"
#include "base/log.h"
#include "base/adaptive_spin.h"
#include "base/trace.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/congestion.h"
#include "driver/runtime/drive.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/fault.h"
#include "exposure/expose.h"
#include "fabric/client/link.h"
#include "fabric/client/trouble.h"
#include "prm/model.h"
#include "wire/capture.h"
#include "wire/wakeup_fifo.h"

struct running {
	struct process process;
	struct doorbell_engine doorbells;
	pthread_mutex_t host_lock;
};

typedef void port_listener(uint32_t port_row, enum ib_event event);

/* The lock is recursive, because starting the daemon may fork, and the fork handlers below take the
 * lock again. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned references;
static _Atomic(struct process *) current;
static _Atomic(port_listener *) listener;
static void (*_Atomic function_listener)(void);
static void (*_Atomic fault_listener)(struct process *p, uint32_t row);

struct process *process_current(void)
{
	/* The load is sequentially consistent: a thread that counts itself among the readers looks
	 * afterwards.  Its partner is process_put, which waits for the readers after its store. */
	return atomic_load(&current);
}

void process_on_port_event(port_listener *fn)
{
	atomic_store(&listener, fn);
}

void process_on_function_left(void (*fn)(void))
{
	atomic_store(&function_listener, fn);
}

void process_on_fault(void (*fn)(struct process *p, uint32_t row))
{
	atomic_store(&fault_listener, fn);
}

static void port_listener_tell(uint32_t port_row, enum ib_event event)
{
	port_listener *fn = atomic_load(&listener);

	if (fn)
		fn(port_row, event);
}

/* ---- notifications of the fabric, on its control thread ---- */

static void on_channel(void *user, uint16_t peer, int fd, size_t bytes, int side)
{
	struct running *r = user;
	int ret = 0;

	/* A peer that opens a channel to a process that is leaving will hear that it has gone. */
	pthread_mutex_lock(&r->host_lock);
	if (r->process.wire_process)
		ret = wire_process_add_channel(r->process.wire_process, peer, fd, bytes, side);
	else
		close(fd);
	pthread_mutex_unlock(&r->host_lock);
	if (ret)
		log_warn("channel of process slot %u: error %d", peer, -ret);
	/* The peer may have sent before we knew the channel, and have found the engine awake. */
	engine_kick(&r->process);
}

static void on_gone(void *user, uint16_t peer)
{
	struct running *r = user;

	pthread_mutex_lock(&r->host_lock);
	if (r->process.wire_process)
		wire_process_drop_channel(r->process.wire_process, peer);
	pthread_mutex_unlock(&r->host_lock);
}

static void on_gsi(void *user, const struct gsi_datagram *d)
{
	struct running *r = user;

	pthread_mutex_lock(&r->host_lock);
	if (r->process.wire_process)
		wire_process_take_gsi(r->process.wire_process, d);
	pthread_mutex_unlock(&r->host_lock);
}

static void on_capture(void *user, const struct msg_capture_ring *ring, int fd)
{
	const struct capture_attr attr = {ring->id, ring->ports, ring->want};
	struct running *r = user;
	int ret = 0;

	pthread_mutex_lock(&r->host_lock);
	if (r->process.wire_process)
		ret = wire_capture_begin(r->process.wire_process, &attr, fd);
	pthread_mutex_unlock(&r->host_lock);
	if (ret)
		log_warn("packets cannot be captured: %s", strerror(-ret));
}

static void on_capture_end(void *user, uint32_t id)
{
	struct running *r = user;

	pthread_mutex_lock(&r->host_lock);
	if (r->process.wire_process)
		wire_capture_end(r->process.wire_process, id);
	pthread_mutex_unlock(&r->host_lock);
	/* It lets go of the ring. */
	engine_kick(&r->process);
}

static void on_function(void *user)
{
	void (*fn)(void) = atomic_load(&function_listener);

	(void)user;
	if (fn)
		fn();
}

static void on_fault(void *user, uint32_t row)
{
	void (*fn)(struct process * p, uint32_t row) = atomic_load(&fault_listener);
	struct process *p;

	(void)user;
	hazard_enter();
	/* There is none while it comes up or goes down. */
	p = process_current();
	if (fn && p)
		fn(p, row);
	hazard_leave();
}

static void on_port(void *user, uint32_t port_row, enum ib_event event)
{
	(void)user;
	port_listener_tell(port_row, event);
}

static void hca_lost(const struct hca *h)
{
	for (uint32_t i = 0; i < h->node->nports; i++) {
		trace(port, event, h->port_row + i, ib_event_name(IB_EVENT_PORT_ERR),
		      "daemon-gone");
		port_listener_tell(h->port_row + i, IB_EVENT_PORT_ERR);
	}
}

static void on_lost(void *user)
{
	struct running *r = user;

	atomic_store(&r->process.lost, true);
	log_warn("the fabric's daemon has gone: ports are down");
	pthread_mutex_lock(&r->host_lock);
	if (r->process.wire_process)
		wire_captures_end(r->process.wire_process);
	pthread_mutex_unlock(&r->host_lock);
	for (uint32_t i = 0; i < r->process.nhcas; i++)
		hca_lost(&r->process.hcas[i]);
}

/* ---- what the wire and the adapters ask of the fabric ---- */

/* Translates the error into one of those that a driver knows when its device does not answer. */
static int device_error(int error)
{
	switch (error) {
	case -ECONNRESET:
	case -ETIMEDOUT:
	case -EBADMSG:
	case -ENOTCONN:
		return -EIO;
	case -ENOBUFS:
		return -ENOMEM;
	default:
		return error;
	}
}

static int process_open_channel(void *user, uint16_t peer, int *fd, size_t *bytes, int *side)
{
	struct process *p = user;

	return fabric_open_channel(p->fabric, peer, fd, bytes, side);
}

static int64_t process_number_chunk(void *user, enum number_kind kind)
{
	struct process *p = user;

	int64_t first = fabric_number_chunk(p->fabric, kind);

	return first < 0 ? device_error((int)first) : first;
}

static void process_kick(void *user)
{
	engine_kick(user);
}

static void process_violated(void *user, const struct key_violation *v)
{
	struct process *p = user;

	fabric_tell_violation(p->fabric, v);
}

static bool process_send_gsi(void *user, const struct gsi_datagram *d)
{
	struct process *p = user;

	return fabric_send_gsi(p->fabric, d);
}

static void process_group(void *user, uint32_t row, const union ib_gid *gid, bool joins)
{
	struct process *p = user;

	fabric_tell_group(p->fabric, row, gid, joins);
}

/* ---- up and down ---- */

/* Reads SOFTHCA_MEMORY; see softhca(1).  SOFTHCA_EXPOSE=0 is the former way to ask for packets. */
static enum memory_way memory_wanted(void)
{
	const char *value = getenv("SOFTHCA_MEMORY"), *expose = getenv("SOFTHCA_EXPOSE");
	enum memory_way way = value ? memory_way_find(value) : MEMORY_AUTO;

	if (expose && !strcmp(expose, "0"))
		return MEMORY_PACKETS;
	if (way != MEMORY_WAYS)
		return way;
	log_warn("SOFTHCA_MEMORY is " MEMORY_WAY_NAMES ", not: %s", value);
	return MEMORY_AUTO;
}

/* Reads SOFTHCA_SIGNATURE_REPORTS; see softhca(1). */
static bool reports_as_hardware(void)
{
	const char *value = getenv("SOFTHCA_SIGNATURE_REPORTS");

	if (!value || !strcmp(value, "manual"))
		return false;
	if (!strcmp(value, "hardware"))
		return true;
	log_warn("SOFTHCA_SIGNATURE_REPORTS: neither manual nor hardware: %s", value);
	return false;
}

/* Reads SOFTHCA_TIMING; see softhca(1). */
static bool timing_as_hardware(void)
{
	const char *value = getenv("SOFTHCA_TIMING");

	if (!value || !strcmp(value, "nominal"))
		return false;
	if (!strcmp(value, "hardware"))
		return true;
	log_warn("SOFTHCA_TIMING: neither nominal nor hardware: %s", value);
	return false;
}

static int process_connect(struct running *r)
{
	struct process *p = &r->process;
	const struct fabric_client_ops ops = {
		.channel = on_channel,
		.gone = on_gone,
		.gsi = on_gsi,
		.function = on_function,
		.capture = on_capture,
		.capture_end = on_capture_end,
		.port = on_port,
		.fault = on_fault,
		.lost = on_lost,
		.user = r,
	};
	int ret;

	uint64_t congested, mark;

	p->memory = memory_wanted();
	pthread_mutex_lock(&r->host_lock);
	ret = fabric_client_open(&ops, &p->fabric);
	if (!ret) {
		const struct wire_process_attr attr = {
			.registry = fabric_registry(p->fabric),
			.subnet = fabric_subnet(p->fabric),
			.slots = fabric_slots(p->fabric),
			.slot = fabric_slot(p->fabric),
			.traffic = fabric_traffic(p->fabric),
			.open_channel = process_open_channel,
			.violated = process_violated,
			.send_gsi = process_send_gsi,
			.group = process_group,
			.expose = p->memory != MEMORY_PACKETS,
			.user = p,
		};

		p->registry = attr.registry;
		p->subnet = attr.subnet;
		p->slot = &attr.slots[attr.slot];
		ret = wire_process_create(&attr, &p->wire_process);
		/* Packets have to carry what is on its way to a congested port, so the slot counts
		 * as observed. */
		if (!ret && congestion_wanted(&congested, &mark))
			atomic_fetch_add(&attr.slots[attr.slot].observers, 1);
	}
	pthread_mutex_unlock(&r->host_lock);
	if (ret && p->fabric)
		fabric_client_close(p->fabric);
	return ret;
}

static void process_disconnect(struct running *r)
{
	struct process *p = &r->process;
	struct wire_process *host = p->wire_process;

	pthread_mutex_lock(&r->host_lock);
	p->wire_process = NULL;
	pthread_mutex_unlock(&r->host_lock);
	wire_process_destroy(host);
	fabric_client_close(p->fabric);
}

static int hca_create(struct process *p, uint32_t row)
{
	struct hca *h = &p->hcas[p->nhcas];
	const struct subnet_port *port = &p->subnet->ports[row];
	struct adapter_attr attr = {
		.domains = p->domains,
		.port = {.fabric_port = row, .ethernet = port->ethernet},
		.number_chunk = process_number_chunk,
		.sig_report_hardware = reports_as_hardware(),
		.timing_hardware = timing_as_hardware(),
		.steering_format = model_at(p->registry->model)->steering,
		.clock_khz = model_at(p->registry->model)->clock_khz,
		.kick = process_kick,
		.violated = process_violated,
		.user = p,
	};
	uint64_t congested, mark;
	int ret;

	h->node = subnet_node_of(p->subnet, row);
	h->index = h->node->device;
	snprintf(h->name, sizeof(h->name), "%.*s", (int)sizeof(h->name) - 1, h->node->name);
	h->port_row = row;
	h->port = port;
	ret = wire_create(p->wire_process, row, &h->wire);
	if (ret)
		return ret;
	pthread_mutex_init(&h->xrc_lock, NULL);
	h->xrc_domains = NULL;
	attr.wire = h->wire;
	ret = adapter_create(&attr, &h->adapter);
	if (ret) {
		wire_destroy(h->wire);
		return ret;
	}
	if (congestion_wanted(&congested, &mark))
		adapter_congest(h->adapter, congested, mark);
	p->nhcas++;
	return 0;
}

static void hcas_destroy(struct process *p)
{
	while (p->nhcas) {
		struct hca *h = &p->hcas[--p->nhcas];

		adapter_destroy(h->adapter);
		wire_destroy(h->wire);
	}
	domains_destroy(p->domains);
}

static int hcas_create(struct process *p)
{
	uint32_t rows[SLOT_PORTS];
	uint32_t n = min_u32(fabric_host_ports(p->fabric, rows, SLOT_PORTS), SLOT_PORTS);

	p->domains = domains_create();
	if (!p->domains)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		int ret = rows[i] < p->subnet->nports ? 0 : -EPROTO;

		/* The further ports of a device follow its first. */
		if (!ret && p->subnet->ports[rows[i]].number == 1)
			ret = hca_create(p, rows[i]);
		if (ret) {
			hcas_destroy(p);
			return ret;
		}
	}
	if (!n)
		hcas_destroy(p);
	return n ? 0 : -ENODEV;
}

void process_warn_missing(int error)
{
	static _Atomic(bool) said;
	const struct fabric_environment *env = fabric_environment();
	char text[TROUBLE_BYTES];
	struct trouble t;

	if (atomic_exchange(&said, true))
		return;
	log_init();
	if (!env || !env->host[0]) {
		log_warn("no devices: %s does not name %s; 'softhca run' and 'softhca env' set it",
			 env ? "SOFTHCA_HOST" : "SOFTHCA_DIR",
			 env ? "a host of the fabric" : "the directory of a fabric");
		return;
	}
	t = (struct trouble){env->dir, env->daemon, env->host, error};
	trouble_text(&t, text, sizeof(text));
	log_warn("no devices: %s", text);
}

void process_warn(const char *what, int error)
{
	char text[TROUBLE_BYTES];

	trouble_error_text(error, text, sizeof(text));
	log_warn("the device does not come up: %s: %s", what, text);
}

static int process_bring_up(struct process **out)
{
	struct running *r = calloc(1, sizeof(*r));
	const char *what = "handlers of SIGSEGV and SIGBUS";
	int ret;

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->host_lock, NULL);
	log_init();
	trace_init();
	explain_init();
	ret = fault_install();
	if (ret)
		goto free_running;
	what = NULL;
	ret = process_connect(r);
	if (ret)
		goto free_running;
	what = "its memory";
	ret = hcas_create(&r->process);
	if (ret)
		goto disconnect;
	r->doorbells = (struct doorbell_engine){
		.kick = process_kick,
		.drive = drive_after_fault,
		.stays_armed = engine_cpus_are_few(),
		.user = &r->process,
	};
	doorbell_start(&r->doorbells);
	what = "its thread";
	ret = engine_start(&r->process);
	if (ret)
		goto stop_doorbells;
	*out = &r->process;
	return 0;

stop_doorbells:
	doorbell_stop();
	hcas_destroy(&r->process);
disconnect:
	process_disconnect(r);
free_running:
	if (what)
		process_warn(what, ret);
	else
		process_warn_missing(ret);
	pthread_mutex_destroy(&r->host_lock);
	free(r);
	return ret;
}

static void process_take_down(struct process *p)
{
	struct running *r = container_of(p, struct running, process);

	engine_stop(p);
	doorbell_stop();
	hcas_destroy(p);
	process_disconnect(r);
	pthread_mutex_destroy(&r->host_lock);
	free(r);
}

int process_get(struct process **out)
{
	struct process *p = NULL;
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (!references) {
		ret = process_bring_up(&p);
		if (!ret)
			atomic_store_explicit(&current, p, memory_order_release);
	} else {
		p = process_current();
	}
	if (!ret) {
		references++;
		*out = p;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void process_put(struct process *p)
{
	pthread_mutex_lock(&lock);
	/* A reference that was taken before a fork is not this process's. */
	if (p == process_current() && references && !--references) {
		atomic_store(&current, NULL);
		process_take_down(p);
	}
	pthread_mutex_unlock(&lock);
}

int process_ensure_fabric(void)
{
	no_cancellation();
	const struct fabric_environment *env = fabric_environment();
	char text[16];
	ssize_t n = fabric_read_attr(".", text, sizeof(text));

	if (n < 0 || !env || !env->host[0])
		process_warn_missing((int)n);
	/* -ENOENT means that this is no live attribute; but it is an answer, so the daemon is
	 * there. */
	return n < 0 && n != -ENOENT ? (int)n : 0;
}

/* ---- fork ---- */

void process_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void process_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void process_fork_child(void)
{
	struct process *p = process_current();

	trace_fork_child();
	fault_fork_child();
	access_fork_child();
	drive_fork_child();
	adaptive_spin_fork_child();
	wakeup_fifo_fork_child();
	/* The memory stays, because other threads of the parent may have been in the middle of
	 * it. */
	if (p)
		fabric_client_forget(p->fabric);
	references = 0;
	atomic_store(&current, NULL);
	/* The lock's owner was a thread of the parent. */
	lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}
