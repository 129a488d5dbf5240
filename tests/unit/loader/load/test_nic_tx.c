// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/load/nic_tx.c with a kernel of its own: which lists of queueing disciplines are a FIFO,
 * what is made of those that are not, and that everything is put back, also where a start was
 * killed after any number of changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <setjmp.h>

#include "tests/unit/unit.h"

#include "base/ethtool.h"
#include "loader/load/nic_tx.h"
#include "loader/load/sysfs.h"

#define ALL 32

/** struct kernel - the disciplines of one NIC, and what this kernel can do. */
static struct {
	struct nl_qdisc v[ALL];
	unsigned int n;
	char normal[16];     /* kind of its default */
	unsigned int queues; /* transmit queues */
	bool no_ets, no_prio, no_skbedit, sysfs;
	int filters, foreign; /* barline's filter; those of others */
	bool unclass;         /* of barline's filter */
	int changes, die_at;  /* changes so far; the process dies before this one (0: never) */
} k;
static jmp_buf killed;

static void change(void)
{
	if (++k.changes == k.die_at)
		longjmp(killed, 1);
}

static int index_of(uint32_t parent)
{
	unsigned int j;

	for (j = 0; j < k.n; j++)
		if (k.v[j].parent == parent)
			return (int)j;
	return -1;
}

static void take_out(uint32_t parent)
{
	int j = index_of(parent);
	uint32_t handle;
	bool classes;
	unsigned int q;

	if (j < 0)
		return;
	handle = k.v[j].handle;
	/* The kernel's own mq has classes without a handle. */
	classes = handle || !strcmp(k.v[j].kind, "mq");
	memmove(&k.v[j], &k.v[j + 1], (--k.n - (unsigned int)j) * sizeof(k.v[0]));
	for (q = 1; classes && q < 16; q++)
		take_out(handle | q);
}

static void put_in(uint32_t parent, uint32_t handle, const char *kind)
{
	unsigned int q;

	take_out(parent);
	assert_true(k.n < ALL);
	k.v[k.n] = (struct nl_qdisc){ .parent = parent, .handle = handle };
	strcpy(k.v[k.n++].kind, kind);
	for (q = 1; !strcmp(kind, "mq") && q <= k.queues; q++)
		put_in(handle | q, 0, k.normal);
}

static void default_root(void)
{
	k.n = 0;
	put_in(TC_H_ROOT, 0, k.queues > 1 && strcmp(k.normal, "noqueue") ? "mq" : k.normal);
}

static void start(const char *normal, unsigned int queues)
{
	memset(&k, 0, sizeof(k));
	strcpy(k.normal, normal);
	k.queues = queues;
	default_root();
}

int __wrap_nl_open(struct nl *nl);
void __wrap_nl_close(struct nl *nl);
int __wrap_nl_qdisc_list(int ifindex, struct nl_qdisc *v, unsigned int max);
int __wrap_nl_qdisc_add(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle,
			const char *kind);
int __wrap_nl_qdisc_pfifo(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle,
			  uint32_t limit);
int __wrap_nl_qdisc_two_bands(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle,
			      const char *kind);
int __wrap_nl_qdisc_del(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle);
int __wrap_nl_filter_queue(struct nl *nl, int ifindex, uint16_t prio, uint32_t handle, int prog_fd,
			   uint16_t queue, bool unclass);
int __wrap_nl_filter_del(struct nl *nl, int ifindex, uint16_t prio, uint32_t handle);
int __wrap_nl_filter_count(struct nl *nl, int ifindex, uint32_t parent, uint16_t prio,
			   uint32_t handle);
int __wrap_nl_clsact_make(struct nl *nl, int ifindex);
int __wrap_nl_clsact_del(struct nl *nl, int ifindex);
unsigned int __wrap_et_tx_queues(const char *ifname);
int __wrap_bl_sysfs_open(void);

int __wrap_nl_open(struct nl *nl)
{
	nl->fd = -1;
	return 0;
}

void __wrap_nl_close(struct nl *nl)
{
	(void)nl;
}

