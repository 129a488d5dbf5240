/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * true_clock - the clock of a rack of QEMU machines, read from outside of them.
 *
 * Each machine has its own clock: its kernel calibrates the CPU's counter (TSC) by itself, and goes
 * on from there. Under TCG the counter of a machine is that of the computer on which QEMU runs,
 * less a constant that is different for each machine. A page of memory that all machines share
 * (ivshmem) has the computer's counter, written again and again. A machine that finds the value v0
 * before and after it read its own counter, and later the two next values v1 and v2, knows that at
 * that moment the computer's counter was at least v0, and less than v2, which was read after v1 had
 * been written. The constant follows to within a microsecond from the best of some thousand such
 * readings, and with it the error of the machine's clock at every moment.
 *
 * Example: v0 is 1000, the machine's counter says 400, v2 is 1600: the constant lies in
 * [600, 1200]. Another reading has [590, 700]: it is at least 600 and at most 700.
 *
 * Outside:
 *	true_clock serve FILE		writes the page until it is stopped
 * In a machine:
 *	true_clock set [-o NS] [-e US]	steps the system clock to true time plus NS, sets TAI - UTC
 *					to 37 s, and declares the clock synchronised to within US
 *	true_clock keep [-e US] [-s PPM] [-v]
 *					as set, and then does what chronyd or phc2sys would do:
 *					steers the clock by its frequency, once a second, by at most
 *					PPM (500), and tells the kernel the greatest error, which is
 *					never below US; -v prints what it does
 *	true_clock step NS		steps the system clock by NS, as an operator would
 *	true_clock rate PPM		lets it run faster by PPM, a multiple of 100; keep may be
 *					running
 *	true_clock drift PPM		adds PPM to the frequency of the clock; keep takes that for
 *					a drift of the oscillator
 *	true_clock watch MAP [-n N] [-i MS]
 *					reads bus time from the pinned clock record MAP, N times
 *					(100; 0: until SIGTERM), every MS (100). Prints one line for
 *					all: samples, the greatest error, the greatest error in
 *					percent of the bound of its moment, the greatest bound, and
 *					how often and in how many intervals the clock was void. An
 *					error is counted as what it is certainly. Exit: 1 if one was
 *					greater than the published bound.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <bpf/bpf.h>

#include "core/clock_core.h"

#define PAGE_MAGIC 0x746c636bu
#define TAI_UTC_S  37
#define SLACK      200 /* counter steps that a CPU may move the reading of its counter */

/** struct page - what all machines see. */
struct page {
	uint32_t magic; /* PAGE_MAGIC, written last */
	uint32_t reserved;
	uint64_t hz;      /* of the computer's counter */
	uint64_t at;      /* counter at which true time was @utc_ns */
	uint64_t utc_ns;  /* true time: ns since 1970 */
	uint64_t counter; /* the computer's counter, again and again */
};

static volatile struct page *page;

static uint64_t counter(void)
{
	uint64_t t;

	_mm_lfence();
	t = __rdtsc();
	_mm_lfence();
	return t;
}

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "true_clock: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- outside ---- */

/*
 * Reads the counter and the clock @id at the same moment: the narrowest of some readings, since
 * this process may lose its CPU between the two. Returns the counter, and the clock in *@ns.
 */
static uint64_t both(clockid_t id, int64_t *ns)
{
	uint64_t narrowest = UINT64_MAX, at = 0;
	int i;

	for (i = 0; i < 100; i++) {
		uint64_t before = counter(), width;
		int64_t now = clock_ns(id);

		width = counter() - before;
		if (width >= narrowest)
			continue;
		narrowest = width;
		at = before + width / 2;
		*ns = now;
	}
	return at;
}

static int serve(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	uint64_t t0, t1;
	int64_t n0, n1, utc;

	if (fd < 0 || ftruncate(fd, 1 << 20))
		die(path);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		die(path);
	t0 = both(CLOCK_MONOTONIC_RAW, &n0);
	usleep(500000);
	t1 = both(CLOCK_MONOTONIC_RAW, &n1);
	page->hz = (uint64_t)((double)(t1 - t0) * 1e9 / (double)(n1 - n0));
	page->at = both(CLOCK_REALTIME, &utc);
	page->utc_ns = (uint64_t)utc;
	__atomic_store_n(&page->magic, PAGE_MAGIC, __ATOMIC_RELEASE);
	/* One millisecond of every fifty: this computer has other things to do. */
	for (;;) {
		uint64_t end = counter() + page->hz / 1000, now;

		do {
			now = counter();
			__atomic_store_n(&page->counter, now, __ATOMIC_SEQ_CST);
		} while (now < end);
		usleep(50000);
	}
}

