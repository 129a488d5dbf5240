/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * order_peer - sends ordered messages among the machines of a rack, and logs what it sends and what
 * it is delivered (order_log.h). order_judge compares the logs of all peers.
 *
 *	order_peer -i ID -p ADDRESS:PORT,... -o LOG [-r] [-n COUNT] [-g US] [-l LEN] [-t SECONDS]
 *
 *   -i	place of this peer in the list of -p, from 0
 *   -r	the reliable stream
 *   -n	scatterings to send (1000), each to some of the peers, at random; 0: until the file
 *	LOG.stop exists
 *   -g	microseconds between two of them (1000)
 *   -l	length of the longest message in bytes (200)
 *   -t	the peer ends when it has sent everything and nothing has arrived for so long (10)
 *
 * It begins when the file LOG.go exists, so that all peers can be up before the first one sends,
 * and writes LOG when it ends.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/barline.h"
#include "tests/machines/order_log.h"

#define PEERS_MAX 64

/** struct peer - this process. */
struct peer {
	struct bl_endpoint *ep;
	struct bl_addr addr[PEERS_MAX];
	unsigned int id, peers;
	FILE *sent, *got, *failed; /* parts of the log, in memory until the end */
	bool reliable, heard;      /* @heard: @last_sender and @last_seq are valid */
	unsigned int last_sender;
	uint64_t last_seq, seed;
	uint64_t active_ns; /* something was sent or delivered then */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

__attribute__((noreturn)) static void die(struct peer *p, const char *what, int err)
{
	fprintf(stderr, "order_peer: %s: %s (%s)\n", what, strerror(-err), bl_strerror(p->ep));
	exit(1);
}

static uint64_t draw(struct peer *p)
{
	p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
	return p->seed >> 33;
}

static void on_fail(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
		    enum bl_fail_reason why)
{
	struct peer *p = ctx;

