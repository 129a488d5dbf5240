// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The source "ptp4l" (loader/clock/ptp4l.c) against a ptp4l that lies, is silent, ends and comes
 * back: a socket of this process, which answers when the case says so. The hardware clock is a
 * variable.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/ptp_core.h"
#include "loader/clock/phc.h"
#include "loader/clock/source.h"

#define SEC  1000000000ULL
#define TICK 250000000ULL

static char dir[] = "/tmp/test_ptp4l_XXXXXX";
static char path[64], own[64];
static int server = -1, told, opened, phc_rc, path_rc;
static char phc_asked[64];
static struct bl_phc_reading phc;
static struct timex fake_tx;
static struct bl_clock_memory memory;
static struct bl_clock_options options;
static struct bl_clock_sample sample;
static uint64_t mono;
static int64_t real_ahead; /* CLOCK_REALTIME - CLOCK_MONOTONIC */

/* what the fake ptp4l says */
static struct {
	int64_t offset, ingress, delay;
	uint8_t gm, clock, gm_present, state[4], stamping, flags, domain;
	uint16_t steps, utc, ports;
	int lie; /* the question about which it lies; -1: none */
	enum { CUT, ERROR, SEQUENCE, DOMAIN, OTHER, MUTE, LIES } how;
} says;

int __wrap_adjtimex(struct timex *tx);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
void __wrap_bl_log(int level, const char *fmt, ...);
int __wrap_bl_phc_path(char *buf, size_t size, const char *interface);
int __wrap_bl_phc_open(struct bl_phc *p, const char *at);
int __wrap_bl_phc_read(struct bl_phc *p, struct bl_phc_reading *r);
void __wrap_bl_phc_close(struct bl_phc *p);

int __wrap_adjtimex(struct timex *tx)
{
	*tx = fake_tx;
	return TIME_OK;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns = mono + (id == CLOCK_REALTIME ? (uint64_t)real_ahead : 0);

	*t = (struct timespec){ .tv_sec = (time_t)(ns / SEC), .tv_nsec = (long)(ns % SEC) };
	return 0;
}

void __wrap_bl_log(int level, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
	told++;
}

int __wrap_bl_phc_path(char *buf, size_t size, const char *interface)
{
	if (!path_rc)
		snprintf(buf, size, "/dev/%s", interface);
	return path_rc;
}

int __wrap_bl_phc_open(struct bl_phc *p, const char *at)
{
	snprintf(phc_asked, sizeof(phc_asked), "%s", at);
	p->fd = phc_rc ? -1 : 1000;
	opened += !phc_rc;
	return phc_rc;
}

int __wrap_bl_phc_read(struct bl_phc *p, struct bl_phc_reading *r)
{
	assert_int_equal(p->fd, 1000);
	*r = phc;
	return phc_rc;
}

void __wrap_bl_phc_close(struct bl_phc *p)
{
	opened -= p->fd >= 0;
	p->fd = -1;
}

/* ---- the fake ptp4l ---- */

static void start_server(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	server = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_true(server >= 0);
	assert_int_equal(bind(server, (struct sockaddr *)&a, sizeof(a)), 0);
}

static void stop_server(void)
{
	close(server);
	server = -1;
}

static void put(uint8_t *to, uint64_t v, unsigned int n)
{
	while (n--) {
		to[n] = (uint8_t)v;
		v >>= 8;
	}
}

/* Writes the answer to the question of @id, for port @port. Returns the length of its data. */
static uint32_t write_data(uint8_t *d, uint16_t id, uint16_t port)
{
	memset(d, 0, 64);
	switch (id) {
	case BL_PTP_ID_STATUS:
		put(d, (uint64_t)says.offset, 8);
		put(d + 8, (uint64_t)says.ingress, 8);
		put(d + 38, says.gm_present, 4);
		d[42] = says.gm;
		return sizeof(struct bl_ptp_status);
	case BL_PTP_ID_CURRENT:
		put(d, says.steps, 2);
		put(d + 10, (uint64_t)says.delay << 16, 8);
		return sizeof(struct bl_ptp_current);
	case BL_PTP_ID_PROPERTIES:
		put(d, says.utc, 2);
		d[2] = says.flags;
		return sizeof(struct bl_ptp_properties);
	case BL_PTP_ID_DEFAULT:
		put(d + 2, says.ports, 2);
		d[10] = says.clock;
		d[18] = says.domain;
		return sizeof(struct bl_ptp_default);
	default:
		put(d + 8, port, 2);
		d[10] = says.state[port & 3];
		d[11] = says.stamping;
		d[12] = 4;
		memcpy(d + 13, "eth0", 4);
		return sizeof(struct bl_ptp_port) + 4;
	}
}

