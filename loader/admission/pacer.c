// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pacer's threads (maps/pace_abi.h): one per datapath CPU, for all nodes of the process that
 * have admission there. Each runs the program bl_pacer by bpf_prog_test_run with live frames, call
 * after call, and sleeps in between when no node has a frame due.
 *
 * Example, a lab of 8 hosts and a switch on CPU 0: one thread, 9 places in "pace_progs". Under
 * traffic a call is about 40000 turns, 4 ms. After the last frame calls are 200 us long. 200 us
 * later, with nothing due within 100 us, the thread sets @asleep in the 9 pages, issues a full
 * fence, reads the 9 bl_due.next, and polls the 9 bells until 30 us before the least of these
 * times.
 *
 * A thread has an ordinary priority (SCHED_OTHER), and after each batch the kernel lets other
 * threads run: a spinning pacer takes only what is left of the CPU and never stalls them
 * (docs/design-notes.md has the effects of other priorities). A signal ends a call within a batch,
 * with EINTR.
 *
 * The lock guards the list of nodes. It is never held during a call or a sleep, so a node is added
 * and removed in microseconds; a call that still runs the node's program holds references of its
 * own.
 */
#include "loader/admission/pacer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "base/log.h"
#include "base/netns_keep.h"
#include "base/thread.h"
#include "base/time.h"
#include "core/core.h"
#include "loader/admission/pace.h"
#include "loader/load/maps.h"
#include "loader/node_priv.h"

#include "pacer.skel.h"

#define STOP_SIGNAL (SIGRTMIN + 1) /* ends a call; its handler does nothing */
/*
 * Frames that the kernel makes, runs and flushes at once. An idle turn takes 28 ns with 16, 35 ns
 * with 1 and 29 ns with 64 (Linux 6.18, 2026-11).
 */
#define BATCH        16
#define TURNS_MIN    256
#define TURNS_MAX    65536
#define TURNS_IN_ROW 16 /* turns in a row of a node with that many links or more */
/*
 * Each call makes a page pool, and leaves it behind for a second if a frame is still on its way. So
 * calls are long under traffic.
 */
#define CALL_BUSY_NS 4000000ULL
#define CALL_IDLE_NS 200000ULL
/*
 * After 3 short calls in a row that all sent something come 16 long ones, and short ones again: a
 * wave of beacons every millisecond is not traffic.
 */
#define STREAK      3
#define STREAK_LONG 16
/* without a namespace of its own, calls are that much longer, since 24 ms lie between them */
#define SLOW_FACTOR  100
#define IDLE_NS      200000ULL    /* after that long without a frame the thread may sleep */
#define NEAR_NS      100000ULL    /* a frame that is due sooner is awaited spinning */
#define EARLY_NS     30000ULL     /* timers fire up to that late */
#define SLEEP_MAX_NS 100000000ULL /* the greatest delay by a bell that was missed */

/** struct bl_pace_thread - the pacer of one CPU. Fields without a comment are the thread's own. */
struct bl_pace_thread {
	struct bl_pace_thread *next; /* in bl_server.pace_threads */
	int cpu;                     /* -1: any */
	pthread_t thread;
	pthread_mutex_t lock; /* guards @nodes, @n, @spin */
	struct bl_pace *nodes;
	unsigned int n; /* of nodes */
	bool spin;      /* a node wants that the thread never sleeps */
	bool quit;      /* atomic: the thread is to end */
	bool slow;      /* calls wait for two RCU grace periods */
	int kick_fd;    /* ends a sleep: the list changed, or quit */
	struct bl_pacer *skel;
	uint32_t turns;
	unsigned int streak; /* calls in a row in which something was sent */
	uint64_t calls, sleeps, woken, busy_ns;
	int last_errno;
	int link; /* keeps the program in the kernel's dispatcher */
	struct bl_due due;
};

static void on_stop_signal(int sig)
{
	(void)sig;
}

/* Ends the sleep of the thread. */
static void kick_thread(struct bl_pace_thread *t)
{
	uint64_t one = 1;

	/* the counter cannot overflow, and a full counter ends a sleep, too */
	if (write(t->kick_fd, &one, sizeof(one)) < 0)
		return;
}

static void drain_kick(struct bl_pace_thread *t)
{
	uint64_t v;

	/* does not block; an empty counter is no error */
	if (read(t->kick_fd, &v, sizeof(v)) < 0)
		return;
}

