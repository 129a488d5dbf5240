/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the daemon's side of the socket at which processes become endpoints (loader/order/
 * endpoint_attach.c, endpoint_again.c, endpoint.c, forward.c). The input is a list of operations:
 * connections, requests in the form of the protocol with fields from the input, plain bytes, ends
 * of connections in any order, and a daemon that is replaced.
 *
 * Sockets are real; maps and the event loop are the harness's. It checks that each request has one
 * answer of the right size with the descriptors that belong to it, that no two endpoints have one
 * slot, port or page, that a slot that is free has neither ring nor page, that a frame to be
 * forwarded is one that may be, and that nothing stays open. Steps of a request may fail.
 *
 * What a process writes into the pages is not covered.
 */
#include "fuzz.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

#include "base/iface.h"
#include "core/clock_core.h"
#include "loader/node_priv.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_again.h"
#include "loader/order/endpoint_attach.h"
#include "loader/load/pin.h"
#include "loader/order/events.h"
#include "loader/order/note.h"
#include "loader/order/slot_map.h"
#include "maps/failure_abi.h"
#include "maps/forward_abi.h"
#include "maps/note_abi.h"
#include "maps/reliable_abi.h"
#include "proto/forward_msg.h"

#define CONNS   80
#define SOURCES 256

/* ---- maps: one memfd for each page, and the entries of endpoints ---- */

static struct bl_ep_slot eps[BL_PORT_COUNT];
static int eps_fd, rings_fd, pages_fd, cfg_fd;
/* What the maps of maps have, as a descriptor; -1: nothing. Outlives the daemon. */
static int held[2][BL_EPS_MAX];
static uint32_t opened_id;   /* of the map whose pin was opened last: its slot + 1 */
static unsigned int fail_in; /* the step that fails; 0: none */

enum { PAGE, HINTS, FAILURES, PAGES };

static struct {
	int fd;
	size_t size;
	void *at;
} pages[PAGES];

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, uint64_t flags);
int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value);
int __wrap_bpf_map_delete_elem(int fd, const void *key);
int __wrap_bpf_map_create(int type, const char *name, uint32_t key_size, uint32_t value_size,
			  uint32_t max, const struct bpf_map_create_opts *opts);
int __wrap_bpf_map_get_fd_by_id(uint32_t id);
int __wrap_bpf_obj_get_info_by_fd(int fd, void *info, uint32_t *len);
int __wrap_bl_pin_over(int fd, const char *path, struct bl_err *err);
int __wrap_bl_note(int fd, struct bl_note_arg *a);
int __wrap_bpf_obj_get(const char *path);
int __wrap_bl_iface_get(struct bl_iface *i, const char *name, struct bl_err *err);
int __wrap_bl_iface_addr(const char *name, int family, uint8_t addr[16], struct bl_err *err);
int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_listen(int fd, int n);
int __wrap_chmod(const char *path, mode_t mode);
int __wrap_chown(const char *path, uid_t uid, gid_t gid);
int __wrap_unlink(const char *path);
int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __wrap_sd_event_add_io(sd_event *ev, sd_event_source **src, int fd, uint32_t events,
			   sd_event_io_handler_t fn, void *ctx);
int __wrap_sd_event_add_time_relative(sd_event *ev, sd_event_source **src, clockid_t clock,
				      uint64_t usec, uint64_t accuracy, sd_event_time_handler_t fn,
				      void *ctx);
int __wrap_sd_event_source_set_enabled(sd_event_source *src, int on);
sd_event_source *__wrap_sd_event_source_disable_unref(sd_event_source *src);
void __wrap_bl_log(int level, const char *fmt, ...);

/* Whether this step fails. */
static bool fails(void)
{
	if (!fail_in || --fail_in)
		return false;
	errno = ENOMEM;
	return true;
}

static int page(size_t size)
{
	int fd = memfd_create("page", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, (off_t)size));
	return fd;
}