/* ---- in a machine ---- */

static void open_page(void)
{
	glob_t g;
	size_t i;

	if (glob("/sys/bus/pci/devices/*", 0, NULL, &g))
		die("/sys/bus/pci/devices");
	for (i = 0; i < g.gl_pathc && !page; i++) {
		char path[256], text[16] = "";
		int fd;

		snprintf(path, sizeof(path), "%s/device", g.gl_pathv[i]);
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
			die(path);
		close(fd);
		if (strncmp(text, "0x1110", 6))
			continue;
		snprintf(path, sizeof(path), "%s/enable", g.gl_pathv[i]);
		fd = open(path, O_WRONLY);
		if (fd < 0 || write(fd, "1", 1) != 1)
			die(path);
		close(fd);
		snprintf(path, sizeof(path), "%s/resource2", g.gl_pathv[i]);
		fd = open(path, O_RDWR);
		if (fd < 0)
			die(path);
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (page == MAP_FAILED)
			die(path);
		close(fd);
	}
	globfree(&g);
	if (!page || page->magic != PAGE_MAGIC) {
		fprintf(stderr, "true_clock: this machine has no page with the true time\n");
		exit(2);
	}
}

/** struct offset - the computer's counter less this machine's is in [lo, hi]. */
struct offset {
	int64_t lo, hi;
};

/* Waits until the page has another value than @v. Returns that, or 0 after a second. */
static uint64_t next_value(uint64_t v)
{
	uint64_t end = counter() + page->hz, x;

	do {
		x = __atomic_load_n(&page->counter, __ATOMIC_SEQ_CST);
		if (x != v)
			return x;
	} while (counter() < end);
	return 0;
}

/*
 * Reads until the offset is known to within @ns. After three seconds it is content with 100 us,
 * which a busy computer may take longer to show, and after a minute it gives up.
 */
static struct offset calibrate(int64_t ns)
{
	int64_t per_us = (int64_t)(page->hz / 1000000), want = ns * per_us / 1000;
	struct offset o = { INT64_MIN, INT64_MAX };
	uint64_t begun = counter(), now = begun;

	for (; now - begun < 60 * page->hz; now = counter()) {
		uint64_t v0, v2, t;

		if (o.lo != INT64_MIN && o.hi != INT64_MAX &&
		    o.hi - o.lo <= (now - begun < 3 * page->hz ? want : 100 * per_us))
			break;
		v0 = __atomic_load_n(&page->counter, __ATOMIC_SEQ_CST);
		t = counter();
		if (__atomic_load_n(&page->counter, __ATOMIC_SEQ_CST) != v0)
			continue;
		v2 = next_value(v0);
		v2 = v2 ? next_value(v2) : 0;
		if (!v2)
			continue;
		if ((int64_t)(v0 - t) > o.lo)
			o.lo = (int64_t)(v0 - t);
		if ((int64_t)(v2 - t) < o.hi)
			o.hi = (int64_t)(v2 - t);
	}
	if (now - begun >= 60 * page->hz || o.hi < o.lo - 2 * SLACK) {
		fprintf(stderr, "true_clock: the page stands still, or contradicts itself\n");
		exit(2);
	}
	o.lo -= SLACK;
	o.hi += SLACK;
	return o;
}

/* True UTC in ns when the computer's counter was @c. */
static int64_t true_ns(uint64_t c)
{
	return (int64_t)page->utc_ns +
	       (int64_t)((__int128)(int64_t)(c - page->at) * 1000000000 / (int64_t)page->hz);
}

/** struct error - a clock less true time is in [lo, hi], ns. */
struct error {
	int64_t lo, hi;
};

/* @at0, @at1: this machine's counter before and after its clock was read as @ns. */
static struct error error_of(struct offset o, uint64_t at0, uint64_t at1, int64_t ns)
{
	return (struct error){ ns - true_ns(at1 + (uint64_t)o.hi),
			       ns - true_ns(at0 + (uint64_t)o.lo) };
}

static struct error system_error(struct offset o)
{
	struct error best = { INT64_MIN / 2, INT64_MAX / 2 };
	int i;

