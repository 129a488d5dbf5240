/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes an arbiter from its sockets on: packets of endpoints, of other arbiters, of the fault
 * isolation service, and of strangers (arbiter/comm.c, peer.c, pipe.c, core/fastpass/). The input
 * is a list of operations: genuine packets of hosts and of another arbiter, repeated and damaged
 * ones, packets from the input, sealed as by somebody who knows the secret or not, and time.
 *
 * It checks that each packet ends in one counter, that answers go to endpoints and to the fault
 * isolation service only, that slots are given by a primary only, and that no more are given and
 * none waits than were asked for.
 *
 * The allocator is a simple one of the harness; tests/unit/arbiter/alloc/ has the others. The two
 * ends of FCP by themselves are in fuzz_fcp.c.
 */
#include "fuzz.h"

#include "arbiter/comm.h" /* <netinet/in.h> before <linux/ipv6.h> */

#include <fcntl.h>
#include <net/if.h>
#include <sys/random.h>

#include "arbiter/arb.h"
#include "arbiter/pipe.h"
#include "arbiter/server.h"
#include "core/fastpass/fcp_host_core.h"

#define HOSTS    4
#define WAITING  32 /* packets that the sockets hold */
#define STRANGER HOSTS
#define FAULTS   (HOSTS + 1)

static struct bl_arb *arb;
static uint64_t now_ns;

/* ---- the network ---- */

static struct packet {
	int fd; /* of the arbiter's socket; -1: free */
	struct in6_addr from;
	uint32_t len;
	_Alignas(8) uint8_t p[BL_FCP_PACKET_MAX + 8];
} waiting[WAITING], kept[8];
static unsigned int nkept;
static uint64_t received, of_faults; /* packets on the sockets for requests */

int __wrap_arb_udp_open(const struct in6_addr *ip, uint16_t port, const char *group_if,
			struct bl_err *err);
int __wrap_arb_group_join(int fd, const struct in6_addr *group, const char *ifname,
			  struct bl_err *err);
int __wrap_arb_receive(struct arb_packets *in, int fd);
int __wrap_sendmmsg(int fd, struct mmsghdr *v, unsigned int n, int flags);
ssize_t __wrap_sendto(int fd, const void *p, size_t len, int flags, const struct sockaddr *to,
		      socklen_t tolen);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned int flags);
unsigned int __wrap_if_nametoindex(const char *name);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
void __wrap_bl_log(int level, const char *fmt, ...);

int __wrap_arb_udp_open(const struct in6_addr *ip, uint16_t port, const char *group_if,
			struct bl_err *err)
{
	(void)ip, (void)port, (void)group_if, (void)err;
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

int __wrap_arb_group_join(int fd, const struct in6_addr *group, const char *ifname,
			  struct bl_err *err)
{
	(void)fd, (void)group, (void)ifname, (void)err;
	return 0;
}

int __wrap_arb_receive(struct arb_packets *in, int fd)
{
	int n = 0, i;

	for (i = 0; i < WAITING; i++) {
		struct packet *w = &waiting[i];

		if (w->fd != fd)
			continue;
		arb_sa_set(&in->addr[n], arb_addr_family(&w->from), &w->from, 12345, 0);
		memcpy(in->buf[n], w->p, w->len);
		/* What is behind the packet has to be of no importance. */
		memset(in->buf[n] + w->len, 0xa5, sizeof(in->buf[n]) - w->len);
		in->msg[n++].msg_len = w->len;
		w->fd = -1;
		if (fd != arb->wd_fd)
			received++;
	}
	return n ? n : -1;
}

static struct in6_addr addr_of(unsigned int i)
{
	struct in6_addr a = {
		.s6_addr = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t)(1 + i) }
	};

	return a;
}

static void to_host(unsigned int i, const uint8_t *p, uint32_t len);

