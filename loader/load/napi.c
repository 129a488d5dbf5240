// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threaded NAPI: gives each port's receive work to a kernel thread, and pins that thread to the
 * port's home CPU, so that a lane has one writer. For devices without interrupts to steer, above
 * all veth.
 *
 * The threads are called napi/IFNAME-ID. Names repeat between network namespaces, so the kernel is
 * asked first for the ids and pids (netdev netlink, Linux 6.8). On older kernels /proc is searched,
 * and of threads with one name and different ids the newest are taken, which were made just now.
 * Kernel threads are visible only in the first pid namespace; elsewhere nothing can be pinned, and
 * an error says so.
 */
#include "loader/load/napi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "base/iface.h"
#include "base/log.h"
#include "base/proc.h"
#include "loader/load/prio.h"
#include "loader/load/progs.h"
#include "loader/load/sysfs.h"
#include "loader/node_cfg.h"
#include "maps/switch_abi.h"

/* From linux/netdev.h, which Debian 12 does not have. */
#define NETDEV_CMD_NAPI_GET   11
#define NETDEV_A_NAPI_IFINDEX 1
#define NETDEV_A_NAPI_PID     4
#define THREADS_MAX           64

#define PF_KTHREAD            0x00200000

/* Opens sysfs. Returns a descriptor or -errno; -ENXIO: it shows another network namespace. */
static int open_sysfs_of(const struct bl_iface *i)
{
	int sys = bl_sysfs_open();
	char path[128], text[32];

	if (sys < 0)
		return -errno;
	snprintf(path, sizeof(path), "class/net/%s/ifindex", i->name);
	if (!bl_read_line(sys, path, text, sizeof(text)) && atoi(text) == i->ifindex)
		return sys;
	close(sys);
	return -ENXIO;
}

int bl_napi_is_threaded(const struct bl_iface *i)
{
	int sys = open_sysfs_of(i), rc;
	char path[128], text[16];

	if (sys < 0)
		return sys;
	snprintf(path, sizeof(path), "class/net/%s/threaded", i->name);
	rc = bl_read_line(sys, path, text, sizeof(text));
	close(sys);
	return rc ? rc : atoi(text);
}

/* Writes @value to the attribute @attr of @i in sysfs. Returns 0 or -errno. */
static int write_sysfs_attr(const struct bl_iface *i, const char *attr, const char *value)
{
	int sys = open_sysfs_of(i), fd, rc = 0;
	char path[128];

	if (sys < 0)
		return sys;
	snprintf(path, sizeof(path), "class/net/%s/%s", i->name, attr);
	fd = openat(sys, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	close(sys);
	return rc;
}

static int enable_threaded_napi(const struct bl_iface *i, struct bl_err *err)
{
	int rc = write_sysfs_attr(i, "threaded", "1");

	if (rc == -ENXIO)
		return bl_fail(err, ENOENT,
			       "sysfs does not show %s of this network namespace; run with "
			       "CAP_SYS_ADMIN, or without threaded NAPI",
			       i->name);
	if (rc == -EACCES)
		return bl_fail(err, EACCES,
			       "cannot make the NAPI of %s threaded: only root may; start the "
			       "daemon as root with --user, or run `barlined --prepare` before it",
			       i->name);
	if (rc)
		return bl_fail(err, -rc,
			       "cannot make the NAPI of %s threaded: %s; its driver may have none "
			       "(thread_napi: false leaves it)",
			       i->name, strerror(-rc));
	return 0;
}

int bl_napi_give(const struct bl_iface *i, uid_t uid, struct bl_err *err)
{
	static const char *const attrs[] = { "threaded", "gro_flush_timeout",
					     "napi_defer_hard_irqs" };
	int sys = open_sysfs_of(i), rc = 0;
	char path[128];
	unsigned int k;

	if (sys < 0)
		return bl_fail(err, -sys, "cannot open sysfs for %s: %s", i->name, strerror(-sys));
	for (k = 0; k < sizeof(attrs) / sizeof(attrs[0]); k++) {
		snprintf(path, sizeof(path), "class/net/%s/%s", i->name, attrs[k]);
		if (fchownat(sys, path, uid, (gid_t)-1, 0))
			rc = bl_fail(err, errno, "cannot give %s of %s to the daemon's user: %s",
				     attrs[k], i->name, strerror(errno));
	}
	close(sys);
	return rc;
}

int bl_napi_gather(const struct bl_iface *i, uint64_t ns)
{
	char text[24];
	int rc;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)ns);
	rc = write_sysfs_attr(i, "gro_flush_timeout", text);
	return rc ? rc : write_sysfs_attr(i, "napi_defer_hard_irqs", ns ? "1" : "0");
}

static void put_nlattr(struct nlmsghdr *h, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr *a = (void *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));

	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy((char *)a + NLA_HDRLEN, data, len);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + (uint32_t)NLA_ALIGN(a->nla_len);
}

