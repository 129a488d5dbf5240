// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See loader/order/fence.h, and maps/fence_abi.h for the way down.
 *
 * When does an order hold? A lane that has frames obeys before the next one, within a beacon
 * interval, and says so. One that has none cannot say anything, and need not: it obeys before its
 * next frame, since its limit_ns is 0. Only a run that had read its limit before must end first: a
 * grace period (RCU). So an idle lane's registers are what bl_port_apply_fence() makes of them,
 * here, on a copy: nothing can come in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "core/order/barrier_core.h"
#include "loader/node_priv.h"
#include "fence.h"

#define ANSWER_NS 2000000ULL /* for lanes that have frames: twenty beacon intervals */
#define LOOK_NS   20000L
/* grace periods; each after the first takes a lane that read its clock in just that moment */
#define AGAIN_MAX 100
#define C_MASK    ((1ULL << BL_TS_BITS) - 1)

/* What bl_fence_inputs() wants to know of one input. */
struct input {
	struct bl_port_regs regs;
	struct bl_life life;
	struct bl_fence_slot slot;
	uint64_t given; /* greatest C of the outputs that it feeds */
	bool obeyed;
	uint8_t role;
};

static int keep(int *to, int fd, const char *what, struct bl_err *err)
{
	*to = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *to < 0 ? bl_fail(err, fd < 0 ? ENOENT : errno, "cannot keep %s", what) : 0;
}

int bl_fence_open(struct bl_node *n, struct bpf_object *obj, struct bl_err *err)
{
	struct bl_fence_fds *o = &n->order;
	const struct {
		int *to;
		const char *name;
	} sw[] = { { &o->epoch, BL_MAP_EPOCH },    { &o->slots, BL_MAP_SW_ORDERS },
		   { &o->lives, BL_MAP_SW_LIVES }, { &o->ports, BL_MAP_SW_PORTS },
		   { &o->regs, BL_MAP_SW_REGS },   { &o->lanes, BL_MAP_SW_LANES },
		   { &o->cfg, BL_MAP_SW_CFG } },
	  host[] = { { &o->epoch, BL_MAP_EPOCH },
		     { &o->slots, BL_MAP_HOST_ORDERS },
		     { &o->page, BL_MAP_HOST_PAGE } };
	bool is_switch = n->cfg.role == BL_ROLE_SWITCH;
	unsigned int k,
		count = is_switch ? sizeof(sw) / sizeof(sw[0]) : sizeof(host) / sizeof(host[0]);
	struct bpf_program *p = bpf_object__find_program_by_name(obj, "bl_fence");
	int rc = keep(&o->prog, p ? bpf_program__fd(p) : -1, "the program bl_fence", err);

	for (k = 0; k < count && !rc; k++) {
		const char *name = is_switch ? sw[k].name : host[k].name;

		rc = keep(is_switch ? sw[k].to : host[k].to,
			  bpf_object__find_map_fd_by_name(obj, name), name, err);
	}
	return rc;
}

void bl_fence_none(struct bl_node *n)
{
	n->order = (struct bl_fence_fds){ -1, -1, -1, -1, -1, -1, -1, -1, -1 };
}

void bl_fence_close(struct bl_node *n)
{
	int *fds[] = { &n->order.prog,  &n->order.epoch, &n->order.slots,
		       &n->order.lives, &n->order.ports, &n->order.regs,
		       &n->order.lanes, &n->order.cfg,   &n->order.page };
	unsigned int k;

	for (k = 0; k < sizeof(fds) / sizeof(fds[0]); k++)
		if (*fds[k] >= 0)
			close(*fds[k]);
	bl_fence_none(n);
}

static int value(int fd, uint32_t key, void *to)
{
	return bpf_map_lookup_elem(fd, &key, to) ? -errno : 0;
}

static uint64_t generation_of(const struct bl_node *n)
{
	struct bl_epoch e = { 0, 0 };

	value(n->order.epoch, 0, &e);
	return e.generation;
}

/* ---- looking ---- */

static int read_host(const struct bl_node *n, struct input *i)
{
	struct bl_host_page page;
	uint64_t generation = generation_of(n);
	int rc = value(n->order.slots, 0, &i->slot);

	i->given = 0;
	/* obeyed or not, then the registers: what is obeyed twice is as it is once */
	if (!rc)
		rc = value(n->order.page, 0, &page);
	i->obeyed = page.orders >= generation;
	if (!rc)
		rc = value(n->order.page, 0, &page);
	if (rc)
		return rc;
	memcpy(i->regs.lane, page.reg, sizeof(page.reg));
	i->life = page.life;
	i->role = BL_PORT_UP;
	return 0;
}

