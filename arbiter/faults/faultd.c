// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See faultd.h. There are two threads: one receives, evaluates and sends; the other answers the
 * status socket (base/status_socket.h), and may be kept waiting by a slow client. A lock is between
 * them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "arbiter/faults/faultd.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only so */

#include "arbiter/faults/faults.h"
#include "arbiter/status_json.h"
#include "base/ip.h"
#include "base/log.h"
#include "base/netns.h"
#include "base/status_socket.h"
#include "base/time.h"
#include "maps/meta_abi.h"

#define RCVBUF (4 << 20)
/*
 * packets in one turn: a sender that floods the port must not keep the service from everything else
 */
#define BATCH 1024

struct bl_faultd {
	const struct bl_fp_file *file;
	struct bl_faults *f;
	pthread_mutex_t lock;  /* protects @f */
	struct bl_iso_net net; /* as @f has it */
	uint16_t *rack_of;     /* [net.endpoints] of @net */
	uint8_t (*addr)[16];   /* [net.endpoints] of @f */
	int sock;              /* UDP; -1: not open */
	int end_fd;            /* eventfd that wakes bl_faultd_run() */
	struct bl_status_socket *status;
	atomic_bool stop;
};

static const char *const kind_names[] = {
#define X(sym, name) [BL_ISO_##sym] = name,
	BL_ISO_KINDS(X)
#undef X
};
static const char *const state_names[] = {
#define X(sym, name) [BL_FAULTS_##sym] = name,
	BL_FAULTS_STATES(X)
#undef X
};

/* ---- JSON ---- */

static const char *path_name(const struct bl_faultd *d, uint32_t path, char *buf, size_t size)
{
	if (path < d->file->npath_names)
		return d->file->path_name[path];
	snprintf(buf, size, "path %u", path);
	return buf;
}

/* Describes component @c, for example "rack 1 -> path 0 (up)". */
static void part_words(const struct bl_faultd *d, uint32_t c, char *buf, size_t size)
{
	uint32_t who, path;
	enum bl_iso_kind kind = bl_iso_what(&d->net, c, &who, &path);
	char p[16];

	switch (kind) {
	case BL_ISO_HOST_UP:
		snprintf(buf, size, "%s -> rack %u (host)", d->file->peer[who].name,
			 d->file->peer[who].rack);
		break;
	case BL_ISO_HOST_DOWN:
		snprintf(buf, size, "rack %u -> %s (host)", d->file->peer[who].rack,
			 d->file->peer[who].name);
		break;
	case BL_ISO_UP:
		snprintf(buf, size, "rack %u -> %s (up)", who, path_name(d, path, p, sizeof(p)));
		break;
	case BL_ISO_DOWN:
		snprintf(buf, size, "%s -> rack %u (down)", path_name(d, path, p, sizeof(p)), who);
		break;
	case BL_ISO_RACK:
		snprintf(buf, size, "rack %u's switch", who);
		break;
	default:
		snprintf(buf, size, "%s's switch", path_name(d, path, p, sizeof(p)));
	}
}

static json_t *part_json(const struct bl_faultd *d, uint32_t c, uint64_t now)
{
	const struct bl_faults_part *p = bl_faults_part(d->f, c);
	uint64_t retry_ms = p->state == BL_FAULTS_BROKEN && p->until_ns > now
				    ? (p->until_ns - now) / 1000000
				    : 0;
	uint32_t who, path;
	enum bl_iso_kind kind = bl_iso_what(&d->net, c, &who, &path);
	json_t *o = json_object();
	char text[96];

	part_words(d, c, text, sizeof(text));
	json_object_set_new(o, "link", arb_json_text(text));
	json_object_set_new(o, "kind", json_string(kind_names[kind]));
	json_object_set_new(o, "state", json_string(state_names[p->state]));
	if (kind == BL_ISO_HOST_UP || kind == BL_ISO_HOST_DOWN)
		json_object_set_new(o, "host", arb_json_text(d->file->peer[who].name));
	else if (kind != BL_ISO_PATH)
		json_object_set_new(o, "rack", arb_json_number(who));
	if (kind == BL_ISO_UP || kind == BL_ISO_DOWN || kind == BL_ISO_PATH)
		json_object_set_new(o, "path", arb_json_number(path));
	json_object_set_new(o, "since_ms", arb_json_number((now - p->since_ns) / 1000000));
	json_object_set_new(o, "retry_ms", arb_json_number(retry_ms));
	json_object_set_new(o, "one_of", arb_json_number(p->one_of));
	json_object_set_new(o, "times", arb_json_number(p->times));
	json_object_set_new(o, "sent", arb_json_number(p->sent));
	json_object_set_new(o, "lost", arb_json_number(p->lost));
	return o;
}

