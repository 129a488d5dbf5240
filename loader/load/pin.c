// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See pin.h.
 *
 * BL_RUN_DIR/<role>-<netns>.lock is locked (flock(2)) by the process that serves the node, so it is
 * free as soon as that process is dead, however it died. Whoever changes pins holds the lock.
 */
#include "loader/load/pin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include "base/netns.h"
#include "base/status_socket.h"
#include "base/log.h"
#include "base/time.h"
#include "loader/load/entry.h"
#include "maps/auth_abi.h"
#include "maps/capture_abi.h"
#include "maps/failure_abi.h"
#include "maps/fence_abi.h"
#include "maps/hook_abi.h"
#include "maps/hold_abi.h"
#include "maps/host_abi.h"
#include "maps/link_abi.h"
#include "maps/nic_abi.h"
#include "maps/pace_abi.h"
#include "maps/pl2_switch_abi.h"
#include "maps/queue_abi.h"
#include "maps/switch_abi.h"

const char *bl_role_name(enum bl_role role)
{
	return role == BL_ROLE_SWITCH ? "switch" : role == BL_ROLE_HOST ? "host" : "none";
}

static bool is_bpffs(const char *path)
{
	struct statfs s;

	return !statfs(path, &s) && (unsigned long)s.f_type == (unsigned long)BPF_FS_MAGIC;
}

int bl_bpffs_mount(struct bl_err *err)
{
	int lock, rc = 0;

	if (is_bpffs(BL_BPFFS))
		return 0;
	if ((mkdir(BL_RUN_DIR, 0755) && errno != EEXIST) ||
	    (mkdir(BL_BPFFS, 0700) && errno != EEXIST))
		return bl_fail(err, errno,
			       "cannot make %s: %s; run as root, or let systemd make it "
			       "(RuntimeDirectory=barline)",
			       BL_BPFFS, strerror(errno));
	/* Two daemons that start together must not mount over each other's pins. */
	lock = open(BL_RUN_DIR "/mount.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock < 0 || flock(lock, LOCK_EX)) {
		rc = bl_fail(err, errno, "cannot lock %s/mount.lock: %s", BL_RUN_DIR,
			     strerror(errno));
	} else if (!is_bpffs(BL_BPFFS) &&
		   mount("bpf", BL_BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700")) {
		rc = bl_fail(err, errno,
			     "cannot mount a bpffs at %s: %s; it takes CAP_SYS_ADMIN, or mount it "
			     "beforehand: mount -t bpf bpf %s",
			     BL_BPFFS, strerror(errno), BL_BPFFS);
	}
	if (lock >= 0)
		close(lock);
	return rc;
}

/* How long a process that a daemon has left may hold the daemon's lock. */
#define HEIR_NS 1000000000ULL

static void node_lock_path(char *buf, size_t size, enum bl_role role, uint64_t ino)
{
	snprintf(buf, size, "%s/%s-%" PRIu64 ".lock", BL_RUN_DIR, bl_role_name(role), ino);
}

/* Reads the pid that the holder of the lock has written; "?": none. */
static void read_holder(int fd, char *pid, size_t size)
{
	ssize_t len = pread(fd, pid, size - 1, 0);

	pid[len > 0 ? len : 0] = 0;
	pid[strcspn(pid, "\n")] = 0;
	if (!*pid)
		snprintf(pid, size, "?");
}

/*
 * Whether the daemon that took the lock has ended. A caretaker that it was just about to start has
 * its descriptors until it executes, which is soon.
 */
static bool has_ended(const char *pid)
{
	long n = strtol(pid, NULL, 10);

	return n > 0 && kill((pid_t)n, 0) && errno == ESRCH;
}

int bl_node_lock(enum bl_role role, uint64_t ino, unsigned int wait_ms, struct bl_err *err)
{
	uint64_t now, end = bl_mono_ns() + wait_ms * 1000000ULL;
	struct stat mine, there;
	char path[128], pid[16];
	ssize_t len;
	int fd;

	node_lock_path(path, sizeof(path), role, ino);
	for (;;) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return bl_fail(err, errno, "cannot open %s: %s", path, strerror(errno));
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			if (errno != EWOULDBLOCK) {
				len = bl_fail(err, errno, "cannot lock %s: %s", path,
					      strerror(errno));
				close(fd);
				return (int)len;
			}
			read_holder(fd, pid, sizeof(pid));
			now = bl_mono_ns();
			if (now < end || (now < end + HEIR_NS && has_ended(pid))) {
				close(fd);
				nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
				continue;
			}
			close(fd);
			return bl_fail(err, EBUSY,
				       "process %s serves the %s of this network namespace "
				       "already; stop it first (the datapath stays)",
				       pid, bl_role_name(role));
		}
		/* bl_clean() may have removed the file between open() and flock(). */
		if (!fstat(fd, &mine) && !stat(path, &there) && mine.st_ino == there.st_ino)
			break;
		close(fd);
	}
	len = snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)len, 0) != len)
		bl_log(BL_LOG_WARN, "cannot write %s: %s", path, strerror(errno));
	return fd;
}

