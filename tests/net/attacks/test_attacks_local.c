// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Attackers on a host that runs barline, beside a rack under load: a user who may not use it, and a
 * member of the group, who may. Neither can speak for another endpoint, hold the rack, or keep
 * others from being served.
 *
 * Covered elsewhere: which words a process can write, in tests/unit and tests/net of the pages;
 * quotas per user to the last endpoint and byte; what a daemon may do (tests/net/loader).
 */
#include <grp.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "tests/net/attacks/attack_rack.h"

#define NOBODY     65534
#define LOOPBACKS  4000 /* addresses of 127/8 */
#define SILENT     500  /* connections */
#define FIRST_PORT (BL_PORT_BASE + 100)
/* send_limit_ms, the time until the kernel tells that no program runs any more, and some more */
#define VOID_MS 200

enum { H1, H2, H3 };

static void daemon_of(unsigned int host, struct sockaddr_un *sa)
{
	const char *ino = strrchr(rack.dir[rack_host(host)], '-');

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(sa->sun_path, sizeof(sa->sun_path), BL_RUN_DIR "/host-%llu.sock",
		 ino ? strtoull(ino + 1, NULL, 10) : 0ULL);
}

/* Goes to @host, and is nobody from then on; with @member, in the group that may use barline. */
static void become(unsigned int host, bool member)
{
	struct sockaddr_un sa;
	struct stat st;
	gid_t gid = NOBODY;

	daemon_of(host, &sa);
	if (stat(sa.sun_path, &st))
		_exit(2);
	if (member)
		gid = st.st_gid;
	rack_enter(rack_host(host));
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(NOBODY, NOBODY, NOBODY))
		_exit(3);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user has cleared it */
}

static int udp4(uint32_t ip, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(ip) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && !bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	close(fd);
	return -1;
}

/* Sends an ordered frame by an ordinary socket to endpoint @to. */
static void send_udp(struct atk *a, int fd, unsigned int to, enum bl_opcode op, uint32_t psn,
		     const uint8_t *body, uint32_t len)
{
	const struct tr_node *n = &tr_sh->node[to];
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(n->addr.port) };
	uint8_t p[1400];

	memcpy(&sa.sin_addr, n->addr.ip + 12, 4);
	atk_hdr(a, p, op, op == BL_OP_DATA ? atk_now(a) : 0, 0, 0, psn);
	memcpy(p + sizeof(struct bl_hdr), body, len);
	if (sendto(fd, p, sizeof(struct bl_hdr) + len, 0, (struct sockaddr *)&sa, sizeof(sa)) > 0)
		atk_did();
}

/* ---- nobody ---- */

/* From the port of h1's endpoint, and from another address of h1. */
static void other_address(struct atk *a)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6 }, to = { .sin6_family = AF_INET6 };
	uint8_t p[sizeof(struct bl_hdr) + 8] = { 0 };
	int fd;

	lab_host_addr(&rack.lab.nodes[rack_host(0)], AF_INET6, from.sin6_addr.s6_addr);
	lab_host_addr(&rack.lab.nodes[rack_host(1)], AF_INET6, to.sin6_addr.s6_addr);
	from.sin6_port = htons(tr_sh->node[H1].addr.port);
	to.sin6_port = htons(tr_sh->node[H2].addr.port);
	become(0, false);
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)))
		_exit(4);
	while (atk_pace(a, 2000)) {
		atk_hdr(a, p, BL_OP_PROBE, 0, 0, 0, 0);
		if (sendto(fd, p, sizeof(p), 0, (struct sockaddr *)&to, sizeof(to)) > 0)
			atk_did();
	}
}

RACK_TEST(nobody__other_address)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("from h1's IPv6 address and its endpoint's port",
	       &(struct atk_case){ .attack = other_address,
				   .elsewhere = true,
				   .reason = "foreign_source not_endpoint",
				   .least = 100 });
	rack_judge();
}

/* From 127.0.0.1, and the port of an endpoint of this host. */
static void loopback(struct atk *a)
{
	uint8_t body[200], item[ATK_LEN] = { 0 };
	uint32_t psn = 0;
	int fd;

	become(0, false);
	fd = udp4(INADDR_LOOPBACK, tr_sh->node[H1].addr.port);
	while (fd >= 0 && atk_pace(a, 2000)) {
		send_udp(a, fd, H1, BL_OP_DATA, psn, body, atk_body_data(body, 7, item, ATK_LEN));
		psn++;
	}
}

