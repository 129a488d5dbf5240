// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The transmit side of a host's NIC: one FIFO for ordered frames and beacons.
 *
 * Two things break it. A queueing discipline that sorts by flow (fq_codel, the default of many
 * distributions, or fq) lets beacons overtake data that waits. And a NIC with several transmit
 * queues sends what each CPU has to send by a queue of that CPU.
 *
 * Where the kernel's own discipline sorts, two bands take its place:
 *
 *	before				after
 *	fq_codel 0: root		ets b411: root, 2 bands
 *					  pfifo b412: band 1, ordered frames and beacons
 *					  fq_codel b413: band 2, everything else
 *	mq 0: root			mq b410: root
 *	  fq_codel 0: queue 1		  ets b411: queue 1, with the bands as above
 *	  fq_codel 0: queue 2		  fq_codel 0: queue 2
 *
 * The egress program gives ordered frames the skb priority b411:1, which is how ets and prio are
 * told a band without a filter. The bands of ets take turns, so that each gets half of the link if
 * both want it: neither can ordered traffic starve the rest, such as the sessions with controllers,
 * nor the rest delay the barriers for long. A kernel without ets gets prio, where band 1 goes
 * first: windows limit ordered traffic, but nothing limits the rest. The FIFO has room for as many
 * frames as txqueuelen says, which is what the operator considers a queue of this NIC, and for
 * BL_NIC_LIMIT at least.
 *
 * Where there are several transmit queues, a filter behind the egress program lets ordered frames
 * leave by queue 0, which exists whatever the number of queues is. It is act_skbedit, because only
 * that is stronger than XPS, the driver's choice and the socket's memory of its last queue
 * (netdev_xmit_skip_txqueue, Linux 5.18). A queue that the program writes into the skb counts only
 * where nobody set XPS. XPS stays as it is, so all other traffic is spread as before; what of it
 * takes queue 0 goes into band 2 there.
 *
 * A discipline that somebody has set is not touched: it is a FIFO, or it is refused. Below a device
 * without a queue (veth) there is nothing to sort; devices that send by others are judged before
 * (lower.c).
 */
#include "loader/load/nic_tx.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ethtool.h"
#include "loader/load/attach.h"
#include "loader/load/sysfs.h"

#define FILTER_PRIO   (BL_TC_PRIORITY + 1) /* behind the egress program where that is a filter */
#define FILTER_HANDLE BL_TC_HANDLE
#define FIRST_QUEUE   1 /* class of an mq's queue 0 */
#define PEER_EGRESS   TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)
#define PEER_INGRESS  TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

/* ---- what is there ---- */

static bool is_fifo(const char *kind)
{
	static const char *const kinds[] = { "noqueue", "pfifo", "bfifo", "pfifo_head_drop",
					     "pfifo_fast" };
	unsigned int k;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (!strcmp(kinds[k], kind))
			return true;
	return false;
}

static const struct nl_qdisc *child_of(const struct nl_qdisc *v, unsigned int n, uint32_t parent)
{
	unsigned int k;

	for (k = 0; k < n; k++)
		if (v[k].parent == parent)
			return &v[k];
	return NULL;
}

/*
 * What has become of barline's bands @b. The first one may have another FIFO, which somebody has
 * set, but what the kernel has put there has no handle.
 */
static void look_at_bands(const struct nl_qdisc *v, unsigned int n, const struct nl_qdisc *b,
			  struct bl_tx_view *to)
{
	const struct nl_qdisc *first = child_of(v, n, b->handle | 1);
	bool set = first && first->handle, fifo = first && is_fifo(first->kind);

	to->at = set && !fifo ? *first : *b;
	if (set && !fifo)
		to->kind = BL_TX_FOREIGN;
	else
		to->kind = set && child_of(v, n, b->handle | 2) ? BL_TX_OURS : BL_TX_TORN;
}

