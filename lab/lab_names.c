/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See lab_names.h. A record:
 *
 *	4711			pid of the lab's init
 *	lab-h1 4026532316	a name, and the inode number of its namespace
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/util/out.h"
#include "lab/lab_names.h"

#define RECORDS BL_RUN_DIR "/labs"
#define NAME    64 /* bytes of a name in LAB_NAMES_DIR */

/** struct record - a record that is being read, line by line. */
struct record {
	FILE *f;
	pid_t init;
	char name[NAME];
	uint64_t ino;
};

static bool record_open(struct record *r, const char *lab)
{
	char path[320];

	snprintf(path, sizeof(path), RECORDS "/%s", lab);
	r->f = fopen(path, "re");
	if (r->f && fscanf(r->f, "%d", &r->init) != 1)
		r->init = 0;
	return r->f;
}

/* Reads the next name. Returns false and closes the record if there is none. */
static bool record_next(struct record *r)
{
	if (fscanf(r->f, "%63s %" SCNu64, r->name, &r->ino) == 2 && !strchr(r->name, '/'))
		return true;
	fclose(r->f);
	return false;
}

/* The node of a name "LAB-NODE": no node has a hyphen. */
static const char *node_of(const char *name)
{
	const char *at = strrchr(name, '-');

	return at ? at + 1 : "";
}

/* Writes where the namespace of @node is, as seen from outside of the lab. */
static void source_path(pid_t init, const char *node, char *path, size_t size)
{
	if (strcmp(node, LAB_MGMT))
		snprintf(path, size, "/proc/%d/root" LAB_NETNS_DIR "/%s", init, node);
	else
		snprintf(path, size, "/proc/%d/ns/net", init);
}

static uint64_t inode_of(const char *path)
{
	struct statfs fs;
	struct stat st;

	return statfs(path, &fs) || fs.f_type != NSFS_MAGIC || stat(path, &st) ? 0 : st.st_ino;
}

/* Whether the lab of the record is up: its init has the namespace that the record names. */
static bool is_up(const struct record *r)
{
	char path[128];

	source_path(r->init, node_of(r->name), path, sizeof(path));
	return r->init > 0 && inode_of(path) == r->ino;
}

/* Whether the present name is the lab's: its namespace, or the file that was to become its mount.
 */
static bool is_ours(const struct record *r, char *path, size_t size)
{
	struct stat st;

	snprintf(path, size, LAB_NAMES_DIR "/%s", r->name);
	return inode_of(path) ? inode_of(path) == r->ino
			      : !stat(path, &st) && S_ISREG(st.st_mode) && !st.st_size;
}

void lab_names_remove(const char *name, pid_t init)
{
	struct record r;
	char path[320];

	if (!record_open(&r, name))
		return;
	if (init && r.init != init) {
		fclose(r.f);
		return;
	}
	while (record_next(&r))
		if (is_ours(&r, path, sizeof(path))) {
			umount2(path, MNT_DETACH);
			unlink(path);
		}
	snprintf(path, sizeof(path), RECORDS "/%s", name);
	unlink(path);
}

/* Calls @fn for each record. */
static void each_record(void (*fn)(const char *lab, void *ctx), void *ctx)
{
	DIR *d = opendir(RECORDS);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (lab_name_ok(e->d_name))
			fn(e->d_name, ctx);
	if (d)
		closedir(d);
}

/** struct cleaning - input of clean_lab(). */
struct cleaning {
	bool dry;
	void (*tell)(const char *what, void *ctx);
	void *ctx;
	int n;
};

static void clean_lab(const char *lab, void *ctx)
{
	struct cleaning *c = ctx;
	bool up = false, any = false;
	struct record r;
	char path[320];

	if (!record_open(&r, lab))
		return;
	if (flock(fileno(r.f), LOCK_EX | LOCK_NB)) { /* the watcher is there */
		fclose(r.f);
		return;
	}
	while (record_next(&r))
		up = up || is_up(&r);
	if (up || !record_open(&r, lab))
		return;
	while (record_next(&r)) {
		any = true;
		if (is_ours(&r, path, sizeof(path))) {
			c->tell(path, c->ctx);
			c->n++;
		}
	}
	if (!c->dry || !any)
		lab_names_remove(lab, 0);
}

int lab_names_clean(bool dry, void (*tell)(const char *what, void *ctx), void *ctx)
{
	struct cleaning c = { .dry = dry, .tell = tell, .ctx = ctx };

	each_record(clean_lab, &c);
	return c.n;
}