static int *held_at(int fd, uint32_t slot)
{
	if (fd != rings_fd && fd != pages_fd)
		return NULL;
	FUZZ_CHECK(slot < BL_EPS_MAX);
	return &held[fd == pages_fd ? BL_SLOT_PAGE : BL_SLOT_RING][slot];
}

static void let_go(int *at)
{
	if (*at >= 0)
		close(*at);
	*at = -1;
}

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, uint64_t flags)
{
	uint32_t k;
	int *at, inner;

	(void)flags;
	if (fails())
		return -1;
	memcpy(&k, key, sizeof(k));
	at = held_at(fd, k);
	if (at) {
		memcpy(&inner, value, sizeof(inner));
		let_go(at);
		*at = fcntl(inner, F_DUPFD_CLOEXEC, 3);
		FUZZ_CHECK(*at >= 0);
	}
	if (fd == eps_fd) {
		FUZZ_CHECK(k < BL_PORT_COUNT);
		memcpy(&eps[k], value, sizeof(eps[k]));
	}
	return 0;
}

int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	uint32_t k, id;
	int *at;

	memcpy(&k, key, sizeof(k));
	at = held_at(fd, k);
	if (at) {
		id = k + 1;
		memcpy(value, &id, sizeof(id));
		errno = ENOENT;
		return *at < 0 ? -1 : 0;
	}
	if (fd == pages[PAGE].fd) {
		FUZZ_CHECK(!k);
		memcpy(value, pages[PAGE].at, sizeof(struct bl_host_page));
		return 0;
	}
	FUZZ_CHECK(fd == eps_fd && k < BL_PORT_COUNT);
	memcpy(value, &eps[k], sizeof(eps[k]));
	return 0;
}

int __wrap_bpf_map_delete_elem(int fd, const void *key)
{
	uint32_t k;
	int *at;

	memcpy(&k, key, sizeof(k));
	at = held_at(fd, k);
	FUZZ_CHECK(at);
	let_go(at);
	return 0;
}