static const void *find_nlattr(const struct nlmsghdr *h, uint16_t type, uint16_t size)
{
	const char *p = (const char *)NLMSG_DATA(h) + GENL_HDRLEN,
		   *end = (const char *)h + h->nlmsg_len;

	while (p + NLA_HDRLEN <= end) {
		const struct nlattr *a = (const void *)p;

		if (a->nla_len < NLA_HDRLEN || p + a->nla_len > end)
			break;
		if ((a->nla_type & NLA_TYPE_MASK) == type && a->nla_len >= NLA_HDRLEN + size)
			return p + NLA_HDRLEN;
		p += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

/* Sends a generic-netlink request with one attribute, and calls @each for every answer. */
static int genl_request(int fd, uint16_t family, uint8_t cmd, uint16_t flags, uint16_t type,
			const void *data, uint16_t len,
			void (*each)(const struct nlmsghdr *, void *), void *ctx)
{
	char buf[16384] __attribute__((aligned(8))) = {};
	struct nlmsghdr *h = (void *)buf;
	struct genlmsghdr *g = NLMSG_DATA(h);
	ssize_t n;

	h->nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	h->nlmsg_type = family;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	g->cmd = cmd;
	g->version = 1;
	put_nlattr(h, type, data, len);
	if (send(fd, buf, h->nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		n = recv(fd, buf, sizeof(buf), 0);
		if (n < 0)
			return -errno;
		for (h = (void *)buf; NLMSG_OK(h, (uint32_t)n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			each(h, ctx);
		}
	}
}

static void on_family(const struct nlmsghdr *h, void *ctx)
{
	const uint16_t *id = find_nlattr(h, CTRL_ATTR_FAMILY_ID, 2);

	if (id)
		*(uint16_t *)ctx = *id;
}

struct threads {
	int ifindex;
	int n;
	pid_t pid[THREADS_MAX];
};

static void on_napi(const struct nlmsghdr *h, void *ctx)
{
	const uint32_t *ifindex = find_nlattr(h, NETDEV_A_NAPI_IFINDEX, 4),
		       *pid = find_nlattr(h, NETDEV_A_NAPI_PID, 4);
	struct threads *t = ctx;

	if (ifindex && pid && *ifindex == (uint32_t)t->ifindex && t->n < THREADS_MAX)
		t->pid[t->n++] = (pid_t)*pid;
}

static void ask_napi_threads(const struct bl_iface *i, struct threads *t)
{
	struct timeval limit = { .tv_sec = 1 };
	uint32_t ifindex = (uint32_t)i->ifindex;
	uint16_t family = 0;
	int fd;

	t->n = 0;
	t->ifindex = i->ifindex;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!genl_request(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, CTRL_ATTR_FAMILY_NAME, "netdev",
			  7, on_family, &family) &&
	    family)
		genl_request(fd, family, NETDEV_CMD_NAPI_GET, NLM_F_DUMP, NETDEV_A_NAPI_IFINDEX,
			     &ifindex, 4, on_napi, t);
	close(fd);
}

/*
 * Whether @comm is "napi/IFNAME-ID". Since Linux 5.17 comm shows a kernel thread's whole name;
 * before, it was cut after 15 characters.
 */
static bool is_napi_of(const char *comm, const char *ifname)
{
	char want[IFNAMSIZ + 8];
	size_t len;

	len = (size_t)snprintf(want, sizeof(want), "napi/%s-", ifname);
	if (strlen(comm) == 15 && len > 15)
		return !strncmp(comm, want, 15);
	return !strncmp(comm, want, len) && strspn(comm + len, "0123456789") == strlen(comm + len);
}

/* Returns the start time of a process; 0: it does not exist. */
static uint64_t start_time_of(pid_t pid)
{
	uint64_t t;

	bl_proc_stat(pid, BL_PROC_STARTED, &t);
	return t;
}

static void search_napi_threads(const struct bl_iface *i, struct threads *t)
{
	uint64_t when[THREADS_MAX], newest = 0;
	char path[288], comm[80];
	struct dirent *e;
	int k, n = 0;
	DIR *d;

	t->n = 0;
	d = opendir("/proc");
	if (!d)
		return;
	while ((e = readdir(d)) && t->n < THREADS_MAX) {
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		if (e->d_name[0] < '0' || e->d_name[0] > '9' ||
		    bl_read_line(AT_FDCWD, path, comm, sizeof(comm)) || !is_napi_of(comm, i->name))
			continue;
		t->pid[t->n] = atoi(e->d_name);
		when[t->n] = start_time_of(t->pid[t->n]);
		if (when[t->n] > newest)
			newest = when[t->n];
		t->n++;
	}
	closedir(d);
	/*
	 * The threads of one interface's queues start together: within 20 ms, which are 2 ticks of
	 * 1/100 s.
	 */
	for (k = 0; k < t->n; k++)
		if (when[k] + 2 >= newest)
			t->pid[n++] = t->pid[k];
	t->n = n;
}

/*
 * Whether @pid is a thread of the kernel with this name (@whole), or whose name begins with it. A
 * process may have the name, too.
 */
static bool is_kernel_thread(pid_t pid, const char *name, bool whole)
{
	char path[64], comm[80];
	uint64_t flags;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (bl_read_line(AT_FDCWD, path, comm, sizeof(comm)) ||
	    (whole ? strcmp(comm, name) : strncmp(comm, name, strlen(name))))
		return false;
	return !bl_proc_stat(pid, BL_PROC_FLAGS, &flags) && flags & PF_KTHREAD;
}

/*
 * Checked without the interface's name, which the thread may have from before a rename. A number
 * from another pid namespace would hit any process.
 */
static bool is_napi_thread(pid_t pid)
{
	return is_kernel_thread(pid, "napi/", false);
}

/*
 * Finds the threads of @i. If the kernel does not name them, or with numbers of another pid
 * namespace, they are searched by name.
 */
static void find_threads(const struct bl_iface *i, struct threads *t)
{
	int k;

	ask_napi_threads(i, t);
	for (k = 0; k < t->n; k++)
		if (!is_napi_thread(t->pid[k]))
			t->n = 0;
	if (!t->n)
		search_napi_threads(i, t);
}

static int pin_threads(const struct bl_iface *i, int cpu, enum bl_realtime how, struct bl_err *err)
{
	struct threads found, *t = &found;
	cpu_set_t set;
	int k;

	find_threads(i, t);
	if (!t->n)
		return bl_fail(err, ESRCH,
			       "no napi/%s thread can be seen, so port %s cannot be kept on CPU "
			       "%d; run in the machine's first pid namespace",
			       i->name, i->name, cpu);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	for (k = 0; k < t->n; k++) {
		if (sched_setaffinity(t->pid[k], sizeof(set), &set))
			return bl_fail(err, errno,
				       "cannot keep the NAPI thread of %s (pid %d) on CPU %d: %s",
				       i->name, t->pid[k], cpu, strerror(errno));
		/* Best effort: in a container this is often refused. */
		bl_prio_first(t->pid[k], &set, how, 1);
	}
	return 0;
}

static void raise_steering_thread(int map, uint32_t cpu, enum bl_realtime how)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	struct dirent *e;
	char want[48];
	cpu_set_t set;
	DIR *d;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (bpf_obj_get_info_by_fd(map, &info, &len))
		return;
	snprintf(want, sizeof(want), "cpumap/%u/map:%u", cpu, info.id);
	/* Priority 2: before the NAPI threads of its CPU, which keep filling its queue. */
	d = opendir("/proc");
	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		    is_kernel_thread(atoi(e->d_name), want, true))
			bl_prio_first(atoi(e->d_name), &set, how, 2);
	if (d)
		closedir(d);
}

int bl_steer_open(int map, int prog, const struct bl_node_cfg *cfg, struct bl_err *err)
{
	unsigned int k;
	int rc;

	for (k = 0; k < (cfg->ncpus ? cfg->ncpus : 1); k++) {
		uint32_t cpu = cfg->ncpus ? (uint32_t)cfg->cpus[k] : 0;

		rc = bl_prog_enter(map, cpu, BL_HOMING_FRAMES, prog);
		if (rc)
			return bl_fail(err, -rc,
				       "cannot give CPU %u a queue for the frames of its ports "
				       "that come in elsewhere: %s; is it online?",
				       cpu, strerror(-rc));
		raise_steering_thread(map, cpu, cfg->realtime);
	}
	return 0;
}

int bl_napi_thread(const struct bl_iface *i, int cpu, enum bl_realtime how, struct bl_err *err)
{
	int rc = bl_napi_is_threaded(i) > 0 ? 0 : enable_threaded_napi(i, err);

	/* An interface that is down has no threads yet. */
	return rc || !i->up ? rc : pin_threads(i, cpu, how, err);
}

void bl_napi_undo(const struct bl_iface *i, int cpu, bool stop)
{
	cpu_set_t is, mine, usual;
	struct threads t;
	int k, rc;

	CPU_ZERO(&mine);
	CPU_SET(cpu, &mine);
	/* kthreadd, the parent of all kernel threads, which they have their CPUs from. */
	if (!is_kernel_thread(2, "kthreadd", true) || sched_getaffinity(2, sizeof(usual), &usual))
		memset(&usual, 0xff, sizeof(usual));
	/* Before 6.17 the threads live on when they are not used any more. */
	find_threads(i, &t);
	for (k = 0; k < t.n; k++) {
		if (sched_getaffinity(t.pid[k], sizeof(is), &is) || !CPU_EQUAL(&is, &mine))
			continue;
		sched_setaffinity(t.pid[k], sizeof(usual), &usual);
		bl_prio_usual(t.pid[k]);
	}
	rc = bl_napi_is_threaded(i);
	if (!stop || rc == 0 || rc > 1)
		return;
	rc = write_sysfs_attr(i, "threaded", "0");
	if (rc)
		bl_log(BL_LOG_WARN,
		       "the NAPI of %s stays threaded: %s; `echo 0 > /sys/class/net/%s/threaded`",
		       i->name,
		       rc == -EOPNOTSUPP ? "it has none while it is down, or without an XDP program"
					 : strerror(-rc),
		       i->name);
}
