/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A replicated counter: each replica applies the same operations in the same order, so all have the
 * same value, although additions and multiplications do not commute. It shows the reliable stream
 * in its simplest form: bl_peer_wait(), one loop, blocking calls.
 *
 *	counter -p 61700 -n 100 10.0.0.1:61700 10.0.0.2:61700 10.0.0.3:61700
 *
 * The addresses are those of all replicas, one's own included. Each replica sends COUNT operations,
 * and then DONE, and prints the value when it has delivered the DONE of all.
 */
#include <barline.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 32

struct op {
	char what; /* '+', '*', or '.' for DONE */
	uint32_t by;
};

static struct bl_endpoint *ep;
static uint64_t value;
static size_t done;

static int check(int rc)
{
	if (rc < 0)
		errx(1, "%s", bl_strerror(ep));
	return rc;
}

static void apply(const struct op *op)
{
	switch (op->what) {
	case '+':
		value += op->by;
		break;
	case '*':
		value *= op->by;
		break;
	case '.':
		done++;
		break;
	}
}

/* Deliver what there is. @ms: how long to wait for the first message. */
static void take(int ms)
{
	struct bl_delivery d[64];
	int n = check(bl_recv_reliable(ep, d, 64, ms)), i;

	for (i = 0; i < n; i++)
		if (d[i].len == sizeof(struct op))
			apply(d[i].data);
}

static void send_to_all(const struct bl_addr *to, size_t n, struct op op)
{
	struct bl_msg vec[MOST];
	size_t i;
	int rc;

	for (i = 0; i < n; i++)
		vec[i] = (struct bl_msg){ to[i], &op, sizeof(op), 0 };
	/*
	 * Waiting for windows alone would be a deadlock: the window of a replica that waits for
	 * others is opened when it delivers.
	 */
	while ((rc = bl_send_reliable(ep, vec, n, 0)) == -EAGAIN)
		if (check(bl_wait(ep, BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE, -1)) &
		    BL_WAIT_RECV_RELIABLE)
			take(0);
	check(rc);
}

int main(int argc, char **argv)
{
	struct bl_options opt = { 0 };
	struct bl_addr to[MOST];
	uint32_t count = 10, k;
	size_t n = 0, i;
	int c;

	while ((c = getopt(argc, argv, "p:n:")) != -1) {
		if (c == 'p')
			opt.port = (uint16_t)atoi(optarg);
		else if (c == 'n')
			count = (uint32_t)atoi(optarg);
		else
			return 2;
	}
	for (; optind < argc && n < MOST; n++)
		if (bl_addr_parse(&to[n], argv[optind++]))
			errx(2, "%s is not an address and a port", argv[optind - 1]);
	if (!n)
		errx(2, "usage: counter [-p PORT] [-n COUNT] ADDRESS:PORT ...");
	if (bl_init(&ep, &opt))
		errx(1, "%s", bl_strerror(NULL));
	/* A message to a replica that has not started yet would fail after two seconds. */
	for (i = 0; i < n; i++)
		check(bl_peer_wait(ep, &to[i], 60000));
	for (k = 0; k < count; k++) {
		send_to_all(to, n, (struct op){ k % 3 == 2 ? '*' : '+', 2 * k + 3 });
		take(0);
	}
	send_to_all(to, n, (struct op){ '.', 0 });
	while (done < n)
		take(-1);
	/* The others have delivered nothing yet that is not acknowledged. */
	while (!check(bl_wait(ep, BL_WAIT_ACKED, -1)))
		;
	printf("%" PRIu64 "\n", value);
	bl_exit(ep);
	return 0;
}