/* A ring, the page of an endpoint, or what the daemon waits for programs with. */
int __wrap_bpf_map_create(int type, const char *name, uint32_t key_size, uint32_t value_size,
			  uint32_t max, const struct bpf_map_create_opts *opts)
{
	(void)name, (void)key_size;
	if (fails())
		return -1;
	if (type == BPF_MAP_TYPE_ARRAY && value_size == sizeof(struct bl_ep_page)) {
		FUZZ_CHECK(max == 1 && opts->map_flags & BPF_F_MMAPABLE);
		return page(value_size);
	}
	if (type == BPF_MAP_TYPE_RINGBUF)
		FUZZ_CHECK(max >= BL_RING_BYTES_MIN && max <= BL_RING_BYTES_MAX &&
			   !(max & (max - 1)));
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* Pins of rings and pages have the names of slot_map.c. */
int __wrap_bpf_obj_get(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned int slot;
	int what;

	if (name &&
	    (sscanf(name, "/page-%u", &slot) == 1 || sscanf(name, "/ring-%u", &slot) == 1)) {
		what = name[1] == 'p' ? BL_SLOT_PAGE : BL_SLOT_RING;
		FUZZ_CHECK(slot < BL_EPS_MAX && held[what][slot] >= 0);
		opened_id = slot + 1;
		return fcntl(held[what][slot], F_DUPFD_CLOEXEC, 3);
	}
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

int __wrap_bpf_map_get_fd_by_id(uint32_t id)
{
	(void)id;
	FUZZ_CHECK(false); /* the pin is there */
	return -1;
}

int __wrap_bpf_obj_get_info_by_fd(int fd, void *info, uint32_t *len)
{
	(void)fd;
	FUZZ_CHECK(*len == sizeof(struct bpf_map_info));
	((struct bpf_map_info *)info)->id = opened_id;
	return 0;
}

int __wrap_bl_pin_over(int fd, const char *path, struct bl_err *err)
{
	(void)fd, (void)path, (void)err;
	return fails() ? -ENOMEM : 0;
}

/* As bpf/note.bpf.c. */
int __wrap_bl_note(int fd, struct bl_note_arg *a)
{
	struct bl_host_page *p = pages[PAGE].at;

	(void)fd;
	switch (a->kind) {
	case BL_NOTE_EPS:
		FUZZ_CHECK(a->lines <= BL_EPS_MAX && a->lines >= p->eps_lines);
		FUZZ_CHECK(a->active <= a->lines);
		p->eps_lines = a->lines;
		p->eps_active = a->active;
		return 0;
	case BL_NOTE_WORD:
		FUZZ_CHECK(a->slot < BL_EPS_MAX);
		p->word[a->slot] = a->word;
		return 0;
	default:
		FUZZ_CHECK(false);
		return -EINVAL;
	}
}

int __wrap_bl_iface_get(struct bl_iface *i, const char *name, struct bl_err *err)
{
	(void)err;
	memset(i, 0, sizeof(*i));
	snprintf(i->name, sizeof(i->name), "%s", name);
	i->ifindex = 2;
	i->mtu = 1500;
	return 0;
}

int __wrap_bl_iface_addr(const char *name, int family, uint8_t addr[16], struct bl_err *err)
{
	(void)name;
	memset(addr, 0, 16);
	addr[0] = 0xfd;
	return family == AF_INET ? bl_fail(err, EADDRNOTAVAIL, "no IPv4 address") : 0;
}

/*
 * ---- pages: mapped once, because the daemon maps and unmaps them for each word ----
 */

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
int __wrap_munmap(void *at, size_t len);
int __real_munmap(void *at, size_t len);

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	int i;

	for (i = 0; i < PAGES; i++)
		if (pages[i].at && pages[i].fd == fd) {
			FUZZ_CHECK((size_t)off + len <= pages[i].size);
			return (char *)pages[i].at + off;
		}
	return __real_mmap(at, len, prot, flags, fd, off);
}

int __wrap_munmap(void *at, size_t len)
{
	int i;

	for (i = 0; i < PAGES; i++)
		if ((char *)at >= (char *)pages[i].at &&
		    (char *)at < (char *)pages[i].at + pages[i].size)
			return 0;
	return __real_munmap(at, len);
}

static void open_pages(void)
{
	static const size_t sizes[PAGES] = { [PAGE] = sizeof(struct bl_host_page),
					     [HINTS] = sizeof(struct bl_hints),
					     [FAILURES] = sizeof(struct bl_failures) };
	int i;

	for (i = 0; i < PAGES; i++) {
		size_t size = (sizes[i] + 4095) & ~4095UL;

		pages[i].size = size;
		pages[i].fd = page(size);
		pages[i].at =
			__real_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, pages[i].fd, 0);
		FUZZ_CHECK(pages[i].at != MAP_FAILED);
	}
}

/* ---- sockets and sources of events ---- */

static int next_conn; /* what accept4() returns next */

int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	(void)fd, (void)sa, (void)len;
	return 0;
}

int __wrap_listen(int fd, int n)
{
	(void)fd, (void)n;
	return 0;
}

int __wrap_chmod(const char *path, mode_t mode)
{
	(void)path, (void)mode;
	return 0;
}

int __wrap_chown(const char *path, uid_t uid, gid_t gid)
{
	(void)path, (void)uid, (void)gid;
	return 0;
}

int __wrap_unlink(const char *path)
{
	(void)path;
	return 0;
}

int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	(void)fd, (void)sa, (void)len, (void)flags;
	return next_conn;
}

static struct source {
	bool used, on;
	int fd;
	sd_event_io_handler_t io;
	sd_event_time_handler_t time;
	void *ctx;
} sources[SOURCES];

static struct source *new_source(sd_event_source **src)
{
	unsigned int i;

	for (i = 0; i < SOURCES && sources[i].used; i++)
		;
	FUZZ_CHECK(i < SOURCES);
	sources[i] = (struct source){ .used = true, .on = true, .fd = -1 };
	*src = (sd_event_source *)&sources[i];
	return &sources[i];
}