void bl_node_unlock(enum bl_role role, uint64_t ino, int fd, bool gone)
{
	char path[128];

	if (fd < 0)
		return;
	if (gone) {
		node_lock_path(path, sizeof(path), role, ino);
		unlink(path);
	}
	/*
	 * A child that was forked meanwhile has the same open file, and must not keep the node
	 * locked.
	 */
	flock(fd, LOCK_UN);
	close(fd);
}

int bl_meta_read(const char *dir, struct bl_meta *meta)
{
	LIBBPF_OPTS(bpf_obj_get_opts, o, .file_flags = BPF_F_RDONLY);
	struct bpf_map_info info = {};
	uint32_t zero = 0, len = sizeof(info);
	char path[BL_PATH_MAX];
	uint8_t *value;
	int fd, rc = -EINVAL;

	memset(meta, 0, sizeof(*meta));
	snprintf(path, sizeof(path), "%s/maps/%s", dir, BL_MAP_META);
	fd = bpf_obj_get_opts(path, &o);
	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &len)) {
		rc = -errno;
	} else if (info.type == BPF_MAP_TYPE_ARRAY && info.key_size == 4 &&
		   info.value_size >= sizeof(*meta) && info.value_size <= 4096) {
		/* The record of a newer loader may be longer; its first fields are these. */
		value = calloc(1, info.value_size);
		if (!value) {
			rc = -ENOMEM;
		} else if (bpf_map_lookup_elem(fd, &zero, value)) {
			rc = -errno;
		} else {
			memcpy(meta, value, sizeof(*meta));
			rc = meta->magic == BL_META_MAGIC ? 0 : -EINVAL;
		}
		free(value);
	}
	meta->name[sizeof(meta->name) - 1] = 0;
	meta->build[sizeof(meta->build) - 1] = 0;
	close(fd);
	return rc;
}

int bl_pins_folder(const char *path, struct bl_err *err)
{
	return mkdir(path, 0700) && errno != EEXIST
		       ? bl_fail(err, errno, "cannot make %s: %s", path, strerror(errno))
		       : 0;
}

int bl_dir_make(const char *dir, struct bl_err *err)
{
	static const char *const sub[] = { "", "/maps", "/links" };
	char path[BL_PATH_MAX];
	unsigned int i;
	int rc = 0;

	for (i = 0; i < 3 && !rc; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, sub[i]);
		rc = bl_pins_folder(path, err);
	}
	return rc;
}

int bl_pins_remove(const char *path)
{
	char file[BL_PATH_MAX + 256];
	struct dirent *e;
	DIR *d = opendir(path);
	int rc = 0;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		if (!unlink(file) || errno == ENOENT)
			continue;
		rc = errno == EISDIR ? bl_pins_remove(file) : -errno;
		if (rc)
			break;
	}
	closedir(d);
	if (!rc && rmdir(path) && errno != ENOENT)
		rc = -errno;
	return rc;
}