/* A tbf keeps the order of the one discipline below it. */
static bool is_shaped_fifo(const struct nl_qdisc *v, unsigned int n, const struct nl_qdisc *q)
{
	const struct nl_qdisc *below = NULL;
	unsigned int k;

	if (strcmp(q->kind, "tbf"))
		return false;
	for (k = 0; k < n; k++)
		if (TC_H_MAJ(v[k].parent) == q->handle && &v[k] != q)
			below = &v[k];
	return !below || is_fifo(below->kind);
}

static void look_at_mq(const struct nl_qdisc *v, unsigned int n, const struct nl_qdisc *root,
		       struct bl_tx_view *to)
{
	const struct nl_qdisc *first = child_of(v, n, root->handle | FIRST_QUEUE);
	unsigned int k;

	to->mq = true;
	for (k = 0; k < n; k++) {
		if (TC_H_MAJ(v[k].parent) != root->handle || !TC_H_MIN(v[k].parent) ||
		    v[k].parent == TC_H_ROOT)
			continue;
		to->queues++;
		to->others |= v[k].handle && TC_H_MIN(v[k].parent) != FIRST_QUEUE;
	}
	to->at = first ? *first : *root;
	if (first && is_fifo(first->kind))
		to->kind = BL_TX_FIFO;
	else if (first && first->handle == BL_NIC_H_BANDS)
		look_at_bands(v, n, first, to);
	else if (root->handle == BL_NIC_H_MQ)
		to->kind = first && first->handle ? BL_TX_FOREIGN : BL_TX_TORN;
	else
		to->kind = first && !root->handle ? BL_TX_MQ : BL_TX_FOREIGN;
}

void bl_tx_look(const struct nl_qdisc *v, unsigned int n, struct bl_tx_view *to)
{
	const struct nl_qdisc *root = child_of(v, n, TC_H_ROOT),
			      *hook = child_of(v, n, TC_H_CLSACT);

	memset(to, 0, sizeof(*to));
	to->clsact = hook && !strcmp(hook->kind, "clsact");
	to->ingress = hook && !to->clsact;
	if (!root || !strcmp(root->kind, "noop"))
		return;
	to->at = *root;
	if (is_fifo(root->kind) || is_shaped_fifo(v, n, root))
		to->kind = BL_TX_FIFO;
	else if (!strcmp(root->kind, "mq"))
		look_at_mq(v, n, root, to);
	else if (root->handle == BL_NIC_H_BANDS)
		look_at_bands(v, n, root, to);
	else
		to->kind = root->handle ? BL_TX_FOREIGN : BL_TX_ROOT;
}

static int look(int ifindex, struct bl_tx_view *to)
{
	struct nl_qdisc *v = calloc(BL_TX_QDISCS, sizeof(*v));
	int n;

	if (!v)
		return -ENOMEM;
	n = nl_qdisc_list(ifindex, v, BL_TX_QDISCS);
	if (n >= 0)
		bl_tx_look(v, (unsigned int)n, to);
	free(v);
	return n < 0 ? n : 0;
}

static unsigned int tx_queues(const char *ifname, const struct bl_tx_view *v)
{
	unsigned int n = et_tx_queues(ifname);

	return v->queues > n ? v->queues : n;
}