int __wrap_sd_event_add_io(sd_event *ev, sd_event_source **src, int fd, uint32_t events,
			   sd_event_io_handler_t fn, void *ctx)
{
	struct source *s = new_source(src);

	(void)ev, (void)events;
	s->fd = fd;
	s->io = fn;
	s->ctx = ctx;
	return 0;
}

int __wrap_sd_event_add_time_relative(sd_event *ev, sd_event_source **src, clockid_t clock,
				      uint64_t usec, uint64_t accuracy, sd_event_time_handler_t fn,
				      void *ctx)
{
	struct source *s = new_source(src);

	(void)ev, (void)clock, (void)usec, (void)accuracy;
	s->time = fn;
	s->ctx = ctx;
	return 0;
}

int __wrap_sd_event_source_set_enabled(sd_event_source *src, int on)
{
	((struct source *)src)->on = on != SD_EVENT_OFF;
	return 0;
}

sd_event_source *__wrap_sd_event_source_disable_unref(sd_event_source *src)
{
	if (src) {
		FUZZ_CHECK(((struct source *)src)->used);
		((struct source *)src)->used = false;
	}
	return NULL;
}

void __wrap_bl_log(int level, const char *fmt, ...)
{
	(void)level, (void)fmt;
}

/* ---- the daemon and its processes ---- */

static struct bl_node node;
static struct bl_server server;
static struct bl_attached attached;
static struct bl_clock shared_clock;
static int ours[CONNS], theirs[CONNS]; /* the two ends of each connection; -1: none */

/* The daemon's end has something to read, or the other end is closed. */
static void readable(int fd)
{
	unsigned int i;

	for (i = 0; i < SOURCES; i++) {
		struct source s = sources[i];

		if (s.used && s.on && s.io && s.fd == fd) {
			s.io((sd_event_source *)&sources[i], fd, EPOLLIN, s.ctx);
			return;
		}
	}
}

static void on_changed(struct bl_node *n)
{
	(void)n;
}

static void on_gone(struct bl_node *n, const struct bl_ep_slot *ep, uint8_t why, uint64_t t)
{
	(void)n, (void)why;
	FUZZ_CHECK(ep->port >= BL_PORT_BASE && t);
}

static void on_forward(struct bl_node *n, const struct bl_forward *f)
{
	(void)n;
	FUZZ_CHECK(bl_forward_fits(f) && !bl_op_answer(bl_forward_op(f)));
	FUZZ_CHECK(f->sport >= BL_PORT_BASE && f->sport < BL_PORT_BASE + BL_PORT_COUNT);
}

static const struct bl_node_events events = { on_changed, on_gone, on_forward };

static void give_pages(void)
{
	node.hints_fd = pages[HINTS].fd;
	node.page_fd = pages[PAGE].fd;
	node.failures_fd = pages[FAILURES].fd;
}

/* Replaces the daemon. Maps and pages outlive it. */
static void restart(bool controllers)
{
	struct bl_err err;

	if (node.listen_fd >= 0)
		bl_endpoints_close(&node);
	memset(&node, 0, sizeof(node));
	node.srv = &server;
	node.att = &attached;
	node.natt = 1;
	node.events = &events;
	node.cfg.ctl.n = controllers;
	node.clock.shared = &shared_clock;
	node.host_cfg.port_base = BL_PORT_BASE;
	node.host_cfg.port_count = BL_PORT_COUNT;
	node.eps_fd = eps_fd;
	node.rings_fd = rings_fd;
	node.pages_fd = pages_fd;
	node.cfg.user_endpoints = node.cfg.user_ring_mib = -1;
	node.host_cfg_fd = cfg_fd;
	give_pages();
	FUZZ_CHECK(!bl_endpoints_open(&node, &err));
	bl_endpoints_adopted(&node);
}