int __wrap_sendmmsg(int fd, struct mmsghdr *v, unsigned int n, int flags)
{
	unsigned int i, k;

	(void)fd, (void)flags;
	for (i = 0; i < n; i++) {
		const struct iovec *iov = v[i].msg_hdr.msg_iov;
		struct arb_sa sa = { .len = v[i].msg_hdr.msg_namelen };
		const struct bl_fcp_hdr *h = iov->iov_base;
		struct in6_addr ip, want;
		uint16_t port;

		FUZZ_CHECK(v[i].msg_hdr.msg_iovlen == 1 && iov->iov_len >= sizeof(*h) &&
			   iov->iov_len <= BL_FCP_PACKET_MAX);
		memcpy(&sa.in6, v[i].msg_hdr.msg_name, sa.len);
		arb_sa_get(&sa, &ip, &port);
		for (k = 0; k <= FAULTS; k++) {
			want = addr_of(k);
			if (!memcmp(&ip, &want, sizeof(ip)))
				break;
		}
		FUZZ_CHECK(k < HOSTS || k == FAULTS);
		/*
		 * One that ends its rule in this turn may still send what it had put together:
		 * those slots have ended before another one gives any
		 * (core/fastpass/watchdog_core.h).
		 */
		if ((h->opcode & 15) == BL_FCP_ALLOC)
			FUZZ_CHECK(arb->wd.takeovers && k < HOSTS);
		if (k < HOSTS)
			to_host(k, iov->iov_base, (uint32_t)iov->iov_len);
	}
	return (int)n;
}

ssize_t __wrap_sendto(int fd, const void *p, size_t len, int flags, const struct sockaddr *to,
		      socklen_t tolen)
{
	(void)p, (void)flags, (void)to, (void)tolen;
	FUZZ_CHECK(fd == arb->wd_send && len <= BL_FCP_PACKET_MAX);
	return (ssize_t)len;
}

ssize_t __wrap_getrandom(void *p, size_t n, unsigned int flags)
{
	(void)flags;
	memset(p, 0x5a, n);
	return (ssize_t)n;
}

unsigned int __wrap_if_nametoindex(const char *name)
{
	(void)name;
	return 1;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	t->tv_sec = (time_t)(now_ns / 1000000000ULL);
	t->tv_nsec = (long)(now_ns % 1000000000ULL);
	return 0;
}

void __wrap_bl_log(int level, const char *fmt, ...)
{
	(void)level, (void)fmt;
}

/* ---- an allocator: each pair in turn, one slot at a time ---- */

static uint32_t demand[HOSTS][HOSTS];
static uint64_t demanded, granted;

static int alloc_demand(void *a, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t slot)
{
	(void)a, (void)slot;
	FUZZ_CHECK(src < HOSTS && dst < HOSTS && mtus);
	demand[src][dst] += mtus;
	demanded += mtus;
	return 0;
}

static void alloc_forget(void *a, uint32_t src)
{
	(void)a;
	FUZZ_CHECK(src < HOSTS);
	memset(demand[src], 0, sizeof(demand[src]));
}

static unsigned int alloc_run(void *a, uint64_t slot, struct arb_grant *out, unsigned int max)
{
	unsigned int n = 0;
	uint32_t s, d;

	(void)a;
	for (s = 0; s < HOSTS; s++)
		for (d = 0; d < HOSTS && n < max; d++)
			if (demand[s][d]) {
				demand[s][d]--;
				granted++;
				out[n++] = (struct arb_grant){ .base = slot,
							       .slots = 1,
							       .src = (uint16_t)s,
							       .dst = (uint16_t)d,
							       .path = BL_FCP_PATH_ANY };
				break;
			}
	return n;
}

static bool alloc_waiting(void *a)
{
	uint32_t s, d;

	(void)a;
	for (s = 0; s < HOSTS; s++)
		for (d = 0; d < HOSTS; d++)
			if (demand[s][d])
				return true;
	return false;
}

static const struct arb_alloc_ops aops = { .demand = alloc_demand,
					   .forget = alloc_forget,
					   .run = alloc_run,
					   .waiting = alloc_waiting,
					   .horizon_slots = 64,
					   .grants_max = 1024 };

/* ---- hosts, and another arbiter ---- */

static struct host {
	struct bl_fcp_host h;
	struct bl_fcp_pair pair[HOSTS];
	struct bl_fcp_sent sent[BL_FCP_WINDOW];
	uint16_t tell[HOSTS], look[HOSTS];
} hosts[HOSTS];
static struct bl_wd other;