/* Answers all that has been asked. Returns how many questions there were. */
static unsigned int serve(void)
{
	struct sockaddr_un from;
	uint8_t b[256];
	unsigned int n;

	for (n = 0;; n++) {
		struct bl_ptp_msg *m = (struct bl_ptp_msg *)b;
		socklen_t alen = sizeof(from);
		ssize_t got = recvfrom(server, b, sizeof(b), 0, (struct sockaddr *)&from, &alen);
		uint16_t id, port;
		uint32_t len;
		int lies;

		if (got < 0)
			return n;
		assert_int_equal(got, BL_PTP_ASK_BYTES);
		assert_int_equal(m->hops, 0);
		id = (uint16_t)bl_ptp_get(b + 52, 2);
		port = (uint16_t)bl_ptp_get(m->target + 8, 2);
		lies = says.lie >= 0 && id == bl_ptp_question_id((uint32_t)says.lie);
		if (m->domain != says.domain || (lies && says.how == MUTE))
			continue;
		memcpy(m->target, m->source, sizeof(m->target));
		m->action = BL_PTP_RESPONSE;
		len = write_data(b + BL_PTP_ASK_BYTES, id, port);
		if (lies && says.how == ERROR)
			put(b + 48, BL_PTP_TLV_ERROR, 2);
		if (lies && says.how == SEQUENCE)
			put(m->sequence, bl_ptp_get(m->sequence, 2) + BL_PTP_QUESTIONS, 2);
		if (lies && says.how == DOMAIN)
			m->domain++;
		if (lies && says.how == OTHER)
			m->target[0] ^= 1;
		put(m->length, BL_PTP_ASK_BYTES + len, 2);
		put(b + 50, 2 + len, 2);
		got = (ssize_t)(BL_PTP_ASK_BYTES + len - (lies && says.how == CUT));
		/* ptp4l would stand still if the daemon's queue were full. */
		if (sendto(server, b, (size_t)got, 0, (struct sockaddr *)&from, alen) < 0)
			assert_true(errno != EAGAIN);
	}
}

/* ---- readings ---- */

static int setup(void **state)
{
	(void)state;
	memset(&memory, 0, sizeof(memory));
	memset(&says, 0, sizeof(says));
	options = (struct bl_clock_options){ .name = "h1", .socket = path, .phc = "" };
	snprintf(options.own_path, sizeof(options.own_path), "%s", own);
	says.offset = 100;
	says.delay = 20;
	says.ingress = 1;
	says.gm = 1;
	says.clock = 2;
	says.gm_present = 1;
	says.steps = says.ports = 1;
	says.utc = 37;
	says.lie = -1;
	memset(says.state, BL_PTP_SLAVE, sizeof(says.state));
	fake_tx = (struct timex){ .tai = 37 };
	phc = (struct bl_phc_reading){ 0, 30 };
	told = opened = phc_rc = path_rc = 0;
	phc_asked[0] = '\0';
	mono = SEC;
	real_ahead = 1764000000LL * (int64_t)SEC;
	start_server();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bl_clock_ptp4l.close(&memory, &options);
	assert_int_equal(opened, 0);
	assert_int_equal(access(own, F_OK), -1);
	if (server >= 0)
		stop_server();
	return 0;
}

static int read_once(void)
{
	return bl_clock_ptp4l.read(&memory, &options, mono += TICK, &sample);
}

/* One Sync, one reading, and an answer to what it asked. */
static int step(void)
{
	int why;

	says.ingress++;
	why = read_once();
	serve();
	return why;
}