	for (i = 0; i < 20; i++) {
		uint64_t at0 = counter();
		int64_t ns = clock_ns(CLOCK_REALTIME);
		struct error e = error_of(o, at0, counter(), ns);

		if (e.hi - e.lo < best.hi - best.lo)
			best = e;
	}
	return best;
}

static void adjust(struct timex *tx, const char *what)
{
	if (adjtimex(tx) < 0)
		die(what);
}

static void step(int64_t ns)
{
	int64_t s = ns / 1000000000, rest = ns % 1000000000;

	if (rest < 0) {
		s--;
		rest += 1000000000;
	}
	adjust(&(struct timex){ .modes = ADJ_SETOFFSET | ADJ_NANO, .time = { s, rest } }, "step");
}

static void declare_synchronised(int64_t error_ns)
{
	adjust(&(struct timex){ .modes = ADJ_STATUS | ADJ_MAXERROR | ADJ_ESTERROR,
				.status = 0,
				.maxerror = (long)((error_ns + 999) / 1000),
				.esterror = (long)((error_ns + 999) / 1000) },
	       "status");
}

static int64_t magnitude(struct error e)
{
	return -e.lo > e.hi ? -e.lo : e.hi;
}

static void set(struct offset o, int64_t offset, int64_t least_ns)
{
	struct error e;
	int i;

	adjust(&(struct timex){ .modes = ADJ_TAI, .constant = TAI_UTC_S }, "TAI");
	for (i = 0; i < 3; i++) {
		e = system_error(o);
		step(offset - (e.lo + e.hi) / 2);
	}
	declare_synchronised(least_ns);
}

/* Lets the clock run faster by @ppb than it does now. */
static void faster(double ppb)
{
	struct timex tx = {};

	adjust(&tx, "frequency");
	tx.freq += (long)(ppb * 65.536);
	tx.modes = ADJ_FREQUENCY;
	adjust(&tx, "frequency");
}

static double within(double x, double limit)
{
	return x > limit ? limit : x < -limit ? -limit : x;
}

/*
 * Once a second, the clock gets two frequencies, in ppb: one that makes up for the oscillator, from
 * how far the clock went since the last look, and one that removes 0.7 of its offset in a second,
 * but not faster than @slew. Both are added to what is there, so that the drift that somebody else
 * adds looks like one of the oscillator.
 */
__attribute__((noreturn)) static void keep(struct offset o, int64_t least_ns, double slew,
					   bool verbose)
{
	double slewed = 0, before = 0;
	unsigned int looks;
	int64_t at = 0;

	set(o, 0, least_ns);
	for (looks = 0;; looks++) {
		int64_t now = clock_ns(CLOCK_MONOTONIC_RAW);
		struct error e = system_error(o);
		double off = (double)(e.lo + e.hi) / 2, went = 0, next;

		if (off > 1e6 || off < -1e6) {
			fprintf(stderr,
				"true_clock: the clock was off by %.0f ns, and is stepped\n", off);
			set(o, 0, least_ns);
			at = 0;
			continue;
		}
		/*
		 * A look during which this computer did something else says nothing, and no
		 * oscillator suddenly changes by 200 ppm: that is a step.
		 */
		if (at && e.hi - e.lo < 20000)
			went = (off - before) * 1e9 / (double)(now - at) - slewed;
		at = e.hi - e.lo < 20000 ? now : 0;
		before = off;
		if (looks >= 10 && within(went, 2e5) != went)
			went = 0;
		next = within(off * -0.7, slew);
		faster(next - slewed - within(went * 0.5, 5e5));
		slewed = next;
		declare_synchronised(magnitude(e) + least_ns);
		if (verbose) {
			printf("off %.0f ns, went %.0f ppb, slewed %.0f ppb\n", off, went, slewed);
			fflush(stdout);
		}
		sleep(1);
	}
}

static volatile sig_atomic_t stopped;

static void on_term(int sig)
{
	stopped = 1;
}

/** struct watched - what watch has seen. */
struct watched {
	unsigned int samples, voids, intervals, outside; /* @intervals: in which it was void */
	int64_t worst, widest; /* ns: the greatest error, the greatest bound */
	double percent;        /* the greatest error in percent of its bound */
	bool is_void;
};

/* Says when bus time was outside of its bound, and what the system clock was like at that moment.
 */
