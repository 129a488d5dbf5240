/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The driver of `lab run fct`, inside the lab: leads one process per host through the phases
 * listen, connect, run and stop (fct.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/time.h"
#include "bench/fct/fct.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"

#define READY_NS 30000000000ULL
#define LINK_NS  30000000000ULL /* limit for the time without a new connection */
#define BEGIN_NS 50000000ULL
#define POLL_NS  20000000ULL
#define STOP_NS  5000000000ULL

struct run {
	struct lab *lab;
	const struct fct_params *p;
	struct fct_cell *c;
	struct fct_host host[LAB_HOSTS_MAX];
	pid_t pid[LAB_HOSTS_MAX];
};

static const char *policy_text(const struct run *r)
{
	return r->p->policy[r->c->policy].text;
}

/* returns 0, or 1 after a message if the process of a host has ended */
static int check_hosts(struct run *r)
{
	unsigned int i;
	int st;

	for (i = 0; i < r->lab->spec.hosts; i++)
		if (r->pid[i] > 0 && waitpid(r->pid[i], &st, WNOHANG) == r->pid[i]) {
			r->pid[i] = 0;
			return cli_fail("%s",
					r->c->error[0] ? r->c->error : "a host's process died");
		}
	return 0;
}

static int start_hosts(struct run *r)
{
	const unsigned int n = r->lab->spec.hosts;
	uint64_t until = bl_mono_ns() + READY_NS;
	unsigned int i, k;

	for (i = 0; i < n; i++) {
		r->host[i] = (struct fct_host){ .p = r->p, .c = r->c, .index = i };
		for (k = 0; k < n; k++)
			lab_app_addr(r->lab, k, r->host[i].addr[k]);
		r->pid[i] = lab_host_fork(i, fct_host_main, &r->host[i]);
		if (r->pid[i] < 0)
			return 1;
	}
	while (atomic_load(&r->c->ready) < n) {
		if (check_hosts(r))
			return 1;
		if (bl_mono_ns() > until)
			return cli_fail("only %u of %u hosts are ready after %llu s",
					atomic_load(&r->c->ready), n, READY_NS / 1000000000);
		nap_ns(POLL_NS / 10);
	}
	return 0;
}

static int wait_for_connections(struct run *r)
{
	uint64_t moved = bl_mono_ns();
	uint32_t seen = 0, now;

	atomic_store(&r->c->phase, FCT_CONNECT);
	while (!r->p->fresh && (now = atomic_load(&r->c->linked)) < r->p->nplan) {
		out_progress("%s: %u of %u connections", policy_text(r), now, r->p->nplan);
		if (now != seen)
			moved = bl_mono_ns();
		seen = now;
		if (check_hosts(r))
			return 1;
		if (r->c->error[0])
			return cli_fail("%s", r->c->error);
		if (bl_mono_ns() - moved > LINK_NS)
			return cli_fail("only %u of %u connections are made, and none for %llu s",
					now, r->p->nplan, LINK_NS / 1000000000);
		nap_ns(POLL_NS);
	}
	return 0;
}

static void show_progress(const struct run *r, uint64_t end)
{
	uint64_t now = bl_mono_ns(), span = end - r->c->t0_ns,
		 at = now > r->c->t0_ns ? now - r->c->t0_ns : 0;

	out_progress("%s: %.1f of %.1f s, %u of %u flows finished", policy_text(r),
		     (double)at / 1e9, (double)span / 1e9, atomic_load(&r->c->finished),
		     r->p->nplan);
}

/* waits until all flows have finished, or are given up */
static int wait_for_flows(struct run *r)
{
	const uint64_t end = r->c->t0_ns + r->p->plan[r->p->nplan - 1].start_ns;

	while (atomic_load(&r->c->finished) < r->p->nplan &&
	       bl_mono_ns() < end + r->p->grace_s * 1000000000ULL) {
		if (check_hosts(r))
			return 1;
		show_progress(r, end);
		nap_ns(POLL_NS);
	}
	r->c->wall_ns = bl_mono_ns() - r->c->t0_ns;
	return 0;
}

static void stop_hosts(struct run *r)
{
	uint64_t until = bl_mono_ns() + STOP_NS;
	unsigned int i;

	atomic_store(&r->c->phase, FCT_STOP);
	for (i = 0; i < r->lab->spec.hosts; i++) {
		while (r->pid[i] > 0 && bl_mono_ns() < until) {
			if (waitpid(r->pid[i], NULL, WNOHANG) == r->pid[i])
				r->pid[i] = 0;
			else
				nap_ns(POLL_NS / 10);
		}
		kill_child(&r->pid[i]);
	}
}

int fct_drive(struct lab *lab, const struct fct_params *p, struct fct_cell *c)
{
	struct run *r = calloc(1, sizeof(*r));
	struct fct_sampler *sampler = NULL;
	int err;

	if (!r)
		return cli_fail("out of memory");
	r->lab = lab;
	r->p = p;
	r->c = c;
	lab_leave_datapath_alone(lab);
	/* hundreds of beacons, so that every link is live and the start of the lab is over */
	nap_ns(300000000);
	err = start_hosts(r) || wait_for_connections(r);
	if (!err)
		sampler = fct_sampler_new(lab->spec.admission.on);
	err |= !sampler;
	if (!err) {
		c->t0_ns = bl_mono_ns() + BEGIN_NS;
		atomic_store(&c->phase, FCT_RUN);
		err = wait_for_flows(r);
	}
	stop_hosts(r);
	if (sampler)
		err |= fct_sampler_end(sampler, c);
	out_progress_end();
	c->done = !err;
	free(r);
	return err;
}