/* Readings until ptp4l's clock is believed. */
static void begin(void)
{
	assert_int_equal(step(), BL_CLOCK_ASKING);
	assert_int_equal(step(), BL_CLOCK_ASKING);
	assert_false(sample.synced);
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_true(sample.synced && sample.fresh && sample.late);
}

static void ptp4l__follows(void **state)
{
	(void)state;
	begin();
	assert_int_equal(sample.bound_ns, 120);
	assert_int_equal(sample.tai_offset_s, 37);
	/* No Sync: it is as it was. */
	says.ingress--;
	step();
	says.ingress--;
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_true(sample.synced && !sample.fresh);
	/* A huge offset is believed: the clock is that wrong. */
	says.offset = -7200 * (int64_t)SEC;
	step();
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_true(sample.fresh && sample.bound_ns == BL_CLOCK_BOUND_MAX_NS);
	assert_int_equal(told, 0);
}

static void ptp4l__states(void **state)
{
	(void)state;
	says.state[1] = BL_PTP_UNCALIBRATED;
	step();
	assert_int_equal(step(), BL_CLOCK_PTP_PORT);
	assert_string_equal(memory.detail, "port 1 of 1 is UNCALIBRATED");
	says.state[1] = 77;
	step();
	assert_int_equal(step(), BL_CLOCK_PTP_PORT);
	assert_string_equal(memory.detail, "port 1 of 1 is unknown");
	says.state[1] = BL_PTP_SLAVE;
	step();
	step();
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	says.state[1] = BL_PTP_FAULTY;
	step();
	assert_int_equal(step(), BL_CLOCK_PTP_PORT);
	assert_true(!sample.synced && !sample.fresh);
	/* the grandmaster itself, which the configuration allows or not */
	says.state[1] = BL_PTP_MASTER;
	says.gm_present = 0;
	says.clock = 1;
	step();
	assert_int_equal(step(), BL_CLOCK_PTP_MASTER);
	options.grandmaster = true;
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_true(sample.synced && sample.fresh && !sample.bound_ns);
}

/* Of three ports, the third is the slave. */
static void ptp4l__finds_the_slave(void **state)
{
	(void)state;
	says.ports = 3;
	says.state[1] = BL_PTP_MASTER;
	says.state[2] = BL_PTP_FAULTY;
	step();
	assert_int_equal(step(), BL_CLOCK_PTP_PORT);
	assert_string_equal(memory.detail, "port 1 of 3 is MASTER");
	assert_int_equal(step(), BL_CLOCK_PTP_PORT);
	assert_int_equal(step(), BL_CLOCK_ASKING);
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
}

/* One sentence for each way in which there is no ptp4l. */
static void ptp4l__gone(void **state)
{
	FILE *f;
	unsigned int k;

	(void)state;
	stop_server(); /* the file is still there: it was killed */
	for (k = 0; k < 3; k++)
		assert_int_equal(read_once(), BL_CLOCK_PTP_GONE);
	assert_non_null(strstr(memory.detail, path));
	assert_int_equal(sample.tai_offset_s, 37);
	unlink(path);
	assert_int_equal(read_once(), BL_CLOCK_PTP_GONE);
	f = fopen(path, "w"); /* no socket */
	assert_non_null(f);
	fclose(f);
	assert_int_equal(read_once(), BL_CLOCK_PTP_GONE);
	start_server();
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(read_once(), BL_CLOCK_PTP_DENIED);
	assert_int_equal(seteuid(0), 0);
	begin();
}

/* It is killed and starts again, before a reading notices, or after. */
static void ptp4l__starts_again(void **state)
{
	unsigned int k;

	(void)state;
	begin();
	stop_server();
	for (k = 0; k < 9; k++)
		assert_int_equal(read_once(), BL_CLOCK_PTP_GONE);
	assert_false(sample.synced);
	start_server();
	says.gm = 7;
	begin();
	/* It is killed before it answers, and its socket is left. */
	read_once();
	stop_server();
	assert_int_equal(read_once(), BL_CLOCK_PTP_GONE);
	start_server();
	begin();
	stop_server();
	start_server();
	/* What the former one had answered is taken, and the next questions do not reach it. */
	assert_int_equal(read_once(), BL_CLOCK_ASKING);
	assert_int_equal(serve(), BL_PTP_QUESTIONS);
	step();
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
}