/* Runs t->turns turns, and chooses how many the next call has. */
static void run_turns(struct bl_pace_thread *t)
{
	static const uint8_t frame[BL_PACE_FRAME];
	uint64_t begun = bl_mono_ns(), took, want;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = (int)t->turns, .batch_size = BATCH,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	int rc = bpf_prog_test_run_opts(bpf_program__fd(t->skel->progs.bl_pacer), &o);

	t->calls++;
	if (rc == -EINTR)
		return;
	if (rc) {
		if (rc != t->last_errno)
			bl_log(BL_LOG_ERR,
			       "the pacer cannot run: %s; nothing that is held will be sent",
			       strerror(-rc));
		t->last_errno = rc;
		usleep(10000);
		return;
	}
	t->last_errno = 0;
	took = bl_mono_ns() - begun;
	want = t->streak >= STREAK ? CALL_BUSY_NS : CALL_IDLE_NS;
	/*
	 * At the speed of this call; at most four times as many, since its turns may have been idle
	 * ones, and those of the next call send frames.
	 */
	want = want * t->turns / (took ? took : 1);
	if (want > 4ULL * t->turns)
		want = 4ULL * t->turns;
	t->turns = want < TURNS_MIN ? TURNS_MIN : want > TURNS_MAX ? TURNS_MAX : (uint32_t)want;
	if (t->slow)
		t->turns = TURNS_MAX * SLOW_FACTOR;
}

/*
 * After a call: notes whether a frame was sent, and returns when the next one is due. The programs
 * write the pages meanwhile; a value that is one turn old does no harm.
 */
static uint64_t sample_pages(struct bl_pace_thread *t)
{
	uint64_t least = BL_DUE_NEVER, next, emitted;
	struct bl_pace *p;
	bool sent = false;

	for (p = t->nodes; p; p = p->next) {
		emitted = BL_READ_ONCE(p->page->emitted);
		next = BL_READ_ONCE(p->page->next_ns);
		if (emitted != p->emitted) {
			p->emitted = emitted;
			t->busy_ns = bl_mono_ns();
			sent = true;
		}
		if (next < least)
			least = next;
		BL_WRITE_ONCE(p->page->calls, t->calls);
		BL_WRITE_ONCE(p->page->sleeps, t->sleeps);
		BL_WRITE_ONCE(p->page->woken, (uint32_t)t->woken);
	}
	t->streak = sent && t->streak < STREAK + STREAK_LONG ? t->streak + 1 : 0;
	return least;
}