/* Links and programs first: after that, nothing uses the maps. */
int bl_dir_remove(const char *dir)
{
	char path[BL_PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/links", dir);
	rc = bl_pins_remove(path);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/progs", dir);
	rc = bl_pins_remove(path);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/maps", dir);
	rc = bl_pins_remove(path);
	return rc ? rc : rmdir(dir) && errno != ENOENT ? -errno : 0;
}

int bl_pin_over(int fd, const char *path, struct bl_err *err)
{
	char tmp[BL_PATH_MAX + 8];
	int e;

	if (!bpf_obj_pin(fd, path))
		return 0;
	if (errno != EEXIST)
		return bl_fail(err, errno, "cannot pin %s: %s", path, strerror(errno));
	snprintf(tmp, sizeof(tmp), "%s-new", path); /* bpffs does not accept a dot in names */
	unlink(tmp);
	if (!bpf_obj_pin(fd, tmp) && !rename(tmp, path))
		return 0;
	e = errno;
	/* A link without the name by which it is found must not stay attached. */
	unlink(tmp);
	return bl_fail(err, e, "cannot replace the pin %s: %s", path, strerror(e));
}

int bl_links_each(const char *dir, bl_link_fn fn, void *ctx)
{
	char path[BL_PATH_MAX], file[BL_PATH_MAX + 256];
	struct dirent *e;
	int rc = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/links", dir);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && (e = readdir(d))) {
		struct bpf_link_info info = {};
		uint32_t len = sizeof(info);
		int fd;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		fd = bpf_obj_get(file);
		if (fd < 0)
			continue;
		/*
		 * A tcx link has its ifindex where an XDP link has it, in the first word of the
		 * union.
		 */
		if (bl_entry_is(fd))
			rc = fn(file, e->d_name, fd, bl_entry_ifindex(file, fd), ctx);
		else if (!bpf_obj_get_info_by_fd(fd, &info, &len))
			rc = fn(file, e->d_name, fd, info.xdp.ifindex, ctx);
		close(fd);
	}
	closedir(d);
	return rc;
}

static int count_attached(const char *path, const char *name, int link_fd, uint32_t ifindex,
			  void *ctx)
{
	(void)path, (void)name, (void)link_fd;
	*(int *)ctx += ifindex != 0;
	return 0;
}

int bl_links_alive(const char *dir)
{
	int n = 0;

	bl_links_each(dir, count_attached, &n);
	return n;
}

/** struct live - the interfaces that an XDP or egress program of a node is attached to. */
struct live {
	unsigned int n;
	char name[2 * BL_SW_PORTS_MAX][IFNAMSIZ];
};

static int note_live(const char *path, const char *name, int link_fd, uint32_t ifindex, void *ctx)
{
	const char *at = strchr(name, '-');
	struct live *l = ctx;
	char *c;

	(void)path, (void)link_fd;
	if (!ifindex || !at || (strncmp(name, "xdp-", 4) && strncmp(name, "egress-", 7)) ||
	    l->n == sizeof(l->name) / sizeof(l->name[0]))
		return 0;
	snprintf(l->name[l->n], IFNAMSIZ, "%s", at + 1);
	for (c = l->name[l->n]; (c = strchr(c, ':'));)
		*c = '.'; /* bpffs does not allow dots, see maps/meta_abi.h */
	l->n++;
	return 0;
}

/* Counts the interface @name of a node. A program that is missing is no missing interface. */
static void count_port(const struct bl_node_ref *ref, const char *name, const struct live *l,
		       struct bl_node_ports *p)
{
	unsigned int k;

	p->all++;
	for (k = 0; k < l->n; k++)
		if (!strcmp(l->name[k], name))
			return;
	if (ref->netns_ino == bl_netns_ino() && if_nametoindex(name))
		return;
	if (!p->gone++)
		snprintf(p->first, sizeof(p->first), "%s", name);
}

/* Counts by the pins of XDP programs, for a node whose records are of another build. */
static int count_pin(const char *path, const char *name, int link_fd, uint32_t ifindex, void *ctx)
{
	struct bl_node_ports *p = ctx;

	(void)path, (void)link_fd;
	if (strncmp(name, "xdp-", 4))
		return 0;
	p->all++;
	if (!ifindex && !p->gone++)
		snprintf(p->first, sizeof(p->first), "%s", name + 4);
	return 0;
}

