// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The counterpart of barline's throughput bench: one member of a Corosync closed process group.
 * corosync.sh starts one per node.
 *
 * Throughput: every member keeps @inflight own messages outstanding (sent, and not yet delivered to
 * itself) and counts all deliveries, including its own, for @seconds. If 2 members see 200000
 * deliveries/s each, each of them sends 100000 messages/s.
 *
 * Latency (--latency): only the member with the lowest (nodeid, pid) sends, one message at a time
 * with a pause of @gap_us between two. It measures from before cpg_mcast_joined() until its own
 * delivery callback, when the position of the message in the total order is known.
 *
 * Group (--rate R): every member sends R messages per second, independent of what it receives (an
 * open loop), and records the age of the other members' messages at delivery. The age counts from
 * the time at which a message was due, not from when its sender got the CPU. All members run on one
 * machine and share CLOCK_MONOTONIC. This corresponds to `barline lab run rack --group`.
 *
 * Messages in the same total order mark start and end, so that no common clock is needed. A member
 * sends READY when it sees the full membership, and starts at the delivery of the last READY. It
 * sends DONE after its measurement and keeps up the load until the DONE of every member is
 * delivered, so that no member is silent while another one measures.
 *
 * Losses are not measured: CPG loses messages only when the membership changes, which fails the run
 * (exit status 1).
 *
 * Build: gcc -O2 -I. bench/corosync_cpg.c -lcpg
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <corosync/cpg.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

#define SCHEMA 1
/* deliveries until clock and send window are checked again; a fraction of a useful window */
#define DISPATCH_MAX 64

enum msg_kind { MSG_DATA = 1, MSG_READY, MSG_DONE };

/**
 * struct msg - The begin of every message; the rest of --size is zero. In host byte order, because
 * all members run on one machine.
 */
struct msg {
	uint32_t kind; /* enum msg_kind */
	uint32_t reserved;
	uint64_t seq;     /* of DATA: number at its sender, from 0 */
	uint64_t sent_ns; /* CLOCK_MONOTONIC before the send, or when it was due (--rate) */
};
_Static_assert(sizeof(struct msg) == 24, "no padding on the wire");

enum phase { PHASE_JOIN, PHASE_READY, PHASE_WARMUP, PHASE_COUNT, PHASE_DRAIN, PHASE_END };

/** struct member - All state of this process. Options come first. */
struct member {
	cpg_handle_t cpg;
	int fd; /* of @cpg */
	struct cpg_name group;
	unsigned int members;  /* of the group */
	unsigned int inflight; /* own messages that are outstanding */
	unsigned int size;     /* of a message, bytes */
	unsigned int gap_us;   /* --latency: pause between two messages */
	unsigned int rate;     /* messages per second; 0: no group run */
	double seconds, warmup_s, join_timeout_s;
	bool latency;
	const char *samples_file; /* NULL: none */

	enum phase phase;
	bool sender; /* sends DATA: always in a throughput run, one member in a latency run */
	uint32_t nodeid, pid;
	unsigned int ready, done;     /* READY and DONE messages that were delivered */
	unsigned int have_members;    /* of the present membership */
	uint64_t sent, own_delivered; /* own DATA messages */
	uint64_t delivered;           /* DATA messages of all senders */
	uint64_t tryagain;            /* sends that corosync refused for the moment */
	uint64_t due_ns;              /* --rate: when the next message is due */
	uint64_t from_ns, to_ns;      /* --rate: messages that are due between them are samples */
	uint64_t *sample_ns;          /* latencies: @nsamples of @maxsamples */
	size_t nsamples, maxsamples;
	char *buf; /* message to send */
};

static struct member me = {
	.members = 1,
	.inflight = 128,
	.size = 64,
	.gap_us = 0,
	.seconds = 5,
	.warmup_s = 0.5,
	.join_timeout_s = 60,
	.group = { .length = sizeof("blbench") - 1, .value = "blbench" },
};

static const char *cs_name(cs_error_t e)
{
	switch (e) {
	case CS_ERR_LIBRARY:
		return "CS_ERR_LIBRARY (is a corosync running whose /dev/shm and network namespace "
		       "this process shares?)";
	case CS_ERR_TRY_AGAIN:
		return "CS_ERR_TRY_AGAIN (corosync is still forming its ring)";
	case CS_ERR_ACCESS:
		return "CS_ERR_ACCESS (run as root or add a uidgid file)";
	case CS_ERR_BAD_HANDLE:
		return "CS_ERR_BAD_HANDLE (corosync ended)";
	case CS_ERR_TOO_BIG:
		return "CS_ERR_TOO_BIG (choose a smaller --size)";
	default:
		return "see corotypes.h for the number";
	}
}

