// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_flow_hint(): what an application knows about its flow, written to the place where the host's
 * program looks when the first frame of the flow comes (struct bl_top_hint in maps/top_host_abi.h).
 *
 * The first call of a process asks the daemon for the map and maps it. From then on a hint is a few
 * words of memory. Example: after connect() from 10.9.0.1:40000 to 10.9.0.2:5001 the key is these
 * addresses and ports and TCP. It hashes to place 611, which gets seq 3, the words, seq 4.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "maps/host_abi.h"
#include "core/top/top_core.h"
#include "daemon.h"
#include "internal.h"

#define TRIES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards @table and @table_of */
static struct bl_top_hint *table;
static ino_t table_of; /* inode of the network namespace whose host has the table */

/*
 * Map the table of this thread's network namespace. The caller holds the lock. Returns 0 or -errno.
 */
static int open_table(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       size = (BL_TOP_HINTS * sizeof(*table) + page - 1) / page * page;
	struct stat st;
	char path[108];
	void *p;
	int fd, rc;

	if (stat("/proc/thread-self/ns/net", &st))
		return -errno;
	if (table && table_of == st.st_ino)
		return 0;
	rc = bl_daemon_path(path, sizeof(path));
	if (rc)
		return rc;
	fd = bl_daemon_map(path, BL_SOCK_HINTS);
	if (fd < 0)
		return fd;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	if (table)
		munmap(table, size);
	table = p;
	table_of = st.st_ino;
	return 0;
}

static int copy_socket_address(const struct sockaddr_storage *ss, __u8 *addr, __be16 *port)
{
	if (ss->ss_family == AF_INET) {
		const struct sockaddr_in *a = (const void *)ss;

		memset(addr, 0, 10);
		addr[10] = addr[11] = 0xff;
		memcpy(addr + 12, &a->sin_addr, 4);
		*port = a->sin_port;
		return 0;
	}
	if (ss->ss_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const void *)ss;

		memcpy(addr, &a->sin6_addr, 16);
		*port = a->sin6_port;
		return IN6_IS_ADDR_V4MAPPED(&a->sin6_addr) ? 0 : 1;
	}
	return -EAFNOSUPPORT;
}

static int make_key(int fd, struct bl_top_key *k)
{
	struct sockaddr_storage self, peer;
	socklen_t len = sizeof(self), n = sizeof(int);
	int proto, rc;

	memset(k, 0, sizeof(*k));
	if (getsockname(fd, (struct sockaddr *)&self, &len))
		return -errno;
	len = sizeof(peer);
	if (getpeername(fd, (struct sockaddr *)&peer, &len) ||
	    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &proto, &n))
		return -errno;
	rc = copy_socket_address(&self, k->saddr, &k->sport);
	if (rc >= 0)
		rc = copy_socket_address(&peer, k->daddr, &k->dport);
	if (rc < 0)
		return rc;
	k->v6 = (__u8)rc;
	k->proto = (__u8)proto;
	return 0;
}

/*
 * Write a place: seq becomes odd, the words are written, seq becomes even. Pairs with
 * bl_top_hint_of() in bpf/host/top.h. Returns 0 or -EBUSY.
 */
static int write_hint(struct bl_top_hint *h, const struct bl_top_key *k,
		      const struct bl_flow_hint *hint)
{
	__u32 was, odd;
	int i;

	for (i = 0; i <= TRIES; i++) {
		was = BL_READ_ONCE(h->seq);
		/*
		 * A writer that died here would keep the place for ever, so the last attempt takes
		 * it away.
		 */
		if ((was & 1) && i < TRIES)
			continue;
		odd = was & 1 ? was + 2 : was + 1;
		if (__sync_val_compare_and_swap(&h->seq, was, odd) == was)
			break;
	}
	if (i > TRIES)
		return -EBUSY;
	h->key = *k;
	h->bytes = hint->bytes;
	h->deadline_us = hint->deadline_us;
	h->coflow = hint->coflow;
	h->flags = hint->flags;
	/* If another writer has taken the place meanwhile, its number stays. */
	/* Seq 0 stands for a place that was never written. */
	__sync_val_compare_and_swap(&h->seq, odd, odd + 1 ? odd + 1 : 2);
	return 0;
}

int bl_flow_hint(int fd, const struct bl_flow_hint *hint)
{
	struct bl_top_key key;
	int rc;

	_Static_assert(BL_FLOW_RESEND == BL_TOP_F_RESEND, "one number on both sides");
	if ((hint->flags & ~BL_FLOW_RESEND) || hint->reserved)
		return -EINVAL;
	rc = make_key(fd, &key);
	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	rc = open_table();
	if (!rc)
		rc = write_hint(&table[bl_top_hint_hash(&key)], &key, hint);
	pthread_mutex_unlock(&lock);
	return rc;
}