bool bl_node_nic(const struct bl_node_ref *ref, char name[IFNAMSIZ])
{
	struct bl_nic nic[BL_NIC_HOST];

	if (bl_map_read_all(ref, BL_MAP_NIC, sizeof(nic[0]), BL_NIC_HOST, nic, NULL) ||
	    nic[0].magic != BL_NIC_MAGIC || nic[0].version != BL_NIC_VERSION ||
	    nic[0].size != sizeof(nic[0]))
		return false;
	snprintf(name, IFNAMSIZ, "%.*s", IFNAMSIZ - 1, nic[0].name);
	return *name != 0;
}

void bl_node_ports(const struct bl_node_ref *ref, struct bl_node_ports *p)
{
	struct bl_sw_port port[BL_SW_PORTS_MAX];
	bool host = ref->role == BL_ROLE_HOST;
	char name[IFNAMSIZ];
	struct live l = {};
	unsigned int k;

	memset(p, 0, sizeof(*p));
	if (host ? !bl_node_nic(ref, name)
		 : bl_map_read_all(ref, BL_MAP_SW_PORTS, sizeof(port[0]), BL_SW_PORTS_MAX, port,
				   NULL) != 0) {
		bl_links_each(ref->dir, count_pin, p);
		return;
	}
	bl_links_each(ref->dir, note_live, &l);
	if (host)
		count_port(ref, name, &l, p);
	for (k = 0; !host && k < BL_SW_PORTS_MAX; k++) {
		port[k].name[sizeof(port[k].name) - 1] = 0;
		if (*port[k].name)
			count_port(ref, port[k].name, &l, p);
	}
}

static bool node_dir_parse(const char *name, enum bl_role *role, uint64_t *ino)
{
	char end;

	if (sscanf(name, "switch-%" SCNu64 "%c", ino, &end) == 1)
		*role = BL_ROLE_SWITCH;
	else if (sscanf(name, "host-%" SCNu64 "%c", ino, &end) == 1)
		*role = BL_ROLE_HOST;
	else
		return false;
	return true;
}

int bl_nodes_list(struct bl_node_ref **out, uint64_t netns_ino, bool meta_needed,
		  struct bl_err *err)
{
	struct bl_node_ref *v = NULL, *w;
	struct dirent *e;
	int n = 0;
	DIR *d;

	*out = NULL;
	d = opendir(BL_BPFFS);
	if (!d)
		return errno == ENOENT ? 0
				       : bl_fail(err, errno, "cannot read %s: %s; run as root",
						 BL_BPFFS, strerror(errno));
	while ((e = readdir(d))) {
		struct bl_node_ref r = {};

		if (!node_dir_parse(e->d_name, &r.role, &r.netns_ino) ||
		    (netns_ino && r.netns_ino != netns_ino))
			continue;
		snprintf(r.dir, sizeof(r.dir), "%s/%.200s", BL_BPFFS, e->d_name);
		if (bl_meta_read(r.dir, &r.meta) && meta_needed)
			continue;
		w = realloc(v, (size_t)(n + 1) * sizeof(*v));
		if (!w) {
			free(v);
			closedir(d);
			return bl_fail(err, ENOMEM, "out of memory");
		}
		v = w;
		v[n++] = r;
	}
	closedir(d);
	*out = v;
	return n;
}

int bl_nodes_find(struct bl_node_ref **out, uint64_t netns_ino, struct bl_err *err)
{
	return bl_nodes_list(out, netns_ino, true, err);
}