static void loopbacks(struct atk *a)
{
	uint8_t body[200];
	uint32_t i;

	become(0, false);
	for (i = 0; i < LOOPBACKS && atk_pace(a, 200); i++) {
		int fd = udp4(INADDR_LOOPBACK + 1 + i, tr_sh->node[H1].addr.port), k;

		for (k = 0; k < 4 && fd >= 0; k++)
			send_udp(a, fd, H1, BL_OP_FRAG, (uint32_t)k, body,
				 atk_body_frag(body, 7, (uint32_t)k, 0, BL_MSG_MAX));
		close(fd);
	}
	atk_rest(a);
}

RACK_TEST(nobody__loopback)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("FRAGs of 1 MiB messages from 4000 addresses of 127/8",
	       &(struct atk_case){ .attack = loopbacks,
				   .elsewhere = true,
				   .reason = "foreign_source not_endpoint",
				   .least = 1000 });
	beside("DATA from 127.0.0.1", &(struct atk_case){ .attack = loopback,
							  .elsewhere = true,
							  .reason = "foreign_source not_endpoint",
							  .least = 100 });
	rack_judge();
}

/* ---- a member of the group ---- */

/* Attaches as the library does. Returns the number of descriptors in @fd. */
static int attach(unsigned int host, int *fd, int room)
{
	struct bl_attach_req req = { .magic = BL_SOCK_MAGIC,
				     .abi_version = BL_ABI_VERSION,
				     .port = FIRST_PORT };
	struct bl_attach_rep rep;
	struct sockaddr_un sa;
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(32 * sizeof(int))];
	} control;
	struct iovec v = { &rep, sizeof(rep) };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), n = 0;

	daemon_of(host, &sa);
	if (connect(s, (struct sockaddr *)&sa, sizeof(sa)) ||
	    send(s, &req, sizeof(req), MSG_NOSIGNAL) != sizeof(req) ||
	    recvmsg(s, &m, 0) != sizeof(rep) || rep.error)
		return 0;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		n = n > room ? room : n;
		memcpy(fd, CMSG_DATA(c), (size_t)n * sizeof(int));
	}
	return n; /* the connection stays open: it stands for the endpoint */
}

static uint64_t something(struct atk *a)
{
	const uint64_t hour = 3600ULL * 1000000000ULL, now = atk_now(a);

	switch (t_below(&a->seed, 8)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return ~0ULL;
	case 3:
		return now + hour;
	case 4:
		return now - hour;
	case 5:
		return now;
	case 6:
		return now + 1000000;
	default:
		return t_rand(&a->seed);
	}
}

/* Writes everything that he can map or update, all the time, and ends. */
static void scribble(struct atk *a)
{
	uint64_t *page[32 * 4], value[512];
	unsigned int n = 0, i, k;
	int fd[32], nfd;

	become(0, true);
	nfd = attach(0, fd, 32);
	if (!nfd)
		_exit(5);
	for (i = 0; i < (unsigned int)nfd; i++)
		for (k = 0; k < 4; k++) {
			void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd[i],
				       4096 * (off_t)k);

			if (p != MAP_FAILED)
				page[n++] = p;
		}
	atk_sh->note[0] = n;
	while (atk_pace(a, 1000)) {
		for (i = 0; i < n; i++)
			for (k = 0; k < 512; k++)
				__atomic_store_n(&page[i][k], something(a), __ATOMIC_RELAXED);
		for (i = 0; i < (unsigned int)nfd; i++) {
			uint32_t key = t_below(&a->seed, 4);
			union bpf_attr at = { .map_fd = (uint32_t)fd[i],
					      .key = (uint64_t)(uintptr_t)&key,
					      .value = (uint64_t)(uintptr_t)value };

			for (k = 0; k < 512; k++)
				value[k] = something(a);
			syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &at, sizeof(at));
		}
		atk_did();
	}
}

RACK_TEST(member__writes_everything)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("an endpoint of h1 that overwrites every page it gets",
	       &(struct atk_case){ .attack = scribble, .elsewhere = true });
	fprintf(stderr, "  it could write %" PRIu64 " pages\n", atk_sh->note[0]);
	CHECK(atk_sh->note[0], "it could write nothing, so this proves nothing");
	/* another one, after it has gone */
	beside("and once more", &(struct atk_case){ .attack = scribble, .elsewhere = true });
	rack_judge();
}