static int read_port(const struct bl_node *n, uint32_t p, struct input *i)
{
	struct bl_sw_port port;
	struct bl_sw_lane lane;
	struct bl_sw_cfg cfg;
	uint64_t generation = generation_of(n);
	int rc = p < BL_SW_PORTS_MAX ? value(n->order.cfg, 0, &cfg) : -ENOENT;
	uint32_t s;

	i->given = 0;
	if (!rc)
		rc = value(n->order.ports, p, &port);
	if (!rc && !port.ifindex)
		rc = -ENOENT;
	if (!rc)
		rc = value(n->order.slots, p, &i->slot);
	if (!rc)
		rc = value(n->order.lanes, cfg.single_writer ? BL_HOME_LANE(&port) : 0, &lane);
	/*
	 * the outputs before the registers: pairs with bl_leaf_changed(), which raises them in the
	 * other order, so that an input that has passed what they were given is never seen behind
	 * it
	 */
	for (s = 0; s < BL_SETS_MAX && !rc; s++)
		if (port.in_sets >> s & 1 && lane.out[s].c > i->given)
			i->given = lane.out[s].c;
	if (!rc)
		rc = value(n->order.regs, p, &i->regs);
	if (!rc)
		rc = value(n->order.lives, p, &i->life);
	i->obeyed = lane.orders >= generation;
	i->role = port.role;
	return rc;
}

static int read_input(const struct bl_node *n, uint32_t p, struct input *i)
{
	int rc = n->cfg.role == BL_ROLE_SWITCH ? read_port(n, p, i) : p ? -ENOENT : read_host(n, i);

	/*
	 * a register that began to stand still while it was read may have been read before it rose
	 * for the last time
	 */
	if (!rc && bl_port_flags(&i->regs) & BL_REG_HELD)
		rc = n->cfg.role == BL_ROLE_SWITCH ? read_port(n, p, i) : read_host(n, i);
	return rc;
}

static int look(const struct bl_node *n, uint32_t p, struct bl_fence_port *out)
{
	struct bl_pair leaf;
	struct input i;
	int rc = read_input(n, p, &i);
	uint32_t flags;

	if (rc)
		return rc;
	if (!i.obeyed)
		bl_port_apply_fence(&i.regs, &i.life, &i.slot, &leaf);
	bl_port_leaf(&i.regs, &leaf);
	flags = bl_port_flags(&i.regs);
	*out = (struct bl_fence_port){
		.port = p,
		.neighbour = i.life.neighbour,
		.policy = i.life.policy,
		.death = i.life.death,
		.role = i.role,
		.in = flags & BL_REG_IN,
		.behind = flags & BL_REG_IN && i.given &&
			  (leaf.c == BL_LEAF_NONE || leaf.c < i.given),
		.held = flags & BL_REG_HELD,
		.live = leaf.b != BL_LEAF_NONE,
		.barred = i.slot.barred,
		.awaited = bl_port_awaited(&i.regs),
		.c = leaf.c == BL_LEAF_NONE ? BL_FENCE_NO_C : leaf.c & C_MASK,
	};
	return 0;
}

int bl_fence_inputs(const struct bl_node *n, struct bl_fence_port *v, unsigned int max)
{
	struct bl_sw_cfg cfg;
	unsigned int p, count = 0;
	int rc;

	if (n->cfg.role == BL_ROLE_HOST) {
		rc = max ? look(n, 0, v) : 0;
		return rc ? rc : max != 0;
	}
	rc = value(n->order.cfg, 0, &cfg);
	for (p = 0; p < cfg.nports && p < BL_SW_PORTS_MAX && count < max && !rc; p++) {
		rc = look(n, p, &v[count]);
		count += !rc;
		rc = rc == -ENOENT ? 0 : rc;
	}
	return rc ? rc : (int)count;
}

/* ---- ordering ---- */

static int run(const struct bl_node *n, struct bl_fence_arg *a)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = a, .ctx_size_in = sizeof(*a));
	int rc = bpf_prog_test_run_opts(n->order.prog, &o);

	return rc ? rc : a->result;
}

/* All programs that were running have ended when it returns. */
static int grace(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, o);
	uint32_t zero = 0;
	int inner, outer, rc;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return 0;
	/*
	 * kernels with nohz_full refuse that; what the entry of a map of maps was is in nobody's
	 * hands any more when the call returns that replaced it (Linux 1ae80cf31938, 2018)
	 */
	inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(zero), sizeof(zero), 1, NULL);
	o.inner_map_fd = (uint32_t)inner;
	outer = inner < 0 ? -1
			  : bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, NULL, sizeof(zero),
					   sizeof(zero), 1, &o);
	rc = outer < 0 || bpf_map_update_elem(outer, &zero, &inner, BPF_ANY) ? -errno : 0;
	if (outer >= 0)
		close(outer);
	if (inner >= 0)
		close(inner);
	return rc;
}

