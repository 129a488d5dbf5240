// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The CPUs that serve a transmit queue of a NIC. A thread that sends there from another CPU has
 * that CPU woken for each frame, and the cache lines of the queue move between the two.
 *
 * Asked in this order: the CPUs that XPS gives to the queue; the CPUs of the queue's interrupt. An
 * interrupt is found by its name, which drivers choose freely: "eth0-TxRx-0", "eth0-tx-0",
 * "virtio3-output.0", "mlx5_comp0@pci:0000:03:00.0". A name that says that it transmits is
 * preferred to one that only has the queue's number; a name that says that it receives does not
 * count. An answer that names every CPU does not count either. A device without hardware (veth) has
 * no answer at all.
 */
#include "loader/load/tx_cpu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/iface.h"
#include "base/proc.h"
#include "loader/load/sysfs.h"

/*
 * Parses "00000000,00000005": words of 32 bits, the highest first. False: malformed, or it names no
 * CPU.
 */
static bool parse_cpu_mask(const char *text, cpu_set_t *set)
{
	size_t digits = 0;
	const char *p;

	CPU_ZERO(set);
	for (p = text + strlen(text); p-- > text;) {
		int v;

		if (*p == ',')
			continue;
		if (!isxdigit((unsigned char)*p))
			return false;
		v = isdigit((unsigned char)*p) ? *p - '0' : tolower((unsigned char)*p) - 'a' + 10;
		for (int bit = 0; bit < 4; bit++)
			if (v & 1 << bit && digits * 4 + (size_t)bit < CPU_SETSIZE)
				CPU_SET(digits * 4 + (size_t)bit, set);
		digits++;
	}
	return CPU_COUNT(set) > 0;
}

bool bl_cpus_parse(const char *text, cpu_set_t *set)
{
	CPU_ZERO(set);
	while (*text) {
		char *end;
		unsigned long from, to;

		if (!isdigit((unsigned char)*text))
			return false;
		from = to = strtoul(text, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			to = strtoul(end + 1, &end, 10);
		if ((*end && *end != ',') || to < from)
			return false;
		for (; from <= to && from < CPU_SETSIZE; from++)
			CPU_SET(from, set);
		text = *end ? end + 1 : end;
	}
	return CPU_COUNT(set) > 0;
}

/* How well @name fits the interrupt of transmit queue @queue; 0: it is another interrupt. */
static int irq_name_score(const char *name, unsigned int queue)
{
	size_t len = strcspn(name, "@"), at = len;
	bool sends, receives;
	char low[64] = "";

	for (size_t k = 0; k < len && k < sizeof(low) - 1; k++)
		low[k] = (char)tolower((unsigned char)name[k]);
	while (at && isdigit((unsigned char)name[at - 1]))
		at--;
	if (at == len || strtoul(name + at, NULL, 10) != queue)
		return 0;
	sends = strstr(low, "tx") || strstr(low, "output") || strstr(low, "comp");
	receives = strstr(low, "rx") || strstr(low, "input");
	return sends ? 2 : !receives;
}

/*
 * Returns the number of the interrupt whose action fits the queue best; -1: none. An action is a
 * folder below /proc/irq/N.
 */
static int find_queue_irq(int sys, int proc, const char *msi, unsigned int queue)
{
	int fd = openat(sys, msi, O_RDONLY | O_DIRECTORY | O_CLOEXEC), best = 0, irq = -1;
	struct dirent *e, *a;
	char path[300];
	DIR *d, *acts;

	d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while ((e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "irq/%s", e->d_name);
		fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		acts = fd >= 0 ? fdopendir(fd) : NULL;
		while (acts && (a = readdir(acts)))
			if (a->d_type == DT_DIR && irq_name_score(a->d_name, queue) > best) {
				best = irq_name_score(a->d_name, queue);
				irq = atoi(e->d_name);
			}
		if (acts)
			closedir(acts);
		else if (fd >= 0)
			close(fd);
	}
	closedir(d);
	return irq;
}

/* An answer counts if it excludes some CPU. */
static bool names_some_cpus(const cpu_set_t *set)
{
	return CPU_COUNT(set) < (int)sysconf(_SC_NPROCESSORS_CONF);
}

static bool cpus_by_xps(int sys, const char *ifname, unsigned int queue, cpu_set_t *set)
{
	char path[128], text[2048];

	snprintf(path, sizeof(path), "class/net/%s/queues/tx-%u/xps_cpus", ifname, queue);
	return !bl_read_line(sys, path, text, sizeof(text)) && parse_cpu_mask(text, set) &&
	       names_some_cpus(set);
}

static bool cpus_by_irq(int sys, int proc, const char *ifname, unsigned int queue, cpu_set_t *set)
{
	/* The second one is for virtio, whose device is below the PCI device. */
	static const char *const where[] = { "device/msi_irqs", "device/../msi_irqs" };
	static const char *const lists[] = { "effective_affinity_list", "smp_affinity_list" };
	char path[128], text[2048];
	int irq = -1;

	for (size_t k = 0; irq < 0 && k < sizeof(where) / sizeof(where[0]); k++) {
		snprintf(path, sizeof(path), "class/net/%s/%s", ifname, where[k]);
		irq = find_queue_irq(sys, proc, path, queue);
	}
	for (size_t k = 0; irq >= 0 && k < sizeof(lists) / sizeof(lists[0]); k++) {
		snprintf(path, sizeof(path), "irq/%d/%s", irq, lists[k]);
		if (!bl_read_line(proc, path, text, sizeof(text)) && bl_cpus_parse(text, set) &&
		    names_some_cpus(set))
			return true;
	}
	return false;
}

bool bl_tx_cpus_at(int sys, int proc, const char *ifname, unsigned int queue, cpu_set_t *set)
{
	if (cpus_by_xps(sys, ifname, queue, set) || cpus_by_irq(sys, proc, ifname, queue, set))
		return true;
	CPU_ZERO(set);
	return false;
}

bool bl_tx_cpus(const struct bl_iface *i, unsigned int queue, cpu_set_t *set)
{
	int sys = bl_sysfs_open(), proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool known = sys >= 0 && proc >= 0 && bl_tx_cpus_at(sys, proc, i->name, queue, set);

	if (sys >= 0)
		close(sys);
	if (proc >= 0)
		close(proc);
	return known;
}