static void to_host(unsigned int i, const uint8_t *p, uint32_t len)
{
	struct bl_fcp_pkt k;

	FUZZ_CHECK(bl_fcp_host_rx(&hosts[i].h, p, len, now_ns, &k) < BL_FCP_R_COUNT);
}

static void post(int fd, unsigned int from, const uint8_t *p, uint32_t len)
{
	unsigned int i;

	for (i = 0; i < WAITING && waiting[i].fd != -1; i++)
		;
	if (i == WAITING)
		return;
	waiting[i] = (struct packet){ .fd = fd, .from = addr_of(from), .len = len };
	memcpy(waiting[i].p, p, len);
	kept[nkept++ % 8] = waiting[i];
}

static void hosts_send(unsigned int i)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	uint32_t len;

	while ((len = bl_fcp_host_tx(&hosts[i].h, now_ns, buf)))
		post(arb->sock[0]->fd, i, buf, len);
}

/* ---- the life of an arbiter: opened once, and then restored ---- */

static struct {
	struct bl_arb *arb;
	struct arb_peer peer[HOSTS];
	uint8_t *mem;
	size_t size;
} fresh;

static struct bl_arb_endpoint endpoints[HOSTS];

static void open_arbiter(void)
{
	struct bl_arb_cfg cfg = {
		.endpoints = endpoints,
		.nendpoints = HOSTS,
		.group = { .s6_addr = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 7 } },
		.group_if = "lo",
		.rank = 1,
		.slot_ns = 1230,
		.faults = addr_of(FAULTS),
		.secret = { 1, 2 },
		.quota = 300,
		.clock = CLOCK_TAI
	};
	struct bl_err err = { .text = "" };
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		endpoints[i].addr = addr_of(i);
	now_ns = 1ULL << 40;
	FUZZ_CHECK(!bl_arb_new(&arb, &cfg, &aops, NULL, NULL, NULL, &err));
	FUZZ_CHECK(!bl_wd_init(&arb->wd, now_ns, arb->horizon_ns, 4));
	fresh.arb = aligned_alloc(64, (sizeof(*arb) + 63) & ~63UL);
	fresh.size = HOSTS * ((HOSTS * (sizeof(struct bl_fcp_pair) + 4) +
			       BL_FCP_WINDOW * sizeof(struct bl_fcp_sent) + 63) &
			      ~63UL);
	fresh.mem = malloc(fresh.size);
	FUZZ_CHECK(fresh.arb && fresh.mem);
	memcpy(fresh.arb, arb, sizeof(*arb));
	memcpy(fresh.peer, arb->peer, sizeof(fresh.peer));
	memcpy(fresh.mem, arb->mem, fresh.size);
}

static void begin(void)
{
	unsigned int i;

	if (!arb)
		open_arbiter();
	memcpy(arb, fresh.arb, sizeof(*arb));
	memcpy(arb->peer, fresh.peer, sizeof(fresh.peer));
	memcpy(arb->mem, fresh.mem, fresh.size);
	for (i = 0; i < arb->nsock; i++)
		arb->sock[i]->out.n = 0;
	now_ns = 1ULL << 40;
	for (i = 0; i < WAITING; i++)
		waiting[i].fd = -1;
	memset(kept, 0, sizeof(kept));
	nkept = 0;
	received = of_faults = demanded = granted = 0;
	memset(demand, 0, sizeof(demand));
	memset(hosts, 0, sizeof(hosts));
	for (i = 0; i < HOSTS; i++) {
		struct host *h = &hosts[i];

		h->h.p = arb->params;
		h->h.e = (struct bl_fcp_end){ .pair = h->pair,
					      .sent = h->sent,
					      .tell.item = h->tell,
					      .look.item = h->look,
					      .n = HOSTS };
		bl_fcp_host_init(&h->h, (uint16_t)i, 0xc0ffee + i);
	}
	other = (struct bl_wd){ .p = &arb->params,
				.rank = 0,
				.interval_ns = arb->wd.interval_ns,
				.dead_ns = arb->wd.dead_ns,
				.guard_ns = arb->wd.guard_ns };
	FUZZ_CHECK(!bl_wd_init(&other, now_ns, arb->horizon_ns, 4));
}