bool lab_names_find(const char *name, char *lab, char *node, pid_t *init)
{
	size_t n = strlen(name) - strlen(node_of(name));
	struct record r;
	char path[320];
	bool found = false;

	if (!n || n > 32 || !*node_of(name))
		return false;
	snprintf(lab, 32, "%.*s", (int)n - 1, name);
	if (!lab_name_ok(lab) || !record_open(&r, lab))
		return false;
	while (record_next(&r))
		if (!strcmp(r.name, name) && is_ours(&r, path, sizeof(path)) && is_up(&r)) {
			snprintf(node, 16, "%s", node_of(name));
			*init = r.init;
			found = true;
		}
	return found;
}

int lab_names_enter(const char *netns)
{
	char lab[32], node[16];
	pid_t init, pid;
	int pidfd, st;

	if (strchr(netns, '/') || !lab_names_find(netns, lab, node, &init))
		return -1;
	pidfd = (int)syscall(SYS_pidfd_open, init, 0);
	if (pidfd < 0)
		return cli_fail("lab \"%s\" (pid %d): %s", lab, init, strerror(errno));
	if (lab_enter(pidfd, lab, node))
		return 1;
	close(pidfd);
	fflush(NULL);
	pid = fork(); /* setns(2) moves only children into the pid namespace */
	if (pid < 0)
		return cli_fail("cannot fork inside the lab: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		return 0;
	}
	signal(SIGINT, SIG_IGN); /* the child is in the same process group and gets it, too */
	signal(SIGQUIT, SIG_IGN);
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			_exit(1);
	_exit(WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st));
}

/* ---- making names ---- */

/* Waits until init has ended, and removes the names. Keeps nothing open but the record's lock. */
static void watch(const char *name, pid_t init, int pidfd, int record)
{
	struct pollfd p = { .fd = 4, .events = POLLIN };
	int null = open("/dev/null", O_RDWR);

	setsid();
	prctl(PR_SET_NAME, "barline-names");
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	record = fcntl(record, F_DUPFD, 5);
	dup2(pidfd, 4);
	dup2(record, 3);
	close_range(5, ~0U, 0);
	if (chdir("/"))
		_exit(1);
	while (poll(&p, 1, -1) != 1)
		;
	lab_names_remove(name, init);
	_exit(0);
}

/* Returns 0, or an errno. */
static int put_name(FILE *record, const struct lab *lab, const char *node, pid_t init)
{
	char path[128], source[128];
	uint64_t ino;
	int fd;

	source_path(init, node, source, sizeof(source));
	snprintf(path, sizeof(path), LAB_NAMES_DIR "/%s-%s", lab->spec.name, node);
	ino = inode_of(source);
	if (!ino)
		return ESRCH;
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return errno;
	close(fd);
	/* first into the record: what is mounted is known to those who clean */
	fprintf(record, "%s-%s %" PRIu64 "\n", lab->spec.name, node, ino);
	if (!fflush(record) && !mount(source, path, NULL, MS_BIND, NULL))
		return 0;
	fd = errno;
	unlink(path);
	return fd;
}

static void say_removed(const char *what, void *ctx)
{
	(void)ctx;
	cli_say("removed %s, which a lab that was killed has left", what);
}

/* Opens the record and locks it. Returns NULL and sets errno if it is another lab's. */
static FILE *take_record(const char *name)
{
	char path[320];
	FILE *f;

	if ((mkdir(RECORDS, 0755) && errno != EEXIST) ||
	    (mkdir(LAB_NAMES_DIR, 0755) && errno != EEXIST))
		return NULL;
	lab_names_clean(false, say_removed, NULL);
	snprintf(path, sizeof(path), RECORDS "/%s", name);
	f = fopen(path, "wxe");
	if (f && flock(fileno(f), LOCK_EX | LOCK_NB)) {
		fclose(f);
		return NULL;
	}
	return f;
}

bool lab_names_put(const struct lab *lab)
{
	const char *name = lab->spec.name, *node = LAB_MGMT;
	int pidfd = -1, fd, err;
	unsigned int i;
	pid_t init, pid;
	FILE *record;

	fd = lab_find(name, &pidfd, &init);
	if (fd < 0)
		return false;
	close(fd);
	record = take_record(name);
	err = record ? 0 : errno;
	if (record)
		fprintf(record, "%d\n", init);
	for (i = 0; record && !err && i <= lab->nnodes; i++) {
		node = i ? lab->nodes[i - 1].name : LAB_MGMT;
		err = put_name(record, lab, node, init);
	}
	fflush(NULL);
	pid = err ? -1 : fork();
	if (!pid)
		watch(name, init, pidfd, fileno(record));
	if (pid < 0) {
		fprintf(stderr,
			"barline: the namespaces of lab \"%s\" have no names in " LAB_NAMES_DIR
			": %s%s%s%s\n",
			name, err && record ? name : "", err && record ? "-" : "",
			err && record ? node : "", strerror(err ? err : errno));
		if (record)
			lab_names_remove(name, init);
	}
	if (record)
		fclose(record);
	close(pidfd);
	return pid > 0;
}