int __wrap_nl_qdisc_list(int ifindex, struct nl_qdisc *v, unsigned int max)
{
	(void)ifindex;
	assert_true(k.n <= max);
	memcpy(v, k.v, k.n * sizeof(*v));
	return (int)k.n;
}

/* The kernel knows no class of a discipline that has no handle. */
static int graft(uint32_t parent, uint32_t handle, const char *kind)
{
	unsigned int j;

	change();
	for (j = 0; parent != TC_H_ROOT && j < k.n; j++)
		if (k.v[j].handle && k.v[j].handle == TC_H_MAJ(parent))
			break;
	if (parent != TC_H_ROOT && j == k.n)
		return -ENOENT;
	put_in(parent, handle, kind);
	return 0;
}

int __wrap_nl_qdisc_add(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle,
			const char *kind)
{
	(void)nl, (void)ifindex;
	return graft(parent, handle, kind);
}

int __wrap_nl_qdisc_pfifo(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle,
			  uint32_t limit)
{
	(void)nl, (void)ifindex;
	assert_true(limit >= BL_NIC_LIMIT);
	return graft(parent, handle, "pfifo");
}

int __wrap_nl_qdisc_two_bands(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle,
			      const char *kind)
{
	(void)nl, (void)ifindex;
	if (!strcmp(kind, "ets") ? k.no_ets : k.no_prio)
		return -ENOENT;
	return graft(parent, handle, kind);
}

int __wrap_nl_qdisc_del(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle)
{
	int j = index_of(parent);

	(void)nl, (void)ifindex;
	change();
	assert_int_equal(parent, TC_H_ROOT);
	if (j < 0 || k.v[j].handle != handle || !handle)
		return -ENOENT;
	default_root();
	return 0;
}

int __wrap_nl_clsact_make(struct nl *nl, int ifindex)
{
	int j = index_of(TC_H_CLSACT);

	(void)nl, (void)ifindex;
	if (j >= 0)
		return strcmp(k.v[j].kind, "clsact") ? -EBUSY : 0;
	change();
	put_in(TC_H_CLSACT, TC_H_CLSACT & 0xffff0000U, "clsact");
	return 0;
}

int __wrap_nl_clsact_del(struct nl *nl, int ifindex)
{
	(void)nl, (void)ifindex;
	change();
	assert_int_equal(k.filters + k.foreign, 0);
	assert_string_equal(k.v[index_of(TC_H_CLSACT)].kind, "clsact");
	take_out(TC_H_CLSACT);
	return 0;
}

int __wrap_nl_filter_queue(struct nl *nl, int ifindex, uint16_t prio, uint32_t handle, int prog_fd,
			   uint16_t queue, bool unclass)
{
	(void)nl, (void)ifindex, (void)prio, (void)handle;
	assert_int_equal(prog_fd, 9);
	assert_int_equal(queue, 0);
	if (k.no_skbedit)
		return -ENOENT;
	change();
	assert_true(index_of(TC_H_CLSACT) >= 0);
	k.filters = 1;
	k.unclass = unclass;
	return 0;
}

int __wrap_nl_filter_del(struct nl *nl, int ifindex, uint16_t prio, uint32_t handle)
{
	(void)nl, (void)ifindex, (void)prio, (void)handle;
	change();
	k.filters = 0;
	return 0;
}

int __wrap_nl_filter_count(struct nl *nl, int ifindex, uint32_t parent, uint16_t prio,
			   uint32_t handle)
{
	(void)nl, (void)ifindex;
	if (parent != TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS))
		return 0;
	return prio && handle ? k.filters : k.filters + k.foreign;
}

unsigned int __wrap_et_tx_queues(const char *ifname)
{
	(void)ifname;
	return k.queues;
}