static void check(void)
{
	uint64_t counted = 0;
	uint32_t i, d;

	for (i = 0; i < BL_FCP_R_COUNT; i++)
		counted += arb->t.packets[i] + arb->t.faults[i];
	FUZZ_CHECK(counted == received);
	FUZZ_CHECK(arb->t.granted + arb->t.stale <= granted && granted <= demanded);
	for (i = 0; i < HOSTS; i++) {
		uint64_t sum = 0;

		for (d = 0; d < HOSTS; d++)
			sum += arb->peer[i].fcp.e.pair[d].done - arb->peer[i].fcp.e.pair[d].total;
		FUZZ_CHECK(sum == arb->peer[i].fcp.waiting && sum <= arb->params.quota);
	}
	if (arb->ruled != (arb->wd.state == BL_FCP_PRIMARY))
		FUZZ_CHECK(!bl_wd_may_allocate(&arb->wd, now_ns));
}

/* A packet from the input, made more or less right. */
static void forged(struct fuzz_in *in, uint8_t arg)
{
	_Alignas(8) uint8_t p[BL_FCP_PACKET_MAX + 8] = { 0 };
	unsigned int from = fuzz_u8(in) % (FAULTS + 1);
	size_t len = fuzz_u8(in);
	struct bl_fcp_hdr *h = (void *)p;
	const uint8_t *bytes = fuzz_take(in, &len);
	int fd = arg & 64 ? arb->wd_fd : arb->sock[arg >> 7 & (arb->nsock - 1)]->fd;
	uint64_t nonce = from < HOSTS && arg & 32 ? hosts[from].h.e.nonce : 0;

	memcpy(p, bytes, len);
	if (len >= sizeof(*h)) {
		if (arg & 1)
			h->magic = BL_BE16(BL_FCP_MAGIC);
		if (arg & 2)
			h->opcode = BL_FCP_OPCODE_BYTE(h->opcode & 15);
		if (arg & 4)
			h->flags = 0;
		if (arg & 8)
			h->challenge = BL_BE32(from == FAULTS ? arb->faults_challenge
					       : from < HOSTS ? hosts[from].h.challenge
							      : 0);
		if (from == FAULTS && arg & 1)
			h->opcode = BL_FCP_OPCODE_BYTE(BL_FCP_FAULTS);
		if (from == FAULTS && len >= sizeof(*h) + sizeof(struct bl_fcp_faults) && arg & 2)
			((struct bl_fcp_faults *)(void *)(h + 1))->table =
				BL_BE32(arb->params.table);
		if (arg & 16)
			h->check = BL_BE64(bl_fcp_checksum(&arb->params, nonce, p, (uint32_t)len));
	}
	post(fd, from, p, (uint32_t)len);
}

static void again(struct fuzz_in *in, uint8_t arg)
{
	struct packet k = kept[arg & 7];
	uint16_t how = fuzz_u16(in);

	if (!k.len)
		return;
	if (how & 0x8000)
		k.p[how % k.len] ^= (uint8_t)(1 + arg);
	if (how & 0x4000)
		k.len -= (how >> 4) % k.len;
	post(how & 0x2000 ? arb->sock[arb->nsock - 1]->fd : k.fd,
	     how & 0x1000 ? how % (FAULTS + 1) : k.from.s6_addr[15] - 1u, k.p, k.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	struct fuzz_in in = { data, size };

	begin();
	while (in.left) {
		uint8_t op = fuzz_u8(&in), arg = fuzz_u8(&in);

		switch (op % 8) {
		case 0:
			bl_fcp_host_want(&hosts[arg % HOSTS].h, arg / 4 % HOSTS, 1 + op / 8);
			hosts_send(arg % HOSTS);
			break;
		case 1:
			hosts_send(arg % HOSTS);
			break;
		case 2:
			forged(&in, arg);
			break;
		case 3:
			again(&in, arg);
			break;
		case 4:
			if (bl_wd_tick(&other, now_ns)) {
				post(arb->wd_fd, STRANGER, buf, bl_wd_tx(&other, buf));
				bl_wd_sent(&other, now_ns);
			}
			break;
		default:
			now_ns += (uint64_t)(arg + 1) << (op / 8 % 20);
			arb_comm_turn(arb);
			arb_alloc_turn(arb);
			check();
			break;
		}
	}
	return 0;
}