static json_t *arbiter_json(const struct bl_faultd *d, uint32_t i)
{
	int64_t has = bl_faults_has(d->f, i);
	char addr[INET6_ADDRSTRLEN];

	return json_pack("{s:s, s:b, s:I}", "addr", bl_fp_addr_text(d->file->arbiter[i], addr),
			 "answered", has >= 0, "version", (json_int_t)(has < 0 ? 0 : has));
}

static json_t *host_json(const struct bl_faultd *d, uint32_t i, uint64_t now)
{
	uint64_t heard_ns = bl_faults_heard_ns(d->f, i);

	return json_pack("{s:o, s:i, s:b, s:o}", "host", arb_json_text(d->file->peer[i].name),
			 "rack", (int)d->file->peer[i].rack, "reports", heard_ns != 0, "silent_ms",
			 arb_json_number(heard_ns ? (now - heard_ns) / 1000000 : 0));
}

char *bl_faultd_text(struct bl_faultd *d)
{
	json_t *o = json_object(), *links = json_array(), *arbiters = json_array(),
	       *hosts = json_array();
	uint64_t now = bl_mono_ns();
	char addr[INET6_ADDRSTRLEN];
	struct bl_faults_total t;
	size_t len;
	uint32_t i;

	pthread_mutex_lock(&d->lock);
	bl_faults_read(d->f, &t);
	json_object_set_new(o, "pid", json_integer(getpid()));
	json_object_set_new(o, "addr", json_string(bl_fp_addr_text(d->file->faults, addr)));
	json_object_set_new(o, "version", arb_json_number(t.version));
	json_object_set_new(o, "avoided", arb_json_number(t.avoided));
	json_object_set_new(o, "pairs", arb_json_number(t.pairs));
	json_object_set_new(o, "unwatched", arb_json_number(t.unwatched));
	json_object_set_new(o, "unexplained", arb_json_number(t.unexplained));
	json_object_set_new(o, "evaluations", arb_json_number(t.evaluations));
	json_object_set_new(o, "boots", arb_json_number(t.boots));
	json_object_set_new(o, "sent", arb_json_number(t.sent));
	json_object_set_new(o, "packets", arb_json_reasons(t.packets));
	for (i = 0; i < bl_iso_components(&d->net); i++)
		if (bl_faults_part(d->f, i)->state != BL_FAULTS_GOOD)
			json_array_append_new(links, part_json(d, i, now));
	for (i = 0; i < d->file->narbiters; i++)
		json_array_append_new(arbiters, arbiter_json(d, i));
	for (i = 0; i < d->net.endpoints; i++)
		json_array_append_new(hosts, host_json(d, i, now));
	pthread_mutex_unlock(&d->lock);
	json_object_set_new(o, "links", links);
	json_object_set_new(o, "arbiters", arbiters);
	json_object_set_new(o, "hosts", hosts);
	return arb_json_line(o, &len);
}

/* ---- the status socket ---- */