/*
 * It is stopped: what it said is good for a second, then it is silent. It is asked again at times,
 * but never so much that its queue, or the daemon's, were full of answers. Then it goes on.
 */
static void ptp4l__stopped(void **state)
{
	unsigned int k;

	(void)state;
	begin();
	read_once(); /* takes the last answer, and asks */
	for (k = 0; k < 3; k++) {
		assert_int_equal(read_once(), BL_CLOCK_NO_REASON);
		assert_true(sample.synced && !sample.fresh);
	}
	for (k = 0; k < 100; k++) {
		assert_int_equal(read_once(), BL_CLOCK_PTP_SILENT);
		assert_true(!sample.synced && !sample.fresh);
	}
	assert_string_equal(memory.detail, path);
	assert_in_range(serve(), BL_PTP_QUESTIONS, 11);
	for (k = 0; k < 40 && (step() || !sample.fresh); k++)
		;
	assert_in_range(k, 1, 20);
	assert_true(sample.synced && sample.fresh);
	/* It is stopped and the daemon is, too: the answers to one round wait. */
	assert_int_equal(serve(), 0);
}

/* A lie about one question: not a word of that round is believed. */
static void ptp4l__lies(void **state)
{
	static const enum bl_clock_reason why[LIES] = {
		[CUT] = BL_CLOCK_PTP_WRONG,       [ERROR] = BL_CLOCK_PTP_WRONG,
		[SEQUENCE] = BL_CLOCK_PTP_SILENT, [DOMAIN] = BL_CLOCK_PTP_SILENT,
		[OTHER] = BL_CLOCK_PTP_SILENT,    [MUTE] = BL_CLOCK_PTP_SILENT,
	};
	unsigned int how, k;
	int q, is;

	for (how = 0; how < LIES; how++)
		for (q = 0; q < BL_PTP_QUESTIONS; q++) {
			begin();
			says.lie = q;
			says.how = how;
			says.offset = 1;
			step(); /* the answer to what was asked before the lies */
			for (k = 0; k < 30; k++) {
				is = step();
				assert_false(sample.fresh);
				if (k >= 4)
					assert_int_equal(is, why[how]);
			}
			assert_false(sample.synced);
			says.lie = -1;
			for (k = 0; k < 40 && (step() || !sample.fresh); k++)
				;
			assert_true(sample.synced && sample.fresh);
			teardown(state);
			setup(state);
		}
}

/* An answer that comes after the next reading: what happened since it was asked is unknown. */
static void ptp4l__late(void **state)
{
	struct bl_clock_hold none = {};

	(void)state;
	begin();
	read_once();
	assert_true(sample.fresh);
	assert_int_equal(read_once(), BL_CLOCK_NO_REASON);
	/* Where nothing was held yet, a reading without an answer is no first word. */
	assert_true(sample.synced);
	assert_false(bl_clock_hold_read(&none, &sample, mono, 0, 0));
	says.ingress++;
	serve();
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_true(sample.synced && !sample.fresh);
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_false(sample.fresh); /* the Sync may be from that time */
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_true(sample.fresh);
}

static void ptp4l__domain(void **state)
{
	unsigned int k;

	(void)state;
	says.domain = 24;
	for (k = 0; k < 8; k++)
		step();
	assert_int_equal(step(), BL_CLOCK_PTP_SILENT);
	bl_clock_ptp4l.close(&memory, &options);
	options.domain = 24;
	begin();
}

