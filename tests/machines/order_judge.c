/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * order_judge [-c | -l] LOG... - compares what the peers of a run have written (order_log.h), by
 * the checker of the net tests: is there one total order, FIFO and causal, of which every peer saw
 * a part?
 *
 *   -c	everything must have arrived; else what was reported to its sender may be missing
 *   -l	and so may as many as the receivers count as late or lost: a report may be lost, too
 *
 * Prints one line. Exit: 0 if the order holds, 1 if not, 2 if the logs cannot be read, or nothing
 * in them can be compared.
 */
#include <getopt.h>

#include "tests/machines/order_log.h"
#include "tests/net/order_check.h"

/** struct log - one peer's log. @failed has a bit set of receivers by scattering. */
struct log {
	struct oc_sent *sent;
	struct oc_got *got;
	uint64_t *failed;
	uint32_t nsent, ngot, nfailed;
	unsigned long long late, lost;
};
static struct log logs[OC_NODES_MAX];

static unsigned int reported(unsigned int sender, uint64_t seq, unsigned int receiver)
{
	return logs[sender].failed[seq] >> receiver & 1;
}

/* Returns the number of messages that were neither delivered nor reported. */
static unsigned long long missing(unsigned int peers)
{
	unsigned long long n = 0;
	unsigned int s, r;
	uint32_t i;

	for (s = 0; s < peers; s++)
		for (i = 0; i < logs[s].nsent; i++)
			n += (unsigned int)__builtin_popcountll(logs[s].sent[i].to &
								~logs[s].failed[i]);
	for (r = 0; r < peers; r++)
		for (i = 0; i < logs[r].ngot; i++)
			n -= !reported(logs[r].got[i].sender, logs[r].got[i].seq, r);
	return n;
}

/* Returns @array, of elements of @size bytes, with room for more than @n. */
static void *grow(void *array, uint32_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	array = realloc(array, (n ? 2 * (size_t)n : 1) * size);
	if (!array)
		abort();
	return array;
}

/* Returns the number of the peer whose log @path is, or -1. */
static int read_log(const char *path, unsigned int *peers)
{
	unsigned int id, a, b, why;
	unsigned long long x, y, z;
	char line[256];
	FILE *f = fopen(path, "r");
	bool end = false;
	struct log *l;

	if (!f || !fgets(line, sizeof(line), f) || sscanf(line, "peer %u %u", &id, peers) != 2 ||
	    id >= OC_NODES_MAX || *peers > OC_NODES_MAX || logs[id].sent) {
		fprintf(stderr, "order_judge: %s is no log of a peer\n", path);
		return -1;
	}
	l = &logs[id];
	while (!end && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "s %llx %u %u %llu %llx", &x, &a, &b, &y, &z) == 5) {
			l->sent = grow(l->sent, l->nsent, sizeof(*l->sent));
			l->failed = grow(l->failed, l->nsent, sizeof(*l->failed));
			l->failed[l->nsent] = 0;
			l->sent[l->nsent++] = (struct oc_sent){ .to = x,
								.hash = { z },
								.after = (uint8_t)a,
								.after_sender = (uint16_t)b,
								.after_seq = y,
								.items = 1 };
		} else if (sscanf(line, "g %u %llu %llu %llx", &a, &x, &y, &z) == 4) {
			l->got = grow(l->got, l->ngot, sizeof(*l->got));
			l->got[l->ngot++] = (struct oc_got){
				.seq = x, .hash = z, .ts = y, .sender = (uint16_t)a
			};
		} else if (sscanf(line, "f %llu %u %u", &x, &a, &why) == 3 && x < l->nsent &&
			   a < OC_NODES_MAX) {
			l->failed[x] |= 1ull << a;
			l->nfailed++;
		} else if (sscanf(line, "end %llu %llu", &l->late, &l->lost) == 2) {
			end = true;
		} else {
			fprintf(stderr, "order_judge: %s: what is \"%.100s\"?\n", path, line);
			return -1;
		}
	}
	fclose(f);
	if (!end) {
		fprintf(stderr, "order_judge: %s has no end\n", path);
		return -1;
	}
	return (int)id;
}

int main(int argc, char **argv)
{
	unsigned long long late = 0, lost = 0, failed = 0, silent = 0;
	bool complete = false, lossy = false;
	struct oc c = {};
	unsigned int peers = 0, i;
	enum oc_verdict v;
	int opt;

	while ((opt = getopt(argc, argv, "cl")) != -1) {
		if (opt == 'c')
			complete = true;
		else if (opt == 'l')
			lossy = true;
		else
			return 2;
	}
	for (i = 0; optind + (int)i < argc; i++)
		if (read_log(argv[optind + (int)i], &peers) < 0)
			return 2;
	if (!i || i != peers) {
		fprintf(stderr, "order_judge: %u logs of %u peers\n", i, peers);
		return 2;
	}
	c.nodes = peers;
	c.complete_from = c.complete_to = lossy ? 0 : peers == 64 ? ~0ull : (1ull << peers) - 1;
	c.excused = complete ? NULL : reported;
	for (i = 0; i < peers; i++) {
		const struct log *l = &logs[i];

		c.log[i] = (struct oc_log){ l->sent, l->got, l->nsent, l->ngot };
		late += l->late;
		lost += l->lost;
		failed += l->nfailed;
	}
	v = oc_check(&c);
	/* Only now is it known that nobody delivered anything twice, or that was not sent. */
	if (!v)
		silent = missing(peers);
	if (lossy && silent > late + lost)
		v = oc_say(&c, OC_LOST, "more messages are missing than receivers have noticed");
	printf("%llu scatterings, %llu deliveries, %llu comparisons, %llu failed, %llu late, "
	       "%llu lost, %llu missing: %s\n",
	       (unsigned long long)c.groups, (unsigned long long)c.deliveries,
	       (unsigned long long)c.common, failed, late, lost, silent, v ? c.text : "one order");
	if (!v && !c.common) {
		fprintf(stderr, "order_judge: there was nothing to compare\n");
		return 2;
	}
	return v ? 1 : 0;
}