static const struct {
	const char *name;
	uint32_t type;
} map_types[] = {
	{ BL_MAP_META, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_CLOCK, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_COUNTS, BPF_MAP_TYPE_PERCPU_ARRAY },
	{ BL_MAP_CAPTURE_OUT, BPF_MAP_TYPE_ARRAY_OF_MAPS },
	{ BL_MAP_SW_CFG, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_IFIDX, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_PORTS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_REGS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_TREES, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_LANES, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_CARRIED, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_FDB, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_TX, BPF_MAP_TYPE_DEVMAP },
	{ BL_MAP_SW_HOME, BPF_MAP_TYPE_CPUMAP },
	{ BL_MAP_SW_STEERING, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_HOST_CFG, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_EP_PAGES, BPF_MAP_TYPE_ARRAY_OF_MAPS },
	{ BL_MAP_HOST_PAGE, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_HINTS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_EPS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_RINGS, BPF_MAP_TYPE_ARRAY_OF_MAPS },
	{ BL_MAP_SLOTS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_QUEUES, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_QUEUE_HIST, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_HOLD_CFG, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_HOLD_MACS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_HOLD_DUE, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_PL2_DESTS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_METERS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_PORT_DUE, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_RSV_CFG, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_RSV, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_RSV_PAIRS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_PACE_PAGE, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_EPOCH, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_ORDERS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_LIVES, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_HOST_ORDERS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_FAILURES, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_SW_SOURCES, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_NIC, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_AUTH_LINKS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_AUTH_STATES, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_HOOKS, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_LINK_SEEN, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_LINK_SENT, BPF_MAP_TYPE_ARRAY },
	{ BL_MAP_LINK_VIEWS, BPF_MAP_TYPE_ARRAY },
};

int bl_map_open(const struct bl_node_ref *ref, const char *map, uint32_t value_size, bool write,
		struct bl_err *err)
{
	LIBBPF_OPTS(bpf_obj_get_opts, o, .file_flags = write ? 0 : BPF_F_RDONLY);
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	char path[BL_PATH_MAX];
	unsigned int i;
	int fd, rc;

	if (ref->meta.abi_version != BL_ABI_VERSION)
		return bl_fail(err, EPROTO,
			       "%s was made with ABI version %u, this build speaks %u; use the "
			       "tools of its build",
			       ref->dir, ref->meta.abi_version, BL_ABI_VERSION);
	snprintf(path, sizeof(path), "%s/maps/%s", ref->dir, map);
	fd = bpf_obj_get_opts(path, &o);
	if (fd < 0)
		return bl_fail(err, errno, "cannot open the map %s: %s", path, strerror(errno));
	if (bpf_obj_get_info_by_fd(fd, &info, &len)) {
		rc = bl_fail(err, errno, "cannot look into the map %s: %s", path, strerror(errno));
		close(fd);
		return rc;
	}
	for (i = 0; i < sizeof(map_types) / sizeof(map_types[0]); i++)
		if (!strcmp(map_types[i].name, map) && map_types[i].type != info.type)
			break;
	if (i < sizeof(map_types) / sizeof(map_types[0]) || info.key_size != 4 ||
	    info.value_size != value_size) {
		close(fd);
		return bl_fail(err, EPROTO,
			       "the map %s is not what its name says (type %u, value of %u bytes, "
			       "expected %u); restart its daemon",
			       path, info.type, info.value_size, value_size);
	}
	return fd;
}

int bl_array_read(int fd, uint32_t value_size, uint32_t entries, void *out)
{
	uint32_t n = entries, k, last, *keys = calloc(entries, sizeof(*keys));
	char *to = out;
	int rc = 0;

	/* ENOENT: the end of the array was reached */
	if (keys &&
	    (!bpf_map_lookup_batch(fd, NULL, &last, keys, to, &n, NULL) || errno == ENOENT) &&
	    n == entries) {
		free(keys);
		return 0;
	}
	free(keys);
	for (k = 0; k < entries && !rc; k++)
		if (bpf_map_lookup_elem(fd, &k, to + (size_t)k * value_size))
			rc = -errno;
	return rc;
}

int bl_map_read_all(const struct bl_node_ref *ref, const char *map, uint32_t value_size,
		    uint32_t entries, void *out, struct bl_err *err)
{
	int fd = bl_map_open(ref, map, value_size, false, err), rc;

	if (fd < 0)
		return fd;
	rc = bl_array_read(fd, value_size, entries, out);
	if (rc)
		bl_fail(err, -rc, "cannot read the map %s: %s", map, strerror(-rc));
	close(fd);
	return rc;
}