static void check_endpoints(void)
{
	unsigned int i, k;

	for (i = 0; i < BL_EPS_MAX; i++) {
		const struct bl_ep *ep = &node.ep[i];

		if (!ep->used) {
			FUZZ_CHECK(held[BL_SLOT_RING][i] < 0 && held[BL_SLOT_PAGE][i] < 0);
			FUZZ_CHECK(!ep->page);
			continue;
		}
		FUZZ_CHECK(ep->page && ep->page_fd >= 0 && held[BL_SLOT_PAGE][i] >= 0);
		FUZZ_CHECK(ep->slot == i && ep->info.slot == i);
		FUZZ_CHECK(ep->info.port >= BL_PORT_BASE &&
			   ep->info.port < BL_PORT_BASE + BL_PORT_COUNT);
		for (k = 0; k < i; k++)
			FUZZ_CHECK(!node.ep[k].used || (node.ep[k].info.port != ep->info.port &&
							node.ep[k].page_fd != ep->page_fd &&
							node.ep[k].page != ep->page));
	}
}

static void new_conn(unsigned int i)
{
	int fd[2];

	if (theirs[i] >= 0)
		return;
	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd));
	theirs[i] = fd[0];
	ours[i] = next_conn = fd[1];
	readable(node.listen_fd);
}

/* Takes the answers that have come, and closes what came with them. */
static unsigned int answers(unsigned int i, struct bl_attach_rep *rep, size_t *size)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * 16)];
		struct cmsghdr align;
	} u;
	struct iovec iov = { rep, sizeof(*rep) };
	unsigned int n = 0, k;
	struct cmsghdr *c;
	ssize_t got;
	int fds[16];

	for (;;) {
		struct msghdr m = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = u.buf,
				    .msg_controllen = sizeof(u.buf) };
		size_t nfds = 0;

		got = recvmsg(theirs[i], &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (got <= 0)
			return n;
		n++;
		*size = (size_t)got;
		c = CMSG_FIRSTHDR(&m);
		if (c) {
			nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(fds, CMSG_DATA(c), nfds * sizeof(int));
		}
		for (k = 0; k < nfds; k++)
			close(fds[k]);
		if (got == sizeof(*rep)) {
			FUZZ_CHECK(rep->magic == BL_SOCK_MAGIC && rep->error >= 0);
			FUZZ_CHECK(memchr(rep->message, 0, sizeof(rep->message)));
			FUZZ_CHECK(!rep->error == !*rep->message);
			FUZZ_CHECK(rep->error ? !nfds : nfds == BL_FD_COUNT || nfds == 1);
		} else {
			FUZZ_CHECK(got == sizeof(struct bl_again_rep) || got == 1);
		}
	}
}