/* The daemon's own socket: one that was left is replaced, and one of somebody else is not taken. */
static void ptp4l__own_socket(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int stranger = socket(AF_UNIX, SOCK_DGRAM, 0);
	FILE *f = fopen(own, "w");

	(void)state;
	assert_non_null(f);
	fclose(f);
	begin();
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", own);
	assert_int_equal(sendto(stranger, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, EPERM);
	close(stranger);
	unlink(own);
	f = fopen(own, "w"); /* the caretaker's */
	assert_non_null(f);
	fclose(f);
	bl_clock_ptp4l.close(&memory, &options);
	assert_int_equal(unlink(own), 0);
	snprintf(options.own_path, sizeof(options.own_path), "%s/no/where", dir);
	assert_int_equal(read_once(), BL_CLOCK_OWN_SOCKET);
	assert_non_null(strstr(memory.detail, "no/where"));
}

static void ptp4l__tai(void **state)
{
	(void)state;
	says.flags = BL_PTP_TIMESCALE | BL_PTP_UTC_VALID;
	begin();
	assert_int_equal(told, 0);
	fake_tx.tai = 0;
	step();
	step();
	assert_int_equal(sample.tai_offset_s, 0);
	assert_int_equal(told, 1);
	fake_tx.tai = 37;
	step();
	fake_tx.tai = 36;
	step();
	assert_int_equal(told, 2);
}

/* With hardware timestamps, the system clock is compared with the NIC's. */
static void ptp4l__phc(void **state)
{
	(void)state;
	says.stamping = 1;
	says.flags = BL_PTP_TIMESCALE;
	phc.ahead_ns = 37 * (int64_t)SEC - 500;
	begin();
	assert_string_equal(phc_asked, "/dev/eth0");
	assert_int_equal(sample.bound_ns, 120 + 500 + 30);
	/* The system clock is stepped: that is no jump of the hardware clock, but an error. */
	real_ahead -= 100000;
	phc.ahead_ns += 100000;
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_int_equal(sample.bound_ns, 120 + 99500 + 30);
	/* It is turned as fast as a servo may: 125 us in 250 ms. */
	phc.ahead_ns -= 120000;
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	phc.ahead_ns += 120000;
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	/* 200 ms: this reading and the next do not count. */
	phc.ahead_ns += 200000000;
	assert_int_equal(step(), BL_CLOCK_PHC_JUMPED);
	assert_false(sample.synced || sample.fresh);
	assert_non_null(strstr(memory.detail, "/dev/eth0, by 200"));
	assert_int_equal(step(), BL_CLOCK_PHC_JUMPED);
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_true(sample.fresh);
	assert_int_equal(sample.bound_ns, 120 + 200099500 + 30);
	/* It cannot be read any more, or has gone with its NIC. */
	phc_rc = -ENODEV;
	assert_int_equal(step(), BL_CLOCK_PHC_GONE);
	assert_int_equal(opened, 0);
	assert_int_equal(step(), BL_CLOCK_PHC_GONE);
	path_rc = -EOPNOTSUPP;
	assert_int_equal(step(), BL_CLOCK_PHC_GONE);
	assert_non_null(strstr(memory.detail, "eth0: "));
	phc_rc = path_rc = 0;
	assert_int_equal(step(), BL_CLOCK_NO_REASON);
	assert_true(sample.fresh);
}

/* The key "phc" says which, or that there is none. */
static void ptp4l__phc_of_the_configuration(void **state)
{
	(void)state;
	options.phc = "/dev/ptp9";
	begin();
	assert_string_equal(phc_asked, "/dev/ptp9");
	assert_int_equal(sample.bound_ns, 150);
	teardown(state);
	setup(state);
	options.phc = "none";
	says.stamping = 1;
	begin();
	assert_string_equal(phc_asked, "");
	assert_int_equal(sample.bound_ns, 120);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir) || chmod(dir, 0777))
		return -1;
	snprintf(path, sizeof(path), "%s/ptp4l", dir);
	snprintf(own, sizeof(own), "%s/own", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ptp4l__follows),
		CASE(ptp4l__states),
		CASE(ptp4l__finds_the_slave),
		CASE(ptp4l__gone),
		CASE(ptp4l__starts_again),
		CASE(ptp4l__stopped),
		CASE(ptp4l__lies),
		CASE(ptp4l__late),
		CASE(ptp4l__domain),
		CASE(ptp4l__own_socket),
		CASE(ptp4l__tai),
		CASE(ptp4l__phc),
		CASE(ptp4l__phc_of_the_configuration),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