static void add_sample(uint64_t sent_ns)
{
	if (me.nsamples == me.maxsamples) {
		me.maxsamples = me.maxsamples ? 2 * me.maxsamples : 65536;
		me.sample_ns = realloc(me.sample_ns, me.maxsamples * sizeof(*me.sample_ns));
		if (!me.sample_ns)
			err(1, "latency samples");
	}
	me.sample_ns[me.nsamples++] = bl_mono_ns() - sent_ns;
}

static void on_deliver(cpg_handle_t cpg, const struct cpg_name *group, uint32_t nodeid,
		       uint32_t pid, void *data, size_t len)
{
	struct msg m;

	(void)cpg;
	(void)group;
	if (len < sizeof(m))
		errx(1,
		     "node %" PRIu32 " sent %zu bytes, fewer than a message head: another program "
		     "uses the group; choose another --group",
		     nodeid, len);
	memcpy(&m, data, sizeof(m));
	switch (m.kind) {
	case MSG_READY:
		me.ready++;
		return;
	case MSG_DONE:
		me.done++;
		return;
	case MSG_DATA:
		break;
	default:
		errx(1,
		     "node %" PRIu32 " sent a message of kind %" PRIu32 "; choose another --group",
		     nodeid, m.kind);
	}
	me.delivered++;
	if (nodeid != me.nodeid || pid != me.pid) {
		if (me.rate && m.sent_ns >= me.from_ns && m.sent_ns < me.to_ns)
			add_sample(m.sent_ns);
		return;
	}
	if (m.seq != me.own_delivered)
		errx(1, "own message %" PRIu64 " delivered where %" PRIu64 " was due", m.seq,
		     me.own_delivered);
	me.own_delivered++;
	if (me.latency && me.phase == PHASE_COUNT)
		add_sample(m.sent_ns);
}

static void on_confchg(cpg_handle_t cpg, const struct cpg_name *group,
		       const struct cpg_address *list, size_t nlist, const struct cpg_address *left,
		       size_t nleft, const struct cpg_address *joined, size_t njoined)
{
	const struct cpg_address *low = list;

	(void)cpg;
	(void)group;
	(void)joined;
	(void)njoined;
	me.have_members = (unsigned int)nlist;
	/*
	 * In PHASE_DRAIN and later a member that has seen every DONE may already have left. Before
	 * the first READY, rings still merge.
	 */
	if (nleft && me.phase >= PHASE_READY && me.phase < PHASE_DRAIN)
		errx(1,
		     "node %" PRIu32 " left the group during the run (reason %" PRIu32
		     "): raise the token timeout or load the machine less",
		     left[0].nodeid, left[0].reason);
	if (nlist > me.members)
		errx(1, "%zu members in the group, --members %u expected; choose another --group",
		     nlist, me.members);
	for (size_t i = 1; i < nlist; i++)
		if (list[i].nodeid < low->nodeid ||
		    (list[i].nodeid == low->nodeid && list[i].pid < low->pid))
			low = &list[i];
	if (nlist == me.members && me.phase == PHASE_JOIN)
		me.sender = !me.latency || (low->nodeid == me.nodeid && low->pid == me.pid);
}

/* Sends a message. Returns false if corosync's queue is full; dispatch before the next attempt. */
static bool try_send(enum msg_kind kind)
{
	struct msg m = { .kind = kind,
			 .seq = me.sent,
			 .sent_ns = me.rate ? me.due_ns : bl_mono_ns() };
	struct iovec iov = { .iov_base = me.buf, .iov_len = me.size };
	cs_error_t e;

	memcpy(me.buf, &m, sizeof(m));
	e = cpg_mcast_joined(me.cpg, CPG_TYPE_AGREED, &iov, 1);
	if (e == CS_ERR_TRY_AGAIN) {
		me.tryagain++;
		return false;
	}
	if (e != CS_OK)
		errx(1, "cpg_mcast_joined: error %d: %s", e, cs_name(e));
	if (kind == MSG_DATA)
		me.sent++;
	return true;
}