static char *status_reply(void *ctx, char *said, size_t *len)
{
	struct bl_faultd *d = ctx;
	char *text;

	if (!strcmp(said, "clear\n")) {
		pthread_mutex_lock(&d->lock);
		bl_faults_clear(d->f, bl_mono_ns());
		pthread_mutex_unlock(&d->lock);
		bl_log(BL_LOG_INFO, "all links count as good again, as a client of the status "
				    "socket asked");
	} else if (*said) {
		bl_log(BL_LOG_WARN,
		       "fault isolation: unknown request \"%.40s\" on the status socket; the only "
		       "one is \"clear\"",
		       said);
	}
	text = bl_faultd_text(d);
	*len = text ? strlen(text) : 0;
	return text;
}

/* ---- hosts and arbiters ---- */

static void sa_get(const struct sockaddr_storage *s, uint8_t addr[16])
{
	memset(addr, 0, 16);
	if (s->ss_family == AF_INET) {
		addr[10] = addr[11] = 0xff;
		memcpy(addr + 12, &((const struct sockaddr_in *)(const void *)s)->sin_addr, 4);
	} else if (s->ss_family == AF_INET6) {
		memcpy(addr, &((const struct sockaddr_in6 *)(const void *)s)->sin6_addr, 16);
	}
}

static void receive_packets(struct bl_faultd *d)
{
	/* 8 bytes more than the longest packet, so that a longer one is recognized as such */
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX + 8];
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	unsigned int left = BATCH;
	uint8_t from[16];
	ssize_t n;

	while (left-- && (n = recvfrom(d->sock, buf, sizeof(buf), MSG_DONTWAIT,
				       (struct sockaddr *)&sa, &len)) >= 0) {
		sa_get(&sa, from);
		pthread_mutex_lock(&d->lock);
		bl_faults_rx(d->f, from, buf, (uint32_t)n, bl_mono_ns());
		pthread_mutex_unlock(&d->lock);
		len = sizeof(sa);
	}
}

static void log_changes(const struct bl_faultd *d)
{
	char text[96];
	uint32_t i;

	for (i = 0; i < bl_iso_components(&d->net); i++) {
		const struct bl_faults_part *p = bl_faults_part(d->f, i);

		if (p->state != BL_FAULTS_BROKEN && p->state != BL_FAULTS_TRIAL)
			continue;
		part_words(d, i, text, sizeof(text));
		if (p->state == BL_FAULTS_BROKEN)
			bl_log(BL_LOG_WARN, "%s is avoided: %llu of %llu frames lost%s", text,
			       (unsigned long long)p->lost, (unsigned long long)p->sent,
			       p->one_of > 1 ? "; others may be to blame as well" : "");
		else
			bl_log(BL_LOG_INFO, "%s is tried again", text);
	}
}

static void send_lists(struct bl_faultd *d)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	struct sockaddr_storage sa;
	unsigned int i;
	socklen_t salen;
	uint32_t len;

	while ((len = bl_faults_tx(d->f, bl_mono_ns(), buf, &i))) {
		salen = bl_ip_sockaddr(&sa, d->file->arbiter[i], BL_FCP_PORT);
		/* if it is lost it is repeated */
		sendto(d->sock, buf, len, MSG_DONTWAIT, (struct sockaddr *)&sa, salen);
	}
}

int bl_faultd_run(struct bl_faultd *d, struct bl_err *err)
{
	struct pollfd p[2] = { { .fd = d->sock, .events = POLLIN },
			       { .fd = d->end_fd, .events = POLLIN } };
	char path[128];
	int rc;

	/* if a second service ran, it would have failed to bind the UDP port before */
	snprintf(path, sizeof(path), BL_RUN_DIR BL_FAULTD_STATUS,
		 (unsigned long long)bl_netns_ino());
	rc = d->status ? 0 : bl_status_socket_open(&d->status, path, status_reply, d, err);

	while (!rc && !atomic_load_explicit(&d->stop, memory_order_relaxed)) {
		uint64_t now, next;
		struct timespec ts = { 0 };
		bool changed;

		receive_packets(d);
		pthread_mutex_lock(&d->lock);
		now = bl_mono_ns();
		next = bl_faults_tick(d->f, now, &changed);
		if (changed)
			log_changes(d);
		send_lists(d);
		pthread_mutex_unlock(&d->lock);
		ts.tv_nsec = next > now ? (long)bl_min64(next - now, 50000000) : 0;
		if (ppoll(p, 2, &ts, NULL) < 0 && errno != EINTR)
			rc = bl_fail(err, errno, "poll: %s", strerror(errno));
	}
	return rc;
}

