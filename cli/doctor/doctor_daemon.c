// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The doctor's look at the daemon of a node, and at its session with a controller. The daemon is
 * not asked: its pulse says that its event loop turns, and /proc whether its process is stopped.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "base/time.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/health/judge.h"
#include "loader/pulse.h"

/* State of the process that wrote the pulse; see struct daemon_facts. */
static char state_of(const struct bl_pulse *p)
{
	struct stat own;
	uint64_t started;

	if (stat("/proc/self/ns/pid", &own) || own.st_ino != p->pid_ns)
		return '?';
	if (bl_proc_stat((pid_t)p->pid, BL_PROC_STARTED, &started) || started != p->start_time)
		return 0;
	return bl_proc_state((pid_t)p->pid);
}

static void report(const struct finder *to, const struct bl_node_ref *ref, const struct bl_pulse *p,
		   const struct daemon_facts *f)
{
	const struct verdict v = judge_daemon(f);
	const char *role = bl_role_name(ref->role), *who, *name = ref->meta.name;
	unsigned long long now = bl_mono_ns();
	char cure[160];

	who = p->state == BL_PULSE_CARETAKER ? "caretaker" : "daemon";
	if (!strcmp(v.word, "none") || !strcmp(v.word, "stopped")) {
		snprintf(cure, sizeof(cure),
			 "start it again: `systemctl start barlined@NAME`, barlined, or `barline "
			 "%s up`",
			 role);
		found_as(to, CHECK_DAEMON, v.word, v.level, name, cure,
			 f->pulse ? "no daemon serves the %s; the last one was process %u"
				  : "no daemon serves the %s",
			 role, p->pid);
	} else if (!strcmp(v.word, "sigstop")) {
		snprintf(cure, sizeof(cure), "`kill -CONT %u`", p->pid);
		found_as(to, CHECK_DAEMON, v.word, v.level, name, cure,
			 "the %s (process %u) is stopped by a signal or a debugger", who, p->pid);
	} else if (!strcmp(v.word, "stuck")) {
		snprintf(cure, sizeof(cure),
			 "see what it does (`cat /proc/%u/stack`, its log), and restart it",
			 p->pid);
		found_as(to, CHECK_DAEMON, v.word, v.level, name, cure,
			 "the %s (process %u) has done nothing for %llu s", who, p->pid,
			 (unsigned long long)f->age_ns / 1000000000);
	} else if (!strcmp(v.word, "caretaker")) {
		found_as(to, CHECK_DAEMON, v.word, v.level, name, "start the daemon again",
			 "the daemon was stopped or has died; its caretaker (process %u) stands in "
			 "for %llu s more, and no new process can join",
			 p->pid, p->until_ns > now ? (p->until_ns - now) / 1000000000 : 0);
	} else if (!strcmp(v.word, "no_spare")) {
		found_as(to, CHECK_DAEMON, v.word, v.level, name,
			 "`barline events` says why its spares end (spare_lost)",
			 "the daemon (process %u) has no spare caretaker: if it dies now, the %s "
			 "is silent until the next daemon runs",
			 p->pid, role);
	} else {
		found_as(to, CHECK_DAEMON, v.word, v.level, name, "", "daemon runs (process %u)%s",
			 p->pid,
			 p->spare == BL_PULSE_SPARE_READY ? ", with a spare caretaker" : "");
	}
}

static void report_session(const struct finder *to, const struct bl_node_ref *ref,
			   const struct bl_pulse *p, bool known)
{
	const struct verdict v = judge_controller(known, p->session, p->failed);
	const char *name = ref->meta.name;
	unsigned long long now = bl_mono_ns();

	if (!strcmp(v.word, "failed"))
		found_as(to, CHECK_CONTROLLER, v.word, v.level, name,
			 "end the processes that were endpoints before, or wait until they are "
			 "expelled",
			 "the node was announced as failed, and joins anew when the endpoints of "
			 "before are gone");
	else if (!strcmp(v.word, "no_session"))
		found_as(to, CHECK_CONTROLLER, v.word, v.level, name,
			 "see `barline controller show` on the controllers' machines, and their "
			 "log",
			 "no session with the controller that leads for %llu s, so failures are "
			 "not "
			 "settled: %.200s",
			 p->alone_ns && p->alone_ns < now ? (now - p->alone_ns) / 1000000000 : 0,
			 *p->trouble ? p->trouble : "none answers");
	else if (!strcmp(v.word, "ok"))
		found_as(to, CHECK_CONTROLLER, v.word, v.level, name, "",
			 "session with controller %s, epoch %llu", p->controller, p->epoch);
	else
		found_as(to, CHECK_CONTROLLER, v.word, v.level, name, "", "%s",
			 known ? "no controllers are configured" : "not known without a daemon");
}

void doctor_daemon(const struct finder *to, const struct bl_node_ref *ref)
{
	struct daemon_facts f = { 0 };
	struct bl_pulse p;
	uint64_t now;

	f.pulse = !bl_pulse_read(ref->role, ref->netns_ino, &p);
	now = bl_mono_ns();
	f.state = p.state;
	f.age_ns = now > p.beat_ns ? now - p.beat_ns : 0;
	f.process = f.pulse ? state_of(&p) : 0;
	f.spare = p.spare;
	report(to, ref, &p, &f);
	report_session(to, ref, &p, f.pulse && p.state == BL_PULSE_RUNS);
}