/*
 * Whether every lane that the order concerns has obeyed it; @idle: or has not been given a clock
 * reading since.
 */
static bool answered(const struct bl_node *n, const struct bl_fence_arg *a, bool idle)
{
	struct bl_sw_port port;
	struct bl_host_page page;
	struct bl_sw_lane lane;
	struct bl_sw_cfg cfg;
	uint32_t l, first = 0, last;

	if (n->cfg.role == BL_ROLE_HOST)
		return !value(n->order.page, 0, &page) &&
		       (page.orders >= a->generation || (idle && !page.limit_ns));
	if (value(n->order.cfg, 0, &cfg))
		return false;
	last = cfg.lanes < BL_LANES_MAX ? cfg.lanes : BL_LANES_MAX;
	if (a->kind != BL_FENCE_BAR) {
		/* of one port, which has one lane */
		if (value(n->order.ports, a->port, &port))
			return false;
		first = cfg.single_writer ? BL_HOME_LANE(&port) : 0;
		last = first + 1;
	}
	for (l = first; l < last; l++)
		if (value(n->order.lanes, l, &lane) ||
		    (lane.orders < a->generation && !(idle && !lane.limit_ns)))
			return false;
	return true;
}

/*
 * @strict: it must hold when this returns. A host's lane is whichever CPU its NIC interrupts, and
 * its output all of them: there a grace period has to pass in any case. Whoever resumes need not
 * wait so long: an order that comes first and one that comes after meet in the slot.
 */
static int settle(const struct bl_node *n, struct bl_fence_arg *a, bool strict)
{
	struct bl_fence_arg again = { .epoch = a->epoch, .kind = BL_FENCE_AGAIN };
	struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t until = bl_mono_ns() + ANSWER_NS;
	bool done;
	int k, rc;

	while (!(done = answered(n, a, false)) && bl_mono_ns() < until)
		nanosleep(&pause, NULL);
	if (!strict || (done && n->cfg.role == BL_ROLE_SWITCH))
		return 0;
	for (k = 0; k < AGAIN_MAX; k++) {
		rc = grace();
		if (rc || answered(n, a, true))
			return rc;
		rc = run(n, &again);
		if (rc)
			return rc;
	}
	return -EBUSY;
}

uint64_t bl_fence_epoch(const struct bl_node *n)
{
	struct bl_epoch e = { 0, 0 };

	value(n->order.epoch, 0, &e);
	return e.epoch;
}

int bl_fence_raise(struct bl_node *n, uint64_t epoch)
{
	return run(n, &(struct bl_fence_arg){ .epoch = epoch, .kind = BL_FENCE_RAISE });
}

int bl_fence_freeze(struct bl_node *n, uint64_t epoch, uint32_t port, struct bl_fence_port *p)
{
	struct bl_fence_arg a = { .epoch = epoch, .kind = BL_FENCE_FREEZE, .port = port };
	int rc = look(n, port, p);

	if (rc == -ENOENT) {
		/* the epoch counts all the same, and is looked at first */
		rc = bl_fence_raise(n, epoch);
		return rc ? rc : -ENOENT;
	}
	/*
	 * An input that stands still needs nothing more. One that does not may die in this moment:
	 * of itself only once, and then it is this death.
	 */
	a.death = p->held ? p->death : p->death + 1;
	if (!rc)
		rc = run(n, &a);
	if (!rc)
		rc = settle(n, &a, true);
	return rc ? rc : look(n, port, p);
}

int bl_fence_bar(struct bl_node *n, uint64_t epoch, const uint32_t *port, unsigned int nports)
{
	struct bl_fence_arg a = { .epoch = epoch, .kind = BL_FENCE_BAR };
	unsigned int k;
	int rc;

	for (k = 0; k < nports; k++)
		if (port[k] < BL_SW_PORTS_MAX)
			a.barred[port[k] / 64] |= 1ULL << port[k] % 64;
	rc = run(n, &a);
	return rc ? rc : settle(n, &a, true);
}

int bl_fence_resume(struct bl_node *n, uint64_t epoch, uint32_t port, uint32_t death)
{
	struct bl_fence_arg a = {
		.epoch = epoch, .kind = BL_FENCE_RESUME, .port = port, .death = death
	};
	int rc = run(n, &a);

	return rc ? rc : settle(n, &a, false);
}

int bl_fence_empty(struct bl_node *n, uint64_t epoch, uint32_t port)
{
	struct bl_fence_arg a = { .epoch = epoch, .kind = BL_FENCE_EMPTY, .port = port };
	int rc = run(n, &a);

	return rc ? rc : settle(n, &a, false);
}