/* dispatches what has arrived; waits at most @wait_ns for the first message */
static void dispatch_ns(uint64_t wait_ns)
{
	const struct timespec ts = { .tv_sec = (time_t)(wait_ns / BL_NS_PER_S),
				     .tv_nsec = (long)(wait_ns % BL_NS_PER_S) };
	struct pollfd p = { .fd = me.fd, .events = POLLIN };
	uint64_t before = me.delivered;
	cs_error_t e;

	if (ppoll(&p, 1, &ts, NULL) < 0 && errno != EINTR)
		err(1, "ppoll");
	if (!(p.revents & (POLLIN | POLLHUP | POLLERR)))
		return;
	do {
		e = cpg_dispatch(me.cpg, CS_DISPATCH_ONE_NONBLOCKING);
	} while (e == CS_OK && me.delivered - before < DISPATCH_MAX);
	if (e != CS_OK && e != CS_ERR_TRY_AGAIN)
		errx(1, "cpg_dispatch: error %d: %s", e, cs_name(e));
}

static void dispatch_ms(unsigned int wait_ms)
{
	dispatch_ns(wait_ms * 1000000ull);
}

static void send_until_accepted(enum msg_kind kind)
{
	while (!try_send(kind))
		dispatch_ms(1);
}

/*
 * Fills the window and dispatches. In a latency run the window is one message, with a pause of
 * @gap_us between two.
 */
static void send_and_dispatch(void)
{
	unsigned int window = me.latency ? 1 : me.inflight;
	bool full = true;

	if (me.latency && me.sender && me.gap_us && me.sent == me.own_delivered)
		usleep(me.gap_us);
	while (me.sender && me.sent - me.own_delivered < window)
		if (!try_send(MSG_DATA)) {
			full = false;
			break;
		}
	dispatch_ms(full ? 20 : 1);
}

/* sends what is due and dispatches what has arrived; sleeps until there is something to do */
static void send_due_and_dispatch(void)
{
	uint64_t period = BL_NS_PER_S / me.rate, now;
	bool full = false;

	while (!full && me.due_ns <= bl_mono_ns() && me.due_ns < me.to_ns) {
		full = !try_send(MSG_DATA);
		if (!full)
			me.due_ns += period;
	}
	now = bl_mono_ns();
	dispatch_ns(full                    ? 100000
		    : me.due_ns >= me.to_ns ? 20000000
		    : me.due_ns > now       ? me.due_ns - now
					    : 0);
}

/*
 * Does a group run. Members begin at different phases of the period. The last READY is delivered to
 * all of them at about the same time, which is exact enough.
 */
static void run_group(void)
{
	uint64_t start = bl_mono_ns(), end;

	prctl(PR_SET_TIMERSLACK, 1UL);
	me.due_ns = start + BL_NS_PER_S / me.rate * (me.nodeid - 1) / me.members;
	me.from_ns = start + (uint64_t)(me.warmup_s * (double)BL_NS_PER_S);
	me.to_ns = me.from_ns + (uint64_t)(me.seconds * (double)BL_NS_PER_S);
	/* time for messages that others send at the end */
	end = me.to_ns + BL_NS_PER_S / 2;
	while (bl_mono_ns() < end)
		send_due_and_dispatch();
}

static void run_for(double seconds)
{
	uint64_t end = bl_mono_ns() + (uint64_t)(seconds * (double)BL_NS_PER_S);

	while (bl_mono_ns() < end)
		send_and_dispatch();
}

static void check_deadline(uint64_t deadline, const char *what, unsigned int have)
{
	if (bl_mono_ns() > deadline)
		errx(1,
		     "%s: %u of %u members within %.0f s; see corosync's log or raise "
		     "--join-timeout",
		     what, have, me.members, me.join_timeout_s);
}