static void set_asleep(struct bl_pace_thread *t, uint32_t on)
{
	struct bl_pace *p;

	for (p = t->nodes; p; p = p->next) {
		BL_WRITE_ONCE(p->page->asleep, on);
		/*
		 * Each ring of a bell leaves an empty record, and the buffer is readable until it
		 * is consumed. A ring after this ends the next sleep at once.
		 */
		if (!on)
			__atomic_store_n(p->bell_read,
					 __atomic_load_n(p->bell_written, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELEASE);
	}
}

/* The least bl_due.next, which has frames that came after the last turn; the pages do not. */
static uint64_t least_due(struct bl_pace_thread *t)
{
	uint64_t least = BL_DUE_NEVER;
	struct bl_pace *p;
	uint32_t zero = 0;

	for (p = t->nodes; p; p = p->next) {
		if (bpf_map_lookup_elem(p->due_fd, &zero, &t->due))
			return 0;
		if (t->due.next < least)
			least = t->due.next;
	}
	return least;
}

/*
 * Called with the lock, which is released during the sleep. A program that queues a frame lowers
 * bl_due.next by an atomic operation and then reads @asleep; here @asleep is set, and after a full
 * fence bl_due.next is read. So one of the two sees what the other wrote.
 */
static void sleep_now(struct bl_pace_thread *t)
{
	uint64_t now, until;
	struct pollfd fds[BL_PACE_PROGS + 1];
	struct timespec ts;
	struct bl_pace *p;
	unsigned int n = 1;
	int rc;

	set_asleep(t, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	until = least_due(t);
	now = bl_mono_ns();
	if (until > now + NEAR_NS) {
		fds[0] = (struct pollfd){ .fd = t->kick_fd, .events = POLLIN };
		for (p = t->nodes; p && n < sizeof(fds) / sizeof(fds[0]); p = p->next)
			fds[n++] = (struct pollfd){ .fd = p->bell_fd, .events = POLLIN };
		until = until - now > SLEEP_MAX_NS ? SLEEP_MAX_NS : until - now - EARLY_NS;
		ts = (struct timespec){ .tv_nsec = (long)until };
		pthread_mutex_unlock(&t->lock);
		rc = ppoll(fds, n, &ts, NULL);
		pthread_mutex_lock(&t->lock);
		t->sleeps++;
		t->woken += rc > (fds[0].revents != 0);
		drain_kick(t);
	}
	set_asleep(t, 0);
}

/*
 * bpf_prog_test_run with repeat > 1 puts its program into the kernel's XDP dispatcher and takes it
 * out again (bpf_prog_change_xdp in net/bpf/test_run.c), each time waiting for an RCU grace period:
 * 24 ms per call, in which no frame is sent. A program that is attached to a device is in the
 * dispatcher already, and a call costs 6 us (Linux 6.18, 2026-11). So it is attached to lo in an
 * empty network namespace, where no frame ever comes: in the one that the process made before it
 * gave up CAP_SYS_ADMIN (base/netns_keep.h), or else in one that only this thread has.
 */
static int attach_to_lo(void *ctx)
{
	const struct bl_pace_thread *t = ctx;
	LIBBPF_OPTS(bpf_link_create_opts, o, .flags = XDP_FLAGS_SKB_MODE);
	const int lo = 1;
	int link = bpf_link_create(bpf_program__fd(t->skel->progs.bl_pacer), lo, BPF_XDP, &o);

	return link < 0 ? -errno : link;
}

static void stay_in_dispatcher(struct bl_pace_thread *t)
{
	t->link = bl_scratch_run(attach_to_lo, t);
	if (t->link == -ENOENT)
		t->link = unshare(CLONE_NEWNET) ? -errno : attach_to_lo(t);
	if (t->link >= 0)
		return;
	errno = -t->link;
	bl_log(BL_LOG_WARN,
	       "the pacer cannot have a network namespace of its own (%s; it takes CAP_SYS_ADMIN): "
	       "it will pause for some 20 ms now and then",
	       strerror(errno));
	t->slow = true;
}

static void *pace_main(void *ctx)
{
	struct bl_pace_thread *t = ctx;
	uint64_t least;
	cpu_set_t set;
	sigset_t stop;

	pthread_setname_np(pthread_self(), "barline-pacer");
	sigemptyset(&stop);
	sigaddset(&stop, STOP_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
	CPU_ZERO(&set);
	if (t->cpu >= 0) {
		CPU_SET(t->cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			bl_log(BL_LOG_WARN, "cannot keep the pacer on CPU %d: %s", t->cpu,
			       strerror(errno));
	}
	prctl(PR_SET_TIMERSLACK, 1UL);
	stay_in_dispatcher(t);
	while (!__atomic_load_n(&t->quit, __ATOMIC_ACQUIRE)) {
		struct pollfd p = { .fd = t->kick_fd, .events = POLLIN };

		pthread_mutex_lock(&t->lock);
		least = sample_pages(t);
		if (t->n && !t->spin) {
			uint64_t now = bl_mono_ns();

			if (now - t->busy_ns > IDLE_NS && least > now + NEAR_NS)
				sleep_now(t);
		}
		if (t->n) {
			pthread_mutex_unlock(&t->lock);
			if (!__atomic_load_n(&t->quit, __ATOMIC_ACQUIRE))
				run_turns(t);
			continue;
		}
		pthread_mutex_unlock(&t->lock);
		/* a sleep that ended above may have consumed the kick that came with @quit */
		if (!__atomic_load_n(&t->quit, __ATOMIC_ACQUIRE) && poll(&p, 1, -1) > 0)
			drain_kick(t);
	}
	return NULL;
}

static void thread_free(struct bl_pace_thread *t)
{
	if (t->kick_fd >= 0)
		close(t->kick_fd);
	if (t->link >= 0)
		close(t->link);
	bl_pacer__destroy(t->skel);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* @cpu: of the thread; -1: any. Live frames need Linux 5.18. */
static int thread_start(struct bl_server *s, int cpu, struct bl_err *err)
{
	struct bl_pace_thread *t = calloc(1, sizeof(*t));
	struct sigaction act = { .sa_handler = on_stop_signal };
	int rc = 0;

	if (!t)
		return bl_fail(err, ENOMEM, "out of memory");
	pthread_mutex_init(&t->lock, NULL);
	t->cpu = cpu;
	t->link = -1;
	t->turns = TURNS_MIN;
	t->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->kick_fd < 0)
		rc = bl_fail(err, errno, "cannot make an eventfd: %s", strerror(errno));
	if (!rc) {
		t->skel = bl_pacer__open_and_load();
		if (!t->skel)
			rc = bl_load_failed(errno, "pacer", err);
	}
	if (!rc) {
		sigaction(STOP_SIGNAL, &act, NULL); /* no SA_RESTART */
		rc = bl_thread_start(&t->thread, NULL, pace_main, t);
		if (rc)
			rc = bl_fail(err, rc, "cannot start the pacer's thread: %s", strerror(rc));
	}
	if (rc) {
		thread_free(t);
		return rc;
	}
	t->next = s->pace_threads;
	s->pace_threads = t;
	return 0;
}

static struct bl_pace_thread *find_thread(struct bl_server *s, int cpu)
{
	struct bl_pace_thread *t;

	for (t = s->pace_threads; t && t->cpu != cpu; t = t->next)
		;
	return t;
}

void bl_pacer_spare(struct bl_server *s, pthread_t thread)
{
	struct bl_pace_thread *t;
	cpu_set_t set;

	if (pthread_getaffinity_np(thread, sizeof(set), &set))
		return;
	for (t = s->pace_threads; t; t = t->next)
		if (t->cpu >= 0)
			CPU_CLR((size_t)t->cpu, &set);
	if (CPU_COUNT(&set))
		pthread_setaffinity_np(thread, sizeof(set), &set);
}

/*
 * Must not be called from within a node's network namespace: the thread would keep that namespace
 * for as long as the process lives.
 */
int bl_pacer_start(struct bl_server *s, int cpu, struct bl_err *err)
{
	return find_thread(s, cpu) ? 0 : thread_start(s, cpu, err);
}

static void unmap_pages(struct bl_pace *p)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	if (p->page)
		munmap(p->page, size);
	if (p->bell_read)
		munmap(p->bell_read, size);
	if (p->bell_written)
		munmap((void *)p->bell_written, size);
	p->page = NULL;
	p->bell_read = NULL;
	p->bell_written = NULL;
}

static int map_pages(struct bl_pace *p, int page_fd, struct bl_err *err)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *v;

	v = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
	if (v == MAP_FAILED)
		return bl_fail(err, errno, "cannot map %s: %s", BL_MAP_PACE_PAGE, strerror(errno));
	p->page = v;
	/*
	 * A ring buffer's first page has the reader's position, the second one the writer's, which
	 * is read-only.
	 */
	v = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, p->bell_fd, 0);
	if (v == MAP_FAILED)
		return bl_fail(err, errno, "cannot map %s: %s", BL_MAP_PACE_BELL, strerror(errno));
	p->bell_read = v;
	v = mmap(NULL, size, PROT_READ, MAP_SHARED, p->bell_fd, (off_t)size);
	if (v == MAP_FAILED)
		return bl_fail(err, errno, "cannot map %s: %s", BL_MAP_PACE_BELL, strerror(errno));
	p->bell_written = v;
	return 0;
}

static int keep_fd(int *to, int fd, struct bl_err *err)
{
	*to = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *to < 0 ? bl_fail(err, errno, "cannot keep a descriptor for the pacer: %s",
				 strerror(errno))
		       : 0;
}

static void pace_free(struct bl_pace *p)
{
	unmap_pages(p);
	if (p->prog_fd >= 0)
		close(p->prog_fd);
	if (p->due_fd >= 0)
		close(p->due_fd);
	if (p->bell_fd >= 0)
		close(p->bell_fd);
	p->prog_fd = p->due_fd = p->bell_fd = -1;
	p->thread = NULL;
}

int bl_pacer_add(struct bl_server *s, struct bl_pace *p, int cpu, bool spin,
		 const struct bl_pace_fds *fds, struct bl_err *err)
{
	struct bl_pace_thread *t = find_thread(s, cpu);
	uint32_t k;
	int rc;

	memset(p, 0, sizeof(*p));
	p->prog_fd = p->due_fd = p->bell_fd = -1;
	if (!t)
		return bl_fail(err, ESRCH, "no pacer was started for CPU %d", cpu);
	rc = keep_fd(&p->prog_fd, fds->prog, err);
	if (!rc)
		rc = keep_fd(&p->due_fd, fds->due, err);
	if (!rc)
		rc = keep_fd(&p->bell_fd, fds->bell, err);
	if (!rc)
		rc = map_pages(p, fds->page, err);
	if (!rc) {
		pthread_mutex_lock(&t->lock);
		k = t->n;
		if (k == BL_PACE_PROGS)
			rc = bl_fail(err, ENOSPC,
				     "one pacer serves at most %u nodes; give some nodes another "
				     "datapath CPU",
				     BL_PACE_PROGS);
		else if (bpf_map_update_elem(bpf_map__fd(t->skel->maps.pace_progs), &k, &p->prog_fd,
					     BPF_ANY))
			rc = bl_fail(err, errno, "cannot give the node's program to the pacer: %s",
				     strerror(errno));
		if (!rc) {
			BL_WRITE_ONCE(p->page->asleep, 0); /* left by a daemon that was killed */
			p->emitted = BL_READ_ONCE(p->page->emitted);
			p->spin = spin;
			p->place = k;
			p->more = (uint8_t)(fds->links > TURNS_IN_ROW ? TURNS_IN_ROW - 1
					    : fds->links              ? fds->links - 1
								      : 0);
			p->thread = t;
			p->next = t->nodes;
			t->nodes = p;
			t->n++;
			t->spin |= spin;
			BL_WRITE_ONCE(t->skel->bss->bl_pace_more[k], p->more);
			BL_WRITE_ONCE(t->skel->bss->bl_pace_count, t->n);
		}
		pthread_mutex_unlock(&t->lock);
		kick_thread(t);
	}
	if (rc)
		pace_free(p);
	return rc;
}

void bl_pacer_remove(struct bl_pace *p)
{
	struct bl_pace_thread *t = p->thread;
	struct bl_pace **at, *q, *last = NULL;
	uint32_t end;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->spin = false;
	end = t->n - 1;
	for (at = &t->nodes; (q = *at);) {
		if (q->place == end)
			last = q;
		if (q == p) {
			*at = q->next;
			continue;
		}
		t->spin |= q->spin;
		at = &q->next;
	}
	/*
	 * The node in the last place moves to the one that becomes free. Meanwhile it has two
	 * places and twice as many turns, which does no harm.
	 */
	if (last && last != p &&
	    !bpf_map_update_elem(bpf_map__fd(t->skel->maps.pace_progs), &p->place, &last->prog_fd,
				 BPF_ANY)) {
		BL_WRITE_ONCE(t->skel->bss->bl_pace_more[p->place], last->more);
		last->place = p->place;
	}
	t->n--;
	BL_WRITE_ONCE(t->skel->bss->bl_pace_count, t->n);
	bpf_map_delete_elem(bpf_map__fd(t->skel->maps.pace_progs), &end);
	BL_WRITE_ONCE(p->page->asleep, 0); /* it is not paced, so programs need not ring */
	pthread_mutex_unlock(&t->lock);
	kick_thread(t);
	pace_free(p);
}

void bl_pacer_wake(struct bl_pace *p)
{
	/* bl_due.next was lowered before, by an atomic operation; pairs with sleep_now() */
	if (p->thread && BL_READ_ONCE(p->page->asleep) &&
	    __sync_lock_test_and_set(&p->page->asleep, 0))
		kick_thread(p->thread);
}

void bl_pacer_stop(struct bl_server *s)
{
	struct bl_pace_thread *t;

	while ((t = s->pace_threads)) {
		s->pace_threads = t->next;
		__atomic_store_n(&t->quit, true, __ATOMIC_RELEASE);
		kick_thread(t);
		/*
		 * If the signal comes between the check of @quit and the call, the call runs to its
		 * end, 4 ms.
		 */
		pthread_kill(t->thread, STOP_SIGNAL);
		pthread_join(t->thread, NULL);
		thread_free(t);
	}
}