	fprintf(p->failed, "f %llu %u %d\n", (unsigned long long)(cookie >> 8),
		(unsigned int)(cookie & 0xff), (int)why);
}

/* Takes what can be delivered, for at most @ms. */
static void take(struct peer *p, int ms)
{
	struct bl_delivery d[64];
	int n, i;

	n = p->reliable ? bl_recv_reliable(p->ep, d, 64, ms) : bl_recv(p->ep, d, 64, ms);
	if (n < 0 && n != -EINTR)
		die(p, "receive", n);
	for (i = 0; i < n; i++) {
		struct order_head head;

		if (d[i].len < sizeof(head))
			die(p, "a message that no peer has sent", -EBADMSG);
		memcpy(&head, d[i].data, sizeof(head));
		if (head.magic != ORDER_MAGIC || head.len != d[i].len || head.sender >= p->peers)
			die(p, "a message that no peer has sent", -EBADMSG);
		fprintf(p->got, "g %u %llu %llu %llx\n", head.sender, (unsigned long long)head.seq,
			(unsigned long long)d[i].ts,
			(unsigned long long)order_hash(d[i].data, d[i].len));
		p->heard = true;
		p->last_sender = head.sender;
		p->last_seq = head.seq;
	}
	if (n > 0)
		p->active_ns = now_ns();
}

static void send_one(struct peer *p, uint64_t seq, unsigned int len_max)
{
	static uint8_t data[BL_MESSAGE_MAX];
	struct order_head head = { .magic = ORDER_MAGIC, .seq = seq, .sender = p->id };
	struct bl_msg vec[PEERS_MAX];
	unsigned int d, n = 0, i;
	uint64_t to = 0;
	int rc;

	head.len = (uint32_t)(sizeof(head) + draw(p) % (len_max - sizeof(head) + 1));
	memcpy(data, &head, sizeof(head));
	for (i = sizeof(head); i < head.len; i++)
		data[i] = (uint8_t)(seq * 31 + i);
	while (!to)
		to = (draw(p) | draw(p) << 31) & (p->peers == 64 ? ~0ull : (1ull << p->peers) - 1);
	for (d = 0; d < p->peers; d++)
		if (to >> d & 1)
			vec[n++] = (struct bl_msg){ .dst = p->addr[d],
						    .data = data,
						    .len = head.len,
						    .cookie = seq << 8 | d };
	for (;;) {
		/* Written before it is sent, since it may be delivered within the call. */
		long at = ftell(p->sent);

		fprintf(p->sent, "s %llx %d %u %llu %llx\n", (unsigned long long)to, p->heard,
			p->last_sender, (unsigned long long)p->last_seq,
			(unsigned long long)order_hash(data, head.len));
		rc = p->reliable ? bl_send_reliable(p->ep, vec, n, 0) : bl_send(p->ep, vec, n, 0);
		if (!rc)
			break;
		fseek(p->sent, at, SEEK_SET);
		/* -ETIME: the clock is void, until its time daemon is back */
		if (rc != -EAGAIN && rc != -ETIME)
			die(p, "send", rc);
		take(p, 1);
	}
	p->active_ns = now_ns();
}

static void write_log(struct peer *p, const char *path, char *const parts[3], unsigned int count)
{
	struct bl_stats st = { .size = sizeof(st) };
	char name[4096];
	FILE *f;
	int i;

	snprintf(name, sizeof(name), "%s.new", path);
	f = fopen(name, "w");
	if (!f)
		die(p, name, -errno);
	bl_get_stats(p->ep, &st);
	fprintf(f, "peer %u %u\n", p->id, count);
	for (i = 0; i < 3; i++)
		fputs(parts[i], f);
	fprintf(f, "end %llu %llu\n", (unsigned long long)st.late_dropped,
		(unsigned long long)st.lost_frames);
	if (fclose(f) || rename(name, path))
		die(p, path, -errno);
}

static unsigned int parse_peers(struct peer *p, char *list)
{
	char *word;

	for (word = strtok(list, ","); word && p->peers < PEERS_MAX; word = strtok(NULL, ","))
		if (bl_addr_parse(&p->addr[p->peers++], word))
			return 0;
	return p->peers;
}

int main(int argc, char **argv)
{
	unsigned int count = 1000, gap_us = 1000, len = 200, quiet = 10;
	struct peer p = { .id = PEERS_MAX };
	char *parts[3], go[4096], stop[4096], *log = NULL;
	size_t bytes[3];
	uint64_t seq, next;
	int opt, rc;

	while ((opt = getopt(argc, argv, "i:p:o:rn:g:l:t:")) != -1) {
		switch (opt) {
		case 'i':
			p.id = (unsigned int)atoi(optarg);
			break;
		case 'p':
			if (!parse_peers(&p, optarg))
				return 2;
			break;
		case 'o':
			log = optarg;
			break;
		case 'r':
			p.reliable = true;
			break;
		case 'n':
			count = (unsigned int)atoi(optarg);
			break;
		case 'g':
			gap_us = (unsigned int)atoi(optarg);
			break;
		case 'l':
			len = (unsigned int)atoi(optarg);
			break;
		case 't':
			quiet = (unsigned int)atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	if (!log || p.id >= p.peers || len < sizeof(struct order_head) || len > BL_MESSAGE_MAX) {
		fprintf(stderr, "usage: order_peer -i ID -p ADDRESS:PORT,... -o LOG ...\n");
		return 2;
	}
	p.seed = p.id * 7919 + 1;
	p.sent = open_memstream(&parts[0], &bytes[0]);
	p.got = open_memstream(&parts[1], &bytes[1]);
	p.failed = open_memstream(&parts[2], &bytes[2]);
	rc = bl_init(&p.ep, &(struct bl_options){ .port = p.addr[p.id].port });
	if (rc)
		die(&p, "bl_init", rc);
	bl_on_send_fail(p.ep, on_fail, &p);
	puts("ready");
	fflush(stdout);
	snprintf(go, sizeof(go), "%s.go", log);
	snprintf(stop, sizeof(stop), "%s.stop", log);
	while (access(go, F_OK))
		take(&p, 50);
	next = now_ns();
	for (seq = 0; count ? seq < count : access(stop, F_OK); seq++) {
		while (now_ns() < next) {
			take(&p, 0);
			usleep(gap_us > 500 ? 500 : gap_us);
		}
		send_one(&p, seq, len);
		next = now_ns() + gap_us * 1000ull;
	}
	/* A reliable sender has not done its part before everything is acknowledged. */
	while (now_ns() - p.active_ns < quiet * 1000000000ull ||
	       (p.reliable && !(bl_wait(p.ep, BL_WAIT_ACKED, 0) & BL_WAIT_ACKED)))
		take(&p, 100);
	fclose(p.sent);
	fclose(p.got);
	fclose(p.failed);
	write_log(&p, log, parts, p.peers);
	bl_exit(p.ep);
	return 0;
}