static void say(unsigned int i, const void *p, size_t n)
{
	struct bl_attach_rep rep;
	size_t size;

	if (theirs[i] < 0 || send(theirs[i], p, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	readable(ours[i]);
	FUZZ_CHECK(answers(i, &rep, &size) <= 1);
}

static void hang_up(unsigned int i)
{
	if (theirs[i] < 0)
		return;
	close(theirs[i]);
	theirs[i] = -1;
	readable(ours[i]);
	ours[i] = -1;
}

static void request(struct fuzz_in *in, unsigned int i)
{
	uint8_t how = fuzz_u8(in);
	struct bl_attach_req q = { .magic = how & 1 ? BL_SOCK_MAGIC : BL_SOCK_HINTS,
				   .abi_version = BL_ABI_VERSION,
				   .ring_bytes = 1u << (fuzz_u8(in) & 31) };

	if ((how & 129) == 128)
		q.magic = BL_SOCK_CLOCK;
	if (how & 2)
		q.magic = BL_SOCK_MAGIC;
	if (how & 4)
		q.port = BL_PORT_BASE + fuzz_u8(in);
	if (how & 8)
		q.port = fuzz_u32(in);
	if (how & 16)
		q.ring_bytes = 0;
	if (how & 32)
		q.family = how & 64 ? AF_INET6 : fuzz_u8(in);
	if (how == 255)
		q.abi_version++;
	say(i, &q, sizeof(q));
}

static void again(struct fuzz_in *in, unsigned int i)
{
	uint8_t which = fuzz_u8(in);
	struct bl_again_req q = { .magic = BL_SOCK_AGAIN,
				  .abi_version = BL_ABI_VERSION,
				  .port = node.ep[which % BL_EPS_MAX].info.port,
				  .life = node.ep[which % BL_EPS_MAX].info.life };

	if (which & 64)
		q.life ^= fuzz_u8(in);
	if (which & 128)
		q.port = fuzz_u16(in);
	say(i, &q, sizeof(q));
}

static void forward(struct fuzz_in *in, unsigned int i)
{
	static struct bl_forward_msg m;
	uint16_t len = fuzz_u16(in) & 4095;
	uint8_t how = fuzz_u8(in);

	memset(&m, 0, sizeof(m));
	m.magic = BL_SOCK_FORWARD;
	m.port = fuzz_u8(in);
	len = len > BL_FORWARD_MAX ? BL_FORWARD_MAX : len;
	m.len = how & 128 ? fuzz_u16(in) : len;
	m.frame[offsetof(struct bl_hdr, opcode)] = BL_OPCODE_BYTE(how & 31);
	say(i, &m, offsetof(struct bl_forward_msg, frame) + len);
}

static void begin(bool controllers)
{
	unsigned int i;

	memset(eps, 0, sizeof(eps));
	memset(sources, 0, sizeof(sources));
	bl_clock_start(&shared_clock, 0, 1ULL << 60);
	for (i = 0; i < CONNS; i++)
		ours[i] = theirs[i] = -1;
	memset(held, 0xff, sizeof(held));
	fail_in = 0;
	memset(pages[HINTS].at, 0, pages[HINTS].size);
	memset(pages[PAGE].at, 0, pages[PAGE].size);
	memset(&node, 0, sizeof(node));
	node.listen_fd = -1;
	restart(controllers);
}

static void end(void)
{
	unsigned int i;

	for (i = 0; i < CONNS; i++)
		hang_up(i);
	bl_endpoints_close(&node);
	for (i = 0; i < SOURCES; i++)
		FUZZ_CHECK(!sources[i].used);
	for (i = 0; i < BL_EPS_MAX; i++) {
		let_go(&held[BL_SLOT_RING][i]);
		let_go(&held[BL_SLOT_PAGE][i]);
	}
}

static int lowest_free(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	FUZZ_CHECK(fd >= 0);
	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	int first;

	if (!eps_fd) {
		eps_fd = page(1);
		rings_fd = page(1);
		pages_fd = page(1);
		cfg_fd = page(1);
		open_pages();
	}
	first = lowest_free();
	begin(size && data[0] & 1);
	while (in.left) {
		uint8_t op = fuzz_u8(&in), i = fuzz_u8(&in) % CONNS;
		const uint8_t *bytes;
		size_t len;

		switch (op % 8) {
		case 0:
		case 1:
			new_conn(i);
			/* the step at which the request fails */
			fail_in = op & 128 ? op >> 3 & 15 : 0;
			request(&in, i);
			fail_in = 0;
			break;
		case 2:
			new_conn(i);
			break;
		case 3:
			len = op / 8;
			bytes = fuzz_take(&in, &len);
			new_conn(i);
			say(i, bytes, len);
			break;
		case 4:
			hang_up(i);
			break;
		case 5:
			forward(&in, i);
			break;
		case 6:
			new_conn(i);
			again(&in, i);
			break;
		default:
			if (op > 240) {
				unsigned int k;

				restart(i & 1);
				for (k = 0; k < CONNS; k++) /* the daemon's ends are closed */
					if (theirs[k] >= 0) {
						close(theirs[k]);
						theirs[k] = ours[k] = -1;
					}
			} else {
				request(&in, i);
			}
			break;
		}
		check_endpoints();
	}
	end();
	FUZZ_CHECK(lowest_free() == first);
	return 0;
}