/* Claims all the time that nothing below a time ahead follows, as far ahead as possible. */
static void claims(struct atk *a)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(FIRST_PORT + 50) };
	uint8_t p[sizeof(struct bl_hdr) + 8] = { 0 };
	unsigned int i = 0;
	int fd[32], nfd;

	memcpy(&sa.sin_addr, tr_sh->node[H2].addr.ip + 12, 4);
	become(0, true);
	nfd = attach(0, fd, 32);
	if (nfd <= BL_FD_SOCKET)
		_exit(5);
	while (atk_pace(a, 250)) {
		/* h1's clock is 0.9 ms ahead, its bound is 1 ms, and it may promise 0.15 ms ahead
		 */
		uint64_t ts = atk_now(a) + 1000000 + i++ % 6 * 200000;

		atk_hdr(a, p, BL_OP_DATA, ts, ts + 1, 0, i);
		if (sendto(fd[BL_FD_SOCKET], p, sizeof(p), 0, (struct sockaddr *)&sa, sizeof(sa)) >
		    0)
			atk_did();
	}
}

RACK_TEST(member__claims_the_future)
{
	rack_of(&(struct atk_rack){ .fast = true });
	beside("an endpoint of h1 whose frames claim what is far ahead",
	       &(struct atk_case){ .attack = claims, .elsewhere = true });
	rack_judge();
}

static bool stop_in_send;

/*
 * In the place of libc's for the library that is linked into this binary: the process stops in the
 * middle of a send, when its line says that something is in flight and nothing has left yet.
 */
int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	if (stop_in_send) {
		atk_did();
		raise(SIGSTOP);
	}
	return (int)syscall(SYS_sendmmsg, fd, m, n, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (stop_in_send) {
		atk_did();
		raise(SIGSTOP);
	}
	return syscall(SYS_sendmsg, fd, m, flags);
}

/* Sends to a port of h3 where nobody is, and stops in the middle. atk_stop() continues it. */
static void stops(struct atk *a)
{
	struct bl_options o = { .port = FIRST_PORT };
	struct bl_addr to = tr_sh->node[H3].addr;
	struct bl_msg m = { .data = "stopped", .len = 7 };
	struct bl_endpoint *ep;

	become(0, true);
	if (bl_init(&ep, &o))
		_exit(6);
	to.port = FIRST_PORT + 50;
	m.dst = to;
	stop_in_send = true;
	if (a->arg)
		bl_send_reliable(ep, &m, 1, 0);
	else
		bl_send(ep, &m, 1, 0);
	stop_in_send = false;
	atk_rest(a);
	bl_exit(ep);
}

RACK_TEST(member__stops_in_a_send)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("SIGSTOP in the middle of a send", &(struct atk_case){ .attack = stops,
								      .elsewhere = true,
								      .reason = "send_void",
								      .held_ms = VOID_MS });
	rack_judge();
}

/* As many endpoints as he gets. */
static void hog(struct atk *a)
{
	unsigned int i;

	become(0, true);
	for (i = 0; i < BL_EPS_MAX; i++) {
		struct bl_options o = { .port = (uint16_t)(FIRST_PORT + i),
					.ring_bytes = 1u << 20 };
		struct bl_endpoint *ep;

		if (bl_init(&ep, &o))
			break;
		atk_did();
	}
	atk_sh->note[0] = i;
	atk_rest(a);
}

/* As many connections as he gets, which say nothing. */
static void silent(struct atk *a)
{
	struct sockaddr_un sa;
	int i;

	become(0, true);
	daemon_of(0, &sa);
	for (i = 0; i < SILENT && atk_on(a); i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
			atk_did();
		usleep(1000);
	}
	atk_rest(a);
}

static bool attack_over(void)
{
	return TR_LOAD(atk_sh->over);
}

/* While @attack() goes on, root gets an endpoint on the same host. */
static void root_is_served_beside(void (*attack)(struct atk *a))
{
	unsigned int id;

	rack_of(&(struct atk_rack){ 0 });
	atk_start(ATK_NO_HOST, attack, 0);
	CHECK(tr_until(attack_over, 60000), "the attacker does not get so far");
	fprintf(stderr, "  he got %" PRIu64 "\n", TR_LOAD(atk_sh->frames));
	id = tr_add(&(struct tr_cfg){ .host = 0, .fn = tr_sink, .to = 1ULL << 3 });
	CHECK(id == 3, "it is endpoint %u", id);
	beside_nothing();
	atk_stop();
	rack_judge();
}

RACK_TEST(member__takes_all_endpoints)
{
	root_is_served_beside(hog);
}

RACK_TEST(member__silent_connections)
{
	root_is_served_beside(silent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody__other_address),
		cmocka_unit_test(nobody__loopback),
		cmocka_unit_test(member__writes_everything),
		cmocka_unit_test(member__claims_the_future),
		cmocka_unit_test(member__stops_in_a_send),
		cmocka_unit_test(member__takes_all_endpoints),
		cmocka_unit_test(member__silent_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