static void join_group(void)
{
	cpg_callbacks_t cb = { .cpg_deliver_fn = on_deliver, .cpg_confchg_fn = on_confchg };
	uint64_t deadline = bl_mono_ns() + (uint64_t)(me.join_timeout_s * (double)BL_NS_PER_S);
	cs_error_t e;

	while ((e = cpg_initialize(&me.cpg, &cb)) != CS_OK) {
		if (bl_mono_ns() > deadline)
			errx(1, "cpg_initialize: error %d: %s", e, cs_name(e));
		usleep(50000);
	}
	e = cpg_fd_get(me.cpg, &me.fd);
	if (e != CS_OK)
		errx(1, "cpg_fd_get: error %d: %s", e, cs_name(e));
	e = cpg_local_get(me.cpg, &me.nodeid);
	if (e != CS_OK)
		errx(1, "cpg_local_get: error %d: %s", e, cs_name(e));
	me.pid = (uint32_t)getpid();
	while ((e = cpg_join(me.cpg, &me.group)) != CS_OK) {
		if (e != CS_ERR_TRY_AGAIN || bl_mono_ns() > deadline)
			errx(1, "cpg_join: error %d: %s", e, cs_name(e));
		usleep(10000);
	}
	while (me.have_members < me.members) {
		dispatch_ms(100);
		check_deadline(deadline, "membership", me.have_members);
	}
	me.phase = PHASE_READY;
	send_until_accepted(MSG_READY);
	while (me.ready < me.members) {
		dispatch_ms(100);
		check_deadline(deadline, "start", me.ready);
	}
}

static int compare_samples(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* returns the smallest sample that @per_mille of 1000 samples do not exceed, in us */
static double percentile_us(unsigned int per_mille)
{
	size_t rank = (me.nsamples * per_mille + 999) / 1000;

	return (double)me.sample_ns[rank ? rank - 1 : 0] / 1000;
}

static void print_report(uint64_t deliveries, uint64_t own, uint64_t ns)
{
	double s = (double)ns / (double)BL_NS_PER_S;

	printf("{\"schema\":%d,\"mode\":\"%s\",\"nodeid\":%" PRIu32 ",\"members\":%u,\"size_"
	       "bytes\":%u,\"inflight\":%u,"
	       "\"deliveries\":%" PRIu64 ",\"own_deliveries\":%" PRIu64 ",\"seconds\":%.6f,"
	       "\"deliveries_per_s\":%.0f,"
	       "\"send_"
	       "try_again\":%" PRIu64,
	       SCHEMA,
	       me.rate      ? "group"
	       : me.latency ? "latency"
			    : "throughput",
	       me.nodeid, me.members, me.size, me.latency ? 1 : me.inflight, deliveries, own, s,
	       (double)deliveries / s, me.tryagain);
	if ((me.latency && me.sender) || me.rate) {
		if (!me.nsamples)
			errx(1, "no message came back within %.1f s; raise --seconds", me.seconds);
		qsort(me.sample_ns, me.nsamples, sizeof(*me.sample_ns), compare_samples);
		printf(",\"gap_us\":%u,\"samples\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f", me.gap_us,
		       me.nsamples, percentile_us(500), percentile_us(990));
	}
	if (me.rate)
		printf(",\"rate\":%u,\"p999_us\":%.1f,\"max_us\":%.1f", me.rate, percentile_us(999),
		       percentile_us(1000));
	printf("}\n");
}

static void write_samples(void)
{
	int fd;

	if (!me.samples_file)
		return;
	fd = open(me.samples_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, me.sample_ns, me.nsamples * sizeof(*me.sample_ns)) !=
			      (ssize_t)(me.nsamples * sizeof(*me.sample_ns)))
		err(1, "%s", me.samples_file);
	close(fd);
}

enum opt {
	OPT_MEMBERS = 256,
	OPT_INFLIGHT,
	OPT_SIZE,
	OPT_SECONDS,
	OPT_WARMUP,
	OPT_LATENCY,
	OPT_GAP,
	OPT_RATE,
	OPT_SAMPLES,
	OPT_GROUP,
	OPT_JOIN_TIMEOUT,
	OPT_HELP
};

static const struct option options[] = {
	{ "members", required_argument, NULL, OPT_MEMBERS },
	{ "inflight", required_argument, NULL, OPT_INFLIGHT },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "warmup", required_argument, NULL, OPT_WARMUP },
	{ "latency", no_argument, NULL, OPT_LATENCY },
	{ "gap-us", required_argument, NULL, OPT_GAP },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "samples", required_argument, NULL, OPT_SAMPLES },
	{ "group", required_argument, NULL, OPT_GROUP },
	{ "join-timeout", required_argument, NULL, OPT_JOIN_TIMEOUT },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static void print_usage(FILE *f)
{
	fputs("usage: corosync_cpg --members N [options]\n"
	      "  --members N        start when N members have joined\n"
	      "  --inflight N       own messages outstanding (128)\n"
	      "  --size BYTES       message size, 24 to 65536 (64)\n"
	      "  --seconds S        length of the count (5)\n"
	      "  --warmup S         load before the count (0.5)\n"
	      "  --latency          one message at a time, from one member\n"
	      "  --gap-us US        with --latency: silence between two messages (0)\n"
	      "  --rate R           every member sends R messages a second; latency of the others' "
	      "messages\n"
	      "  --samples FILE     with --rate: append all latencies to FILE, in ns, 64 bits "
	      "each\n"
	      "  --group NAME       process group (blbench)\n"
	      "  --join-timeout S   wait for the members (60)\n"
	      "Prints one JSON line. Exit: 0 ok, 1 failed, 2 usage.\n",
	      f);
}