void bl_faultd_stop(struct bl_faultd *d)
{
	uint64_t one = 1;

	atomic_store_explicit(&d->stop, true, memory_order_relaxed);
	if (write(d->end_fd, &one, sizeof(one)) < 0)
		return; /* the eventfd is full: the service wakes up anyway */
}

void bl_faultd_free(struct bl_faultd *d)
{
	if (!d)
		return;
	bl_status_socket_close(d->status);
	if (d->sock >= 0)
		close(d->sock);
	if (d->end_fd >= 0)
		close(d->end_fd);
	bl_faults_free(d->f);
	pthread_mutex_destroy(&d->lock);
	free(d->rack_of);
	free(d->addr);
	free(d);
}

static int udp_open(struct bl_faultd *d, struct bl_err *err)
{
	struct sockaddr_storage sa;
	socklen_t len = bl_ip_sockaddr(&sa, d->file->faults, BL_FCP_FAULTS_PORT);
	char text[INET6_ADDRSTRLEN];
	int size = RCVBUF;

	d->sock = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (d->sock < 0)
		return bl_fail(err, errno, "cannot make a UDP socket: %s", strerror(errno));
	setsockopt(d->sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(d->sock, (struct sockaddr *)&sa, len))
		return bl_fail(err, errno, "cannot listen on %s port %d: %s",
			       bl_fp_addr_text(d->file->faults, text), BL_FCP_FAULTS_PORT,
			       strerror(errno));
	return 0;
}

int bl_faultd_new(struct bl_faultd **out, const struct bl_fp_file *file, struct bl_err *err)
{
	struct bl_faultd *d;
	struct bl_faults_cfg c = { .narbiters = file->narbiters,
				   .arbiter = file->arbiter,
				   .report_ns = file->fault_report_us * 1000ULL,
				   .hold_ns = file->fault_hold_ms * 1000000ULL,
				   .table = bl_fp_table(file) };
	uint32_t i;
	int rc = 0;

	*out = NULL;
	if (!file->has_faults)
		return bl_fail(err, EINVAL,
			       "the file says nothing about fault isolation; give it \"faults: "
			       "ADDRESS\", an address of this machine");
	d = calloc(1, sizeof(*d));
	if (!d)
		return bl_fail(err, ENOMEM, "out of memory");
	d->file = file;
	d->sock = -1;
	pthread_mutex_init(&d->lock, NULL);
	d->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->rack_of = calloc(file->npeers, sizeof(*d->rack_of));
	d->addr = calloc(file->npeers, sizeof(*d->addr));
	if (d->end_fd < 0 || !d->rack_of || !d->addr)
		rc = bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; !rc && i < file->npeers; i++) {
		d->rack_of[i] = file->peer[i].rack;
		memcpy(d->addr[i], file->peer[i].addr, 16);
	}
	d->net = c.net = (struct bl_iso_net){ .endpoints = file->npeers,
					      .racks = file->nracks,
					      .paths = bl_fp_ways(file),
					      .rack_of = d->rack_of,
					      .pod_of = file->pod_of };
	c.addr = (const uint8_t(*)[16])d->addr;
	memcpy(c.secret, file->secret, sizeof(c.secret));
	bl_fault_rules_set(&c.rules, c.report_ns, file->fault_settle_us * 1000ULL,
			   file->fault_frames, file->fault_percent);
	if (!rc)
		rc = udp_open(d, err);
	if (!rc) {
		d->f = bl_faults_new(&c, bl_clock_ns(CLOCK_TAI));
		rc = d->f ? 0 : bl_fail(err, ENOMEM, "out of memory");
	}
	if (rc)
		bl_faultd_free(d);
	else
		*out = d;
	return rc;
}