/* Whether XPS picks transmit queues; true if that cannot be read. */
static bool has_xps(const char *ifname)
{
	char path[64 + IFNAMSIZ], text[512];
	int sys = bl_sysfs_open(), dir, fd;
	struct dirent *e;
	bool set = true;
	ssize_t n;
	DIR *d;

	if (sys < 0)
		return true;
	snprintf(path, sizeof(path), "class/net/%s/queues", ifname);
	dir = openat(sys, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(sys);
	d = dir < 0 ? NULL : fdopendir(dir);
	if (!d) {
		if (dir >= 0)
			close(dir);
		return true;
	}
	for (set = false; !set && (e = readdir(d));) {
		if (strncmp(e->d_name, "tx-", 3))
			continue;
		snprintf(path, sizeof(path), "%.20s/xps_cpus", e->d_name);
		fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = 0;
		set = strcspn(text, "123456789abcdef") < strlen(text);
		if (fd >= 0)
			close(fd);
	}
	closedir(d);
	return set;
}

static uint32_t queue_length(const char *ifname)
{
	struct ifreq r = {};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", ifname);
	if (fd < 0 || ioctl(fd, SIOCGIFTXQLEN, &r))
		r.ifr_qlen = 0;
	if (fd >= 0)
		close(fd);
	return r.ifr_qlen > BL_NIC_LIMIT ? (uint32_t)r.ifr_qlen : BL_NIC_LIMIT;
}

/* ---- making ---- */

/** struct making - what bl_tx_make() works with. */
struct making {
	struct nl nl;
	const struct bl_iface *i;
	struct bl_nic *nic;
	int (*save)(const struct bl_nic *nic, void *ctx);
	void *ctx;
	struct bl_err *err;
};

static int note(struct making *m, uint32_t done)
{
	m->nic->done |= done;
	return m->save(m->nic, m->ctx);
}

static int refuse(struct making *m, const char *what, int rc)
{
	return bl_fail(m->err, EPERM,
		       "%s cannot be made one FIFO for ordered frames: %s: %s; set a FIFO "
		       "yourself (`tc qdisc replace dev %s root pfifo`), or accept that frames "
		       "are reordered (--accept reordering)",
		       m->i->name, what, strerror(-rc), m->i->name);
}

/* Puts the two bands at @parent. */
static int make_bands(struct making *m, uint32_t parent)
{
	int x = m->i->ifindex, rc;

	rc = nl_qdisc_two_bands(&m->nl, x, parent, BL_NIC_H_BANDS, "ets");
	m->nic->strict = rc == -ENOENT;
	if (m->nic->strict)
		rc = nl_qdisc_two_bands(&m->nl, x, parent, BL_NIC_H_BANDS, "prio");
	if (rc)
		return refuse(m, "two bands (sch_ets, sch_prio)", rc);
	rc = nl_qdisc_pfifo(&m->nl, x, BL_NIC_H_BANDS | 1, BL_NIC_H_FIFO, m->nic->limit);
	if (!rc)
		rc = nl_qdisc_add(&m->nl, x, BL_NIC_H_BANDS | 2, BL_NIC_H_REST, m->nic->rest);
	return rc ? refuse(m, "the disciplines of its bands", rc) : 0;
}

static int make_queueing(struct making *m, const struct bl_tx_view *v)
{
	bool torn = v->kind == BL_TX_TORN;
	int rc;

	if (!torn)
		snprintf(m->nic->rest, sizeof(m->nic->rest), "%s", v->at.kind);
	else if (!*m->nic->rest)
		snprintf(m->nic->rest, sizeof(m->nic->rest), "pfifo");
	m->nic->limit = queue_length(m->i->name);
	rc = note(m, BL_NIC_BANDS | (v->mq ? BL_NIC_MQ : 0));
	if (rc)
		return bl_fail(m->err, -rc, "cannot write the map %s: %s", BL_MAP_NIC,
			       strerror(-rc));
	if (v->mq && !torn) {
		/* The kernel's own mq has no handle, so nothing can be put below it. */
		rc = nl_qdisc_add(&m->nl, m->i->ifindex, TC_H_ROOT, BL_NIC_H_MQ, "mq");
		if (rc)
			return refuse(m, "an mq of its own", rc);
	}
	return make_bands(m, v->mq ? BL_NIC_H_MQ | FIRST_QUEUE : TC_H_ROOT);
}

/* Has ordered frames leave by queue 0. Sets @steered, or finds that nothing else would happen. */
static int make_steering(struct making *m, const struct bl_tx_view *v, int prog, bool bands,
			 bool *steered)
{
	int rc;

	*steered = false;
	rc = note(m, BL_NIC_QUEUE | (v->clsact ? 0 : BL_NIC_CLSACT));
	if (rc)
		return bl_fail(m->err, -rc, "cannot write the map %s: %s", BL_MAP_NIC,
			       strerror(-rc));
	rc = nl_clsact_make(&m->nl, m->i->ifindex);
	if (rc == -EBUSY)
		return bl_fail(m->err, EPERM,
			       "%s has several transmit queues and an ingress qdisc, which "
			       "somebody has set and which is in the place of the clsact that "
			       "picks "
			       "one of them; `tc qdisc del dev %s ingress`, give its filters to a "
			       "clsact, which takes them at \"ingress\", and start again, or "
			       "accept "
			       "that frames are reordered (--accept reordering)",
			       m->i->name, m->i->name);
	if (!rc)
		rc = nl_filter_queue(&m->nl, m->i->ifindex, FILTER_PRIO, FILTER_HANDLE, prog, 0,
				     !bands);
	*steered = !rc;
	if (!rc)
		return 0;
	if (!has_xps(m->i->name))
		return 0;
	return refuse(m,
		      "it has several transmit queues, XPS picks among them, and the filter that "
		      "would (act_skbedit, Linux 5.18) cannot be set",
		      rc);
}

/*
 * A look in one byte, so that bl_tx_kept() can tell whether anything has changed since the NIC was
 * made or judged: the kind of the queueing discipline, and the bits below.
 */
#define SEEN_QUEUES  0x80 /* it has several transmit queues */
#define SEEN_STEERED 0x40 /* barline's filter picks one of them */
#define SEEN_INGRESS 0x20 /* an ingress qdisc is in the place of clsact */

static uint8_t seen(enum bl_tx_kind kind, const struct bl_tx_view *v, bool queues, bool steered)
{
	return (uint8_t)(kind | (queues ? SEEN_QUEUES : 0) | (steered ? SEEN_STEERED : 0) |
			 (queues && v->ingress ? SEEN_INGRESS : 0));
}

static bool is_steered(struct nl *nl, int ifindex)
{
	return nl_filter_count(nl, ifindex, PEER_EGRESS, FILTER_PRIO, FILTER_HANDLE) != 0;
}

static int judge(struct making *m, const struct bl_tx_view *v)
{
	if (v->kind != BL_TX_FOREIGN)
		return 0;
	return bl_fail(m->err, EPERM,
		       "%s has the queueing discipline %s %x:, which somebody has set and which "
		       "may send frames in another order than it gets them; `tc qdisc del dev %s "
		       "root` and start again, or accept that (--accept reordering)",
		       m->i->name, v->at.kind, TC_H_MAJ(v->at.handle) >> 16, m->i->name);
}

int bl_tx_make(const struct bl_iface *i, struct bl_nic *nic, int queue_prog,
	       int (*save)(const struct bl_nic *nic, void *ctx), void *ctx, struct bl_tx_how *how,
	       struct bl_err *err)
{
	struct making m = { .i = i, .nic = nic, .save = save, .ctx = ctx, .err = err };
	struct bl_tx_view v;
	bool bands, queues;
	int rc;

	*how = (struct bl_tx_how){};
	rc = nl_open(&m.nl);
	if (!rc)
		rc = look(i->ifindex, &v);
	if (rc) {
		nl_close(&m.nl);
		return bl_fail(err, -rc, "cannot read the queueing disciplines of %s: %s", i->name,
			       strerror(-rc));
	}
	queues = v.kind != BL_TX_NONE && tx_queues(i->name, &v) > 1;
	/* Where it fails, it is tried again when the NIC looks otherwise than now. */
	nic->seen = seen(v.kind, &v, queues, queues && is_steered(&m.nl, i->ifindex));
	rc = judge(&m, &v);
	bands = v.kind == BL_TX_ROOT || v.kind == BL_TX_MQ || v.kind == BL_TX_TORN;
	if (!rc && bands)
		rc = make_queueing(&m, &v);
	bands |= v.kind == BL_TX_OURS;
	if (!rc && queues)
		rc = make_steering(&m, &v, queue_prog, bands, &how->steered);
	how->classed = bands || how->steered;
	if (!rc) {
		nic->tx = v.kind == BL_TX_NONE ? BL_NIC_UNKNOWN
			  : how->classed       ? BL_NIC_MADE
					       : BL_NIC_IS_FIFO;
		nic->seen = seen(bands ? BL_TX_OURS : v.kind, &v, queues, how->steered);
	}
	nl_close(&m.nl);
	return rc;
}

bool bl_tx_kept(const struct bl_iface *i, const struct bl_nic *nic)
{
	bool kept = true, queues;
	struct bl_tx_view v;
	struct nl nl;

	if (nl_open(&nl))
		return true;
	if (!look(i->ifindex, &v)) {
		queues = v.kind != BL_TX_NONE && tx_queues(i->name, &v) > 1;
		kept = nic->seen == seen(v.kind, &v, queues, queues && is_steered(&nl, i->ifindex));
	}
	nl_close(&nl);
	return kept;
}

/* ---- undoing ---- */

/*
 * Removes barline's filter, and the clsact if barline made it and it has no other filters. An
 * ingress qdisc is somebody else's, with all of its filters.
 */
static void undo_steering(struct nl *nl, const struct bl_iface *i, const struct bl_nic *nic,
			  const struct bl_tx_view *v)
{
	int x = i->ifindex;

	if (!v->clsact)
		return;
	if (nic->done & BL_NIC_QUEUE &&
	    nl_filter_count(nl, x, PEER_EGRESS, FILTER_PRIO, FILTER_HANDLE) > 0)
		nl_filter_del(nl, x, FILTER_PRIO, FILTER_HANDLE);
	if (nic->done & BL_NIC_CLSACT && !nl_filter_count(nl, x, PEER_EGRESS, 0, 0) &&
	    !nl_filter_count(nl, x, PEER_INGRESS, 0, 0))
		nl_clsact_del(nl, x);
}

static void undo_queueing(struct nl *nl, const struct bl_iface *i, const struct bl_nic *nic,
			  const struct bl_tx_view *v)
{
	bool mq = nic->done & BL_NIC_MQ;
	int rc;

	if (v->kind != BL_TX_OURS && v->kind != BL_TX_TORN) {
		/* The start was killed before its first change. */
		if (!v->at.handle)
			return;
		bl_log(BL_LOG_WARN,
		       "%s has the queueing discipline %s now, which barline did not set: it "
		       "stays",
		       i->name, *v->at.kind ? v->at.kind : "noop");
		return;
	}
	if (mq && v->others) {
		bl_log(BL_LOG_WARN,
		       "%s: somebody has set queueing disciplines below barline's mq: it stays, "
		       "and its first queue has %s again",
		       i->name, nic->rest);
		rc = nl_qdisc_add(nl, i->ifindex, BL_NIC_H_MQ | FIRST_QUEUE, 0, nic->rest);
	} else {
		rc = nl_qdisc_del(nl, i->ifindex, TC_H_ROOT, mq ? BL_NIC_H_MQ : BL_NIC_H_BANDS);
	}
	if (rc)
		bl_log(BL_LOG_WARN,
		       "%s: cannot put the queueing discipline %s back: %s; `tc qdisc del dev %s "
		       "root`",
		       i->name, nic->rest, strerror(-rc), i->name);
}

void bl_tx_undo(const struct bl_iface *i, struct bl_nic *nic)
{
	struct bl_tx_view v;
	struct nl nl;

	if (!(nic->done & (BL_NIC_BANDS | BL_NIC_MQ | BL_NIC_QUEUE | BL_NIC_CLSACT)) ||
	    nl_open(&nl))
		return;
	if (!look(i->ifindex, &v)) {
		undo_steering(&nl, i, nic, &v);
		if (nic->done & BL_NIC_BANDS)
			undo_queueing(&nl, i, nic, &v);
	}
	nic->done &= ~(uint32_t)(BL_NIC_BANDS | BL_NIC_MQ | BL_NIC_QUEUE | BL_NIC_CLSACT);
	nl_close(&nl);
}