static double parse_number(const char *name, const char *text, double min, double max)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (errno || end == text || *end || !(v >= min && v <= max)) {
		fprintf(stderr, "corosync_cpg: --%s %s: give a number from %g to %g\n", name, text,
			min, max);
		exit(2);
	}
	return v;
}

static void parse_options(int argc, char **argv)
{
	int c, i = 0;

	while ((c = getopt_long(argc, argv, "", options, &i)) != -1) {
		const char *name = options[i].name;

		switch (c) {
		case OPT_MEMBERS:
			me.members = (unsigned int)parse_number(name, optarg, 1, CPG_MEMBERS_MAX);
			break;
		case OPT_INFLIGHT:
			me.inflight = (unsigned int)parse_number(name, optarg, 1, 1e6);
			break;
		case OPT_SIZE:
			me.size =
				(unsigned int)parse_number(name, optarg, sizeof(struct msg), 65536);
			break;
		case OPT_SECONDS:
			me.seconds = parse_number(name, optarg, 0.01, 3600);
			break;
		case OPT_WARMUP:
			me.warmup_s = parse_number(name, optarg, 0, 3600);
			break;
		case OPT_LATENCY:
			me.latency = true;
			break;
		case OPT_GAP:
			me.gap_us = (unsigned int)parse_number(name, optarg, 0, 999999);
			break;
		case OPT_RATE:
			me.rate = (unsigned int)parse_number(name, optarg, 1, 1e6);
			break;
		case OPT_SAMPLES:
			me.samples_file = optarg;
			break;
		case OPT_JOIN_TIMEOUT:
			me.join_timeout_s = parse_number(name, optarg, 0.1, 3600);
			break;
		case OPT_GROUP:
			if (!*optarg || strlen(optarg) >= sizeof(me.group.value)) {
				fprintf(stderr, "corosync_cpg: --group: give 1 to %zu characters\n",
					sizeof(me.group.value) - 1);
				exit(2);
			}
			me.group.length = (uint32_t)strlen(optarg);
			memcpy(me.group.value, optarg, me.group.length);
			break;
		case OPT_HELP:
			print_usage(stdout);
			exit(0);
		default:
			print_usage(stderr);
			exit(2);
		}
	}
	if (optind != argc) {
		print_usage(stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	uint64_t start, deliveries, own, deadline;

	parse_options(argc, argv);
	me.buf = calloc(1, me.size);
	if (!me.buf)
		err(1, "message buffer");
	join_group();
	me.phase = PHASE_WARMUP;
	if (me.rate) {
		run_group();
		me.phase = PHASE_DRAIN;
		send_until_accepted(MSG_DONE);
		while (me.done < me.members)
			dispatch_ms(20);
		print_report(me.nsamples, me.own_delivered, me.to_ns - me.from_ns);
		write_samples();
		return 0;
	}
	run_for(me.warmup_s);
	/*
	 * The warm-up of a latency run may end with an outstanding message, which must not become a
	 * sample.
	 */
	while (me.latency && me.sent != me.own_delivered)
		dispatch_ms(20);
	me.phase = PHASE_COUNT;
	deliveries = me.delivered;
	own = me.own_delivered;
	start = bl_mono_ns();
	run_for(me.seconds);
	deliveries = me.delivered - deliveries;
	own = me.own_delivered - own;
	start = bl_mono_ns() - start;
	me.phase = PHASE_DRAIN;
	send_until_accepted(MSG_DONE);
	deadline = bl_mono_ns() + (uint64_t)(me.join_timeout_s * (double)BL_NS_PER_S);
	while (me.done < me.members) {
		send_and_dispatch();
		check_deadline(deadline, "end", me.done);
	}
	me.phase = PHASE_END;
	print_report(deliveries, own, start);
	cpg_finalize(me.cpg);
	free(me.sample_ns);
	free(me.buf);
	return 0;
}