static void say_outside(struct offset o, struct error e, int64_t bound, const struct bl_clock *c)
{
	struct error sys = system_error(o);
	struct timex t = { 0 };

	adjtimex(&t);
	printf("outside at %.1f: error %" PRId64 " to %" PRId64 " ns, bound %" PRId64 " ns; ",
	       (double)clock_ns(CLOCK_MONOTONIC) / 1e9, e.lo, e.hi, bound);
	printf("system clock %" PRId64 " to %" PRId64 " ns, maxerror %ld us%s; source %llu ns\n",
	       sys.lo, sys.hi, t.maxerror, t.status & STA_UNSYNC ? ", unsynchronised" : "",
	       c->source_ns);
	fflush(stdout);
}

static void sample(struct watched *w, const struct bl_clock *map, struct offset o)
{
	struct bl_clock before, after, *c = &after;
	uint64_t at0, at1, mono;
	int64_t bound, least;
	struct error e;

	/* Bus time and bound of one record: again if the daemon has written meanwhile. */
	do {
		memcpy(&before, map, sizeof(before));
		at0 = counter();
		mono = (uint64_t)clock_ns(CLOCK_MONOTONIC);
		at1 = counter();
		memcpy(&after, map, sizeof(after));
	} while (memcmp(&before, &after, sizeof(after)));
	w->samples++;
	if (!bl_clock_usable(c, mono)) {
		w->intervals += !w->is_void;
		w->is_void = true;
		w->voids++;
		return;
	}
	w->is_void = false;
	e = error_of(o, at0, at1, (int64_t)bl_clock_at(c, mono) - TAI_UTC_S * 1000000000ll);
	bound = (int64_t)bl_clock_bound(c, mono);
	least = e.lo > 0 ? e.lo : e.hi < 0 ? -e.hi : 0;
	if (least > w->worst)
		w->worst = least;
	if (bound > w->widest)
		w->widest = bound;
	if (100.0 * (double)least / (double)bound > w->percent)
		w->percent = 100.0 * (double)least / (double)bound;
	if (least > bound) {
		w->outside++;
		say_outside(o, e, bound, c);
	}
}

static int watch(struct offset o, const char *map, unsigned int n, unsigned int ms)
{
	struct watched w = {};
	const struct bl_clock *c;
	int fd = bpf_obj_get(map);

	if (fd < 0)
		die(map);
	c = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (c == MAP_FAILED)
		die(map);
	signal(SIGTERM, on_term);
	while (!stopped && (!n || w.samples < n)) {
		sample(&w, c, o);
		usleep(ms * 1000);
	}
	printf("samples %u, greatest error %" PRId64 " ns and %.1f %% of the bound, greatest bound "
	       "%" PRId64 " ns, void %u in %u intervals, outside %u\n",
	       w.samples, w.worst, w.percent, w.widest, w.voids, w.intervals, w.outside);
	return w.outside ? 1 : 0;
}

int main(int argc, char **argv)
{
	int64_t offset = 0, least_ns = 20000;
	double slew = 5e5;
	bool verbose = false;
	unsigned int n = 100, ms = 100;
	struct offset o;
	const char *what = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";
	int opt;

	if (!strcmp(what, "serve") && argc == 3)
		return serve(arg);
	if (!strcmp(what, "step") && argc == 3) {
		step(atoll(arg));
		return 0;
	}
	if (!strcmp(what, "drift") && argc == 3) {
		faster(atof(arg) * 1000);
		return 0;
	}
	if (!strcmp(what, "rate") && argc == 3) {
		adjust(&(struct timex){ .modes = ADJ_TICK, .tick = 10000 + atol(arg) / 100 }, "rat"
											      "e");
		return 0;
	}
	while ((opt = getopt(argc, argv, "o:e:n:i:s:v")) != -1) {
		switch (opt) {
		case 'o':
			offset = atoll(optarg);
			break;
		case 'e':
			least_ns = atoll(optarg) * 1000;
			break;
		case 's':
			slew = atof(optarg) * 1000;
			break;
		case 'v':
			verbose = true;
			break;
		case 'n':
			n = (unsigned int)atoi(optarg);
			break;
		case 'i':
			ms = (unsigned int)atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	what = optind < argc ? argv[optind] : "";
	open_page();
	o = calibrate(2000);
	if (!strcmp(what, "set")) {
		set(o, offset, least_ns);
		return 0;
	}
	if (!strcmp(what, "keep"))
		keep(o, least_ns, slew, verbose);
	if (!strcmp(what, "watch") && optind + 1 < argc)
		return watch(o, argv[optind + 1], n, ms);
	fprintf(stderr, "usage: true_clock serve|set|keep|step|rate|drift|watch; see "
			"true_clock.c\n");
	return 2;
}