/* Without sysfs, XPS counts as set. */
int __wrap_bl_sysfs_open(void)
{
	return k.sysfs ? open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static struct bl_nic kept; /* the record as a process that dies leaves it */

static int keep(const struct bl_nic *nic, void *ctx)
{
	(void)ctx;
	kept = *nic;
	return 0;
}

static struct bl_iface nic = { .name = "eth9", .ifindex = 9 };
static struct bl_tx_how how;
static struct bl_err err;

static int make(void)
{
	struct bl_nic n = kept;
	int rc = bl_tx_make(&nic, &n, 9, keep, NULL, &how, &err);

	kept = n;
	return rc;
}

static void expect(unsigned int n, const struct nl_qdisc *want, const char *when)
{
	unsigned int j;
	int at;

	if (n != k.n)
		fail_msg("%s: %u disciplines, want %u", when, k.n, n);
	for (j = 0; j < n; j++) {
		at = index_of(want[j].parent);
		if (at < 0 || k.v[at].handle != want[j].handle ||
		    strcmp(k.v[at].kind, want[j].kind))
			fail_msg("%s: at %x is %s %x", when, want[j].parent,
				 at < 0 ? "nothing" : k.v[at].kind, at < 0 ? 0 : k.v[at].handle);
	}
}

#define BANDS_AT(p)                                                                   \
	{ BL_NIC_H_BANDS, p, "ets" }, { BL_NIC_H_FIFO, BL_NIC_H_BANDS | 1, "pfifo" }, \
	{                                                                             \
		BL_NIC_H_REST, BL_NIC_H_BANDS | 2, "fq_codel"                         \
	}

/* ---- what is there ---- */

static void look__table(void **state)
{
#define Q(parent, handle, kind)      \
	{                            \
		handle, parent, kind \
	}
	static const struct {
		const char *name;
		struct nl_qdisc v[6];
		enum bl_tx_kind kind;
		const char *at;
	} t[] = {
		{ "nothing", { { 0 } }, BL_TX_NONE, "" },
		{ "down", { Q(TC_H_ROOT, 0, "noop") }, BL_TX_NONE, "" },
		{ "veth", { Q(TC_H_ROOT, 0, "noqueue") }, BL_TX_FIFO, "noqueue" },
		{ "pfifo", { Q(TC_H_ROOT, 0x10000, "pfifo") }, BL_TX_FIFO, "pfifo" },
		{ "old default", { Q(TC_H_ROOT, 0, "pfifo_fast") }, BL_TX_FIFO, "pfifo_fast" },
		{ "default", { Q(TC_H_ROOT, 0, "fq_codel") }, BL_TX_ROOT, "fq_codel" },
		{ "set", { Q(TC_H_ROOT, 0x80010000, "fq_codel") }, BL_TX_FOREIGN, "fq_codel" },
		{ "htb", { Q(TC_H_ROOT, 0x10000, "htb") }, BL_TX_FOREIGN, "htb" },
		{ "tbf", { Q(TC_H_ROOT, 0x10000, "tbf") }, BL_TX_FIFO, "tbf" },
		{ "tbf over a FIFO",
		  { Q(TC_H_ROOT, 0x10000, "tbf"), Q(0x10001, 0, "bfifo") },
		  BL_TX_FIFO,
		  "tbf" },
		{ "tbf over fq_codel",
		  { Q(TC_H_ROOT, 0x10000, "tbf"), Q(0x10001, 0x20000, "fq_codel") },
		  BL_TX_FOREIGN,
		  "tbf" },
		{ "mq",
		  { Q(TC_H_ROOT, 0, "mq"), Q(2, 0, "fq_codel"), Q(1, 0, "fq_codel") },
		  BL_TX_MQ,
		  "fq_codel" },
		{ "mq of FIFOs",
		  { Q(TC_H_ROOT, 0, "mq"), Q(1, 0, "pfifo_fast") },
		  BL_TX_FIFO,
		  "pfifo_fast" },
		{ "mq that was set",
		  { Q(TC_H_ROOT, 0x10000, "mq"), Q(0x10001, 0, "fq_codel") },
		  BL_TX_FOREIGN,
		  "fq_codel" },
		{ "mq without queues", { Q(TC_H_ROOT, 0, "mq") }, BL_TX_FOREIGN, "mq" },
		{ "ours",
		  { BANDS_AT(TC_H_ROOT), Q(TC_H_CLSACT, 0xffff0000, "clsact") },
		  BL_TX_OURS,
		  "ets" },
		{ "ours without a FIFO",
		  { Q(TC_H_ROOT, BL_NIC_H_BANDS, "ets"),
		    Q(BL_NIC_H_BANDS | 2, BL_NIC_H_REST, "fq_codel") },
		  BL_TX_TORN,
		  "ets" },
		{ "ours below mq",
		  { Q(TC_H_ROOT, BL_NIC_H_MQ, "mq"), BANDS_AT(BL_NIC_H_MQ | 1) },
		  BL_TX_OURS,
		  "ets" },
		{ "ours with somebody's FIFO",
		  { Q(TC_H_ROOT, BL_NIC_H_BANDS, "ets"), Q(BL_NIC_H_BANDS | 1, 0x70000, "bfifo"),
		    Q(BL_NIC_H_BANDS | 2, BL_NIC_H_REST, "fq_codel") },
		  BL_TX_OURS,
		  "ets" },
		{ "ours with somebody's sfq",
		  { Q(TC_H_ROOT, BL_NIC_H_BANDS, "ets"), Q(BL_NIC_H_BANDS | 1, 0x70000, "sfq"),
		    Q(BL_NIC_H_BANDS | 2, BL_NIC_H_REST, "fq_codel") },
		  BL_TX_FOREIGN,
		  "sfq" },
		{ "the kernel's FIFO in our bands",
		  { Q(TC_H_ROOT, BL_NIC_H_BANDS, "ets"), Q(BL_NIC_H_BANDS | 1, 0, "pfifo"),
		    Q(BL_NIC_H_BANDS | 2, 0, "pfifo") },
		  BL_TX_TORN,
		  "ets" },
		{ "somebody's fq below our mq",
		  { Q(TC_H_ROOT, BL_NIC_H_MQ, "mq"), Q(BL_NIC_H_MQ | 1, 0x70000, "fq") },
		  BL_TX_FOREIGN,
		  "fq" },
		{ "ingress",
		  { Q(TC_H_ROOT, 0, "noqueue"), Q(TC_H_CLSACT, 0xffff0000, "ingress") },
		  BL_TX_FIFO,
		  "noqueue" },
		{ "our mq only",
		  { Q(TC_H_ROOT, BL_NIC_H_MQ, "mq"), Q(BL_NIC_H_MQ | 1, 0, "fq_codel") },
		  BL_TX_TORN,
		  "fq_codel" },
	};
	struct bl_tx_view v;
	unsigned int j, n;

	(void)state;
	for (j = 0; j < ARRAY_SIZE(t); j++) {
		for (n = 0; n < 6 && *t[j].v[n].kind; n++)
			;
		bl_tx_look(t[j].v, n, &v);
		if (v.kind != t[j].kind || strcmp(v.at.kind, t[j].at))
			fail_msg("%s: kind %d at \"%s\"", t[j].name, v.kind, v.at.kind);
		assert_int_equal(v.clsact, !strcmp(t[j].name, "ours"));
		assert_int_equal(v.ingress, !strcmp(t[j].name, "ingress"));
	}
}

/* ---- made and undone ---- */

static void make__one_queue(void **state)
{
	static const struct nl_qdisc made[] = { BANDS_AT(TC_H_ROOT) },
				     before[] = { { 0, TC_H_ROOT, "fq_codel" } };

	(void)state;
	start("fq_codel", 1);
	memset(&kept, 0, sizeof(kept));
	assert_int_equal(make(), 0);
	expect(3, made, "made");
	assert_int_equal(kept.tx, BL_NIC_MADE);
	assert_int_equal(kept.done, BL_NIC_BANDS);
	assert_string_equal(kept.rest, "fq_codel");
	assert_true(how.classed && !how.steered);
	assert_true(bl_tx_kept(&nic, &kept));
	/* once more: a daemon that takes the node over */
	k.changes = 0;
	assert_int_equal(make(), 0);
	assert_int_equal(k.changes, 0);
	assert_true(how.classed && !how.steered);
	bl_tx_undo(&nic, &kept);
	expect(1, before, "undone");
	assert_int_equal(kept.done, 0);
}

static void make__mq(void **state)
{
	static const struct nl_qdisc made[] = { { BL_NIC_H_MQ, TC_H_ROOT, "mq" },
						{ 0, BL_NIC_H_MQ | 2, "fq_codel" },
						BANDS_AT(BL_NIC_H_MQ | 1),
						{ 0xffff0000, TC_H_CLSACT, "clsact" } },
				     before[] = { { 0, TC_H_ROOT, "mq" },
						  { 0, 1, "fq_codel" },
						  { 0, 2, "fq_codel" } };

	(void)state;
	start("fq_codel", 2);
	memset(&kept, 0, sizeof(kept));
	assert_int_equal(make(), 0);
	expect(6, made, "made");
	assert_true(how.classed && how.steered && k.filters && !k.unclass);
	assert_true(bl_tx_kept(&nic, &kept));
	/* what others remove is missed */
	k.filters = 0;
	assert_false(bl_tx_kept(&nic, &kept));
	assert_int_equal(make(), 0);
	assert_true(bl_tx_kept(&nic, &kept));
	default_root();
	assert_false(bl_tx_kept(&nic, &kept));
	assert_int_equal(make(), 0);
	bl_tx_undo(&nic, &kept);
	expect(3, before, "undone");
	assert_int_equal(k.filters, 0);
}

/* Where each queue is a FIFO already only the queue is picked, and the priority is 0 again. */
static void make__queues_of_fifos(void **state)
{
	static const struct nl_qdisc before[] = { { 0, TC_H_ROOT, "noqueue" } };

	(void)state;
	start("noqueue", 4);
	memset(&kept, 0, sizeof(kept));
	assert_int_equal(make(), 0);
	assert_true(how.classed && how.steered && k.filters && k.unclass);
	assert_int_equal(kept.tx, BL_NIC_MADE);
	bl_tx_undo(&nic, &kept);
	expect(1, before, "undone");
	/* without act_skbedit XPS would win */
	start("noqueue", 4);
	memset(&kept, 0, sizeof(kept));
	k.no_skbedit = true;
	assert_int_equal(make(), -EPERM);
	assert_non_null(strstr(err.text, "act_skbedit"));
	bl_tx_undo(&nic, &kept);
	expect(1, before, "undone");
}

static void make__is_fifo(void **state)
{
	(void)state;
	start("pfifo_fast", 1);
	memset(&kept, 0, sizeof(kept));
	assert_int_equal(make(), 0);
	assert_int_equal(k.changes, 0);
	assert_int_equal(kept.tx, BL_NIC_IS_FIFO);
	assert_true(!how.classed && !how.steered);
}

static void make__fallback_and_refused(void **state)
{
	static const struct nl_qdisc set[] = { { 0x10000, TC_H_ROOT, "htb" } };

	(void)state;
	start("fq_codel", 1);
	memset(&kept, 0, sizeof(kept));
	k.no_ets = true;
	assert_int_equal(make(), 0);
	assert_true(kept.strict);
	assert_string_equal(k.v[index_of(TC_H_ROOT)].kind, "prio");
	bl_tx_undo(&nic, &kept);
	k.no_prio = true;
	assert_int_equal(make(), -EPERM);
	assert_non_null(strstr(err.text, "sch_ets, sch_prio"));
	bl_tx_undo(&nic, &kept);
	assert_string_equal(k.v[index_of(TC_H_ROOT)].kind, "fq_codel");

	start("fq_codel", 1);
	put_in(TC_H_ROOT, 0x10000, "htb");
	memset(&kept, 0, sizeof(kept));
	assert_int_equal(make(), -EPERM);
	assert_non_null(strstr(err.text, "htb 1:"));
	bl_tx_undo(&nic, &kept);
	expect(1, set, "refused");
}

/* ---- what changes meanwhile ---- */

static void start_with(const char *normal, unsigned int queues)
{
	start(normal, queues);
	memset(&kept, 0, sizeof(kept));
}

/* It is tried again when, and only when, something has changed. */
static void expect_made(enum bl_nic_fifo tx, bool steered, const char *when)
{
	if (bl_tx_kept(&nic, &kept))
		fail_msg("%s: the change was not seen", when);
	assert_int_equal(make(), 0);
	if (kept.tx != tx || how.steered != steered || k.filters != steered)
		fail_msg("%s: transmit side %d, steered %d, %d filters", when, kept.tx, how.steered,
			 k.filters);
	if (!bl_tx_kept(&nic, &kept))
		fail_msg("%s: seen again", when);
}

/* A NIC that was down when the node was started comes up with the queues that it has. */
static void kept__comes_up(void **state)
{
	static const char *const normal[] = { "pfifo_fast", "noqueue", "fq_codel" };
	unsigned int j, queues;

	(void)state;
	for (j = 0; j < ARRAY_SIZE(normal); j++)
		for (queues = 1; queues < 3; queues++) {
			bool fifo = strcmp(normal[j], "fq_codel") != 0;

			start_with(normal[j], queues);
			k.n = 0;
			put_in(TC_H_ROOT, 0, "noop");
			assert_int_equal(make(), 0);
			assert_int_equal(kept.tx, BL_NIC_UNKNOWN);
			assert_true(bl_tx_kept(&nic, &kept));
			default_root();
			expect_made(fifo && queues == 1 ? BL_NIC_IS_FIFO : BL_NIC_MADE, queues > 1,
				    normal[j]);
			bl_tx_undo(&nic, &kept);
			assert_int_equal(k.filters, 0);
		}
}

/* `ethtool -L eth9 tx 2` */
static void kept__queues_grow(void **state)
{
	(void)state;
	start_with("noqueue", 1);
	assert_int_equal(make(), 0);
	assert_int_equal(kept.tx, BL_NIC_IS_FIFO);
	k.queues = 2;
	expect_made(BL_NIC_MADE, true, "a second queue");
}

/* A discipline of somebody else's is refused once, and when it goes the NIC is made again. */
static void kept__foreign_goes(void **state)
{
	unsigned int queues;

	(void)state;
	for (queues = 1; queues < 3; queues++) {
		start_with("fq_codel", queues);
		assert_int_equal(make(), 0);
		take_out(TC_H_ROOT);
		put_in(TC_H_ROOT, 0x10000, "fq");
		assert_false(bl_tx_kept(&nic, &kept));
		assert_int_equal(make(), -EPERM);
		assert_non_null(strstr(err.text, "fq 1:"));
		kept.tx = BL_NIC_BROKEN;
		assert_true(bl_tx_kept(&nic, &kept));
		default_root();
		expect_made(BL_NIC_MADE, queues > 1, "the default is back");

		/* also one in the place of barline's FIFO */
		put_in(BL_NIC_H_BANDS | 1, 0x70000, "sfq");
		assert_false(bl_tx_kept(&nic, &kept));
		assert_int_equal(make(), -EPERM);
		assert_non_null(strstr(err.text, "sfq 7:"));
		assert_string_equal(k.v[index_of(BL_NIC_H_BANDS | 1)].kind, "sfq");
		kept.tx = BL_NIC_BROKEN;
		assert_true(bl_tx_kept(&nic, &kept));
		bl_tx_undo(&nic, &kept);
		assert_string_equal(k.v[index_of(BL_NIC_H_BANDS | 1)].kind, "sfq");
	}
}

/* The kernel would take a filter for the egress side of an ingress qdisc, and never ask it. */
static void kept__ingress(void **state)
{
	static const struct nl_qdisc before[] = { { 0, TC_H_ROOT, "noqueue" },
						  { 0xffff0000, TC_H_CLSACT, "ingress" } };

	(void)state;
	start_with("noqueue", 2);
	put_in(TC_H_CLSACT, 0xffff0000, "ingress");
	assert_int_equal(make(), -EPERM);
	assert_non_null(strstr(err.text, "ingress qdisc"));
	assert_int_equal(k.filters, 0);
	kept.tx = BL_NIC_BROKEN;
	assert_true(bl_tx_kept(&nic, &kept));
	bl_tx_undo(&nic, &kept);
	expect(2, before, "undone");

	start_with("noqueue", 2);
	assert_int_equal(make(), 0);
	take_out(TC_H_CLSACT);
	k.filters = 0;
	put_in(TC_H_CLSACT, 0xffff0000, "ingress");
	assert_false(bl_tx_kept(&nic, &kept));
	assert_int_equal(make(), -EPERM);
	take_out(TC_H_CLSACT);
	expect_made(BL_NIC_MADE, true, "the ingress qdisc is gone");
	/* With one transmit queue nothing needs a clsact. */
	start_with("fq_codel", 1);
	put_in(TC_H_CLSACT, 0xffff0000, "ingress");
	assert_int_equal(make(), 0);
	assert_true(bl_tx_kept(&nic, &kept));
}

/* Without act_skbedit and without XPS the program picks the queue, and nothing is missing. */
static void kept__not_steered(void **state)
{
	(void)state;
	start_with("fq_codel", 2);
	k.no_skbedit = k.sysfs = true;
	strcpy(nic.name, "lo"); /* has no XPS in sysfs */
	assert_int_equal(make(), 0);
	strcpy(nic.name, "eth9");
	assert_int_equal(kept.tx, BL_NIC_MADE);
	assert_false(how.steered);
	assert_true(bl_tx_kept(&nic, &kept));
}

/* ---- undone ---- */

/* Killed before any of its changes, a start leaves a record from which all is put back. */
static void undo__after_kill(void **state)
{
	static const struct nl_qdisc before[] = { { 0, TC_H_ROOT, "mq" },
						  { 0, 1, "fq_codel" },
						  { 0, 2, "fq_codel" } };
	volatile int at, again;

	(void)state;
	for (again = 0; again < 2; again++) {
		for (at = 1;; at++) {
			start("fq_codel", 2);
			memset(&kept, 0, sizeof(kept));
			k.die_at = at;
			if (!setjmp(killed)) {
				make();
				assert_int_equal(at, 7); /* the changes that a start makes */
				break;
			}
			k.die_at = 0;
			/* The next start goes on; or the node is detached without one. */
			if (again) {
				assert_int_equal(make(), 0);
				assert_true(bl_tx_kept(&nic, &kept));
				assert_string_equal(kept.rest, "fq_codel");
			}
			bl_tx_undo(&nic, &kept);
			expect(3, before, "undone");
			assert_int_equal(k.filters, 0);
		}
	}
}

/* What somebody has changed meanwhile stays. */
static void undo__others(void **state)
{
	static const struct nl_qdisc set[] = { { 0x10000, TC_H_ROOT, "htb" },
					       { 0xffff0000, TC_H_CLSACT, "clsact" } },
				     below[] = { { BL_NIC_H_MQ, TC_H_ROOT, "mq" },
						 { 0, BL_NIC_H_MQ | 1, "fq_codel" },
						 { 0x20000, BL_NIC_H_MQ | 2, "fq" } };

	(void)state;
	start("fq_codel", 2);
	memset(&kept, 0, sizeof(kept));
	assert_int_equal(make(), 0);
	take_out(TC_H_ROOT);
	put_in(TC_H_ROOT, 0x10000, "htb");
	k.foreign = 1;
	bl_tx_undo(&nic, &kept);
	expect(2, set, "htb and a filter");
	assert_int_equal(k.filters, 0);

	start("fq_codel", 2);
	memset(&kept, 0, sizeof(kept));
	assert_int_equal(make(), 0);
	put_in(BL_NIC_H_MQ | 2, 0x20000, "fq");
	bl_tx_undo(&nic, &kept);
	expect(3, below, "fq in the second queue");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look__table),        cmocka_unit_test(make__one_queue),
		cmocka_unit_test(make__mq),           cmocka_unit_test(make__queues_of_fifos),
		cmocka_unit_test(make__is_fifo),      cmocka_unit_test(make__fallback_and_refused),
		cmocka_unit_test(kept__comes_up),     cmocka_unit_test(kept__queues_grow),
		cmocka_unit_test(kept__foreign_goes), cmocka_unit_test(kept__ingress),
		cmocka_unit_test(kept__not_steered),  cmocka_unit_test(undo__after_kill),
		cmocka_unit_test(undo__others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
