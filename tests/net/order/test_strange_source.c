// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A user without any right on a host takes the UDP port of an endpoint at another address of that
 * host, and sends ordered frames from there: out of the NIC, over lo, and from the endpoint's very
 * address, which IP_PKTINFO allows. Each of these frames is refused by name, and the endpoints do
 * not notice (maps/host_abi.h, cookie).
 */
#include "tests/net/reliable/reliable.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "core/wire_core.h"
#include "lib/internal.h"

#define WAIT_MS 60000
#define FRAMES  40
#define NOBODY  65534

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->clock_void_after_ms = 100000;
	cfg->dead_after_us = 10000000;
}

/* A frame whose barriers and timestamp claim everything that the clock allows. */
static size_t build_claim(uint8_t *f, uint8_t op)
{
	struct timespec t;
	struct bl_hdr *h = (void *)f;
	uint64_t now;

	clock_gettime(CLOCK_TAI, &t);
	now = (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
	memset(f, 0, 64);
	bl_put48(h->ts, now);
	bl_put48(h->barrier, now);
	bl_put48(h->commit, now);
	h->opcode = BL_OPCODE_BYTE(op);
	h->flags = BL_HOP_HOST | BL_F_LANES(1);
	return 64;
}

static void send_claims(int s, const struct sockaddr_in *to, const struct in_addr *from)
{
	static const uint8_t ops[] = { BL_OP_DATA, BL_OP_CREDIT, BL_OP_NAK, BL_OP_PREP };
	union {
		char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
		struct cmsghdr align;
	} ctl = { { 0 } };
	uint8_t f[64];
	struct iovec io = { f, 0 };
	struct msghdr m = { .msg_name = (void *)(uintptr_t)to,
			    .msg_namelen = sizeof(*to),
			    .msg_iov = &io,
			    .msg_iovlen = 1 };
	unsigned int k;

	if (from) {
		struct in_pktinfo info = { .ipi_spec_dst = *from };
		struct cmsghdr *c;

		m.msg_control = ctl.bytes;
		m.msg_controllen = sizeof(ctl);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	}
	for (k = 0; k < FRAMES; k++) {
		io.iov_len = build_claim(f, ops[k % sizeof(ops)]);
		if (sendmsg(s, &m, 0) != (ssize_t)io.iov_len)
			exit(10 + (errno != ENOBUFS));
	}
}

static struct sockaddr_in address_of(unsigned int id)
{
	const struct bl_addr *a = &tr_sh->node[id].addr;
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(a->port) };

	memcpy(&sa.sin_addr, a->ip + 12, 4);
	return sa;
}

/* In a process of its own, in the namespace of host 0. */
static void be_a_stranger(void)
{
	struct sockaddr_in mine = address_of(0), beside = address_of(2), far = address_of(1), lo;
	int s, one = 1;

	if (setgid(NOBODY) || setuid(NOBODY))
		exit(2);
	s = socket(AF_INET, SOCK_DGRAM, 0);
	/* The endpoint's own address and port are taken, whatever the stranger sets. */
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (!bind(s, (struct sockaddr *)&mine, sizeof(mine)))
		exit(3);
	lo = mine;
	lo.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(s, (struct sockaddr *)&lo, sizeof(lo)))
		exit(4);
	send_claims(s, &mine, NULL);
	send_claims(s, &beside, NULL);
	/* from the endpoint's address, to the NIC and to a neighbour on this host */
	send_claims(s, &far, &mine.sin_addr);
	send_claims(s, &beside, &mine.sin_addr);
	exit(0);
}

static bool all_have(void)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (TR_LOAD(tr_sh->node[i].received) < 100)
			return false;
	return true;
}

RACK_TEST(foreign_source__is_refused_and_changes_nothing)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .len = 100,
			      .gap_us = 2000,
			      .to = 7,
			      .quiet_ms = 4000,
			      .ring_bytes = TR_RING_TIGHT(6) };
	unsigned int i;
	int st;
	pid_t pid;

	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	rack_open();
	for (i = 0; i < 3; i++) {
		cfg.host = i == 1;
		tr_add(&cfg);
	}
	tr_go();
	CHECK(tr_until(all_have, WAIT_MS), "nothing is delivered");
	CHECK(!rack_count_all(BL_R_FOREIGN_SOURCE), "%" PRIu64 " frames of endpoints are refused",
	      rack_count_all(BL_R_FOREIGN_SOURCE));
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(0));
		be_a_stranger();
	}
	while (waitpid(pid, &st, WNOHANG) != pid)
		rack_serve(10);
	CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "the stranger ended with status %x", st);
	CHECK(rack_count(rack_host(0), BL_R_FOREIGN_SOURCE) == 4 * FRAMES,
	      "%" PRIu64 " of %d frames are refused", rack_count(rack_host(0), BL_R_FOREIGN_SOURCE),
	      4 * FRAMES);
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	for (i = 0; i < 3; i++)
		CHECK(!tr_sh->node[i].st.malformed && tr_sh->node[i].st.peers == 3,
		      "endpoint %u heard %" PRIu64 " malformed frames of %" PRIu64 " peers", i,
		      (uint64_t)tr_sh->node[i].st.malformed, (uint64_t)tr_sh->node[i].st.peers);
	tr_judge(7, 7);
}

/* Fails the process if @fd can be mapped for writing, or written by bpf(2). */
static void expect_read_only(int fd, size_t size, int line)
{
	static char value[1 << 17];
	uint32_t zero = 0;

	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED ||
	    size > sizeof(value) || bpf_map_lookup_elem(fd, &zero, value) ||
	    !bpf_map_update_elem(fd, &zero, value, BPF_ANY))
		exit(line);
}

/* A member has descriptors of maps: it can write its own page and the hints, and nothing else. */
static void be_a_member(void)
{
	struct bl_endpoint *a, *b;

	if (bl_init(&a, NULL) || bl_init(&b, NULL))
		exit(2);
	expect_read_only(a->fd[BL_FD_HOST_PAGE], sizeof(struct bl_host_page), __LINE__);
	expect_read_only(a->fd[BL_FD_CLOCK], sizeof(struct bl_clock), __LINE__);
	expect_read_only(a->fd[BL_FD_FAILURES], sizeof(struct bl_failures), __LINE__);
	if (mprotect((void *)(uintptr_t)a->page, 4096, PROT_READ | PROT_WRITE) != -1 ||
	    mprotect((void *)(uintptr_t)a->clock, 4096, PROT_READ | PROT_WRITE) != -1)
		exit(3);
	/* The pages of two endpoints are apart. */
	a->line->turn = 7;
	if (b->line->turn == 7 || b->mine == a->mine)
		exit(4);
	/* A map of one page has no room for a second one. */
	if (mmap(NULL, 2 * sizeof(struct bl_ep_page), PROT_READ, MAP_SHARED, a->fd[BL_FD_PAGE],
		 0) != MAP_FAILED)
		exit(5);
	bl_exit(a);
	bl_exit(b);
	exit(0);
}

RACK_TEST(member__writes_its_own_page_only)
{
	int st;
	pid_t pid;

	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	rack_open();
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(0));
		be_a_member();
	}
	while (waitpid(pid, &st, WNOHANG) != pid)
		rack_serve(2);
	CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "status %x", st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(foreign_source__is_refused_and_changes_nothing),
		cmocka_unit_test(member__writes_its_own_page_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
