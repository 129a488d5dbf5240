// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The doctor's look at the system clock, which the clock of each node follows. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "core/clock_source_core.h"

static const char *const daemons[] = { "chronyd", "ntpd",       "ptp4l",
				       "phc2sys", "timemaster", "systemd-timesyn" };

/* Sets @runs[k] if daemon k runs. Names of processes are cut at 15 characters. */
static void find_daemons(bool *runs)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned int k;

	while (d && (e = readdir(d))) {
		char path[300], name[32] = "";
		FILE *f;

		if (!isdigit((unsigned char)*e->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = '\0';
		if (f)
			fclose(f);
		for (k = 0; k < sizeof(daemons) / sizeof(daemons[0]); k++)
			runs[k] |= !strcmp(name, daemons[k]);
	}
	if (d)
		closedir(d);
}

/* Writes ", running: chronyd" or ", no time daemon runs". */
static void name_daemons(char *to, size_t size)
{
	bool runs[sizeof(daemons) / sizeof(daemons[0])] = { false };
	size_t n = 0;
	unsigned int k;

	find_daemons(runs);
	snprintf(to, size, "no time daemon runs");
	for (k = 0; k < sizeof(daemons) / sizeof(daemons[0]); k++)
		if (runs[k] && n < size)
			n += (size_t)snprintf(to + n, size - n, "%s%s",
					      n ? ", " : "running: ", daemons[k]);
}

void doctor_time(const struct finder *to)
{
	struct timex t = { 0 };
	char who[120];

	if (adjtimex(&t) < 0) {
		found(to, FOUND_FAIL, "system clock", "allow adjtimex(2) in the sandbox",
		      "adjtimex: %s", strerror(errno));
		return;
	}
	name_daemons(who, sizeof(who));
	if (t.status & STA_UNSYNC)
		found(to, FOUND_WARN, "system clock",
		      "run ptp4l and phc2sys, or chrony; a lab on one machine needs neither; see "
		      "docs/clocks.md",
		      "not synchronized (STA_UNSYNC): its offset from other machines is unknown; "
		      "%s",
		      who);
	else if (t.maxerror >= 0 && bl_kernel_set_zero((unsigned long long)t.maxerror))
		found(to, FOUND_OK, "system clock", "",
		      "synchronized, by somebody who reports an error of 0 whatever it is, so "
		      "that bound_us of the nodes has to say it; %s",
		      who);
	else
		found(to, FOUND_OK, "system clock", "",
		      "synchronized, to within %ld us (maxerror); %s", t.maxerror, who);
	if (t.tai)
		found(to, FOUND_OK, "TAI offset", "", "%d s", t.tai);
	else
		found(to, FOUND_WARN, "TAI offset",
		      "set it to the same value on all machines, by ptp4l, chrony (leapsectz) or "
		      "adjtimex",
		      "0: not set. Neighbours with another offset are refused (tai_mismatch)");
}
