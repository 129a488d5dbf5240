// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See fence.h, and maps/fence_abi.h for the way of a command to the registers.
 *
 * When has a command taken effect? A lane with frames obeys it before its next frame, within a
 * beacon interval, and reports that. A lane without frames cannot report it, and need not: it obeys
 * before its next frame, since its limit_ns is 0. Only a run of the program that had read its limit
 * before must end first, which takes an RCU grace period. So the registers of an idle lane are what
 * bl_port_apply_fence() makes of them, here on a copy; nothing can happen in between.
 */
#include "loader/order/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>

#include "base/log.h"
#include "base/time.h"
#include "core/order/barrier_core.h"
#include "maps/fence_abi.h"
#include "maps/host_abi.h"

#define ANSWER_NS 2000000ULL /* for lanes that have frames: twenty beacon intervals */
#define POLL_NS   20000L
/*
 * Grace periods at most. Each after the first takes a lane that read its clock at that very moment.
 */
#define AGAIN_MAX 100
#define C_MASK    ((1ULL << BL_TS_BITS) - 1)

/* What bl_fence_inputs() reads of one input. */
struct input {
	struct bl_port_regs regs;
	struct bl_life life;
	struct bl_fence_slot slot;
	uint64_t given; /* the greatest C of the outputs that it feeds */
	bool obeyed;
	uint8_t role;
};

static int dup_descriptor(int *to, int fd, const char *what, struct bl_err *err)
{
	*to = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *to < 0 ? bl_fail(err, fd < 0 ? ENOENT : errno, "cannot keep %s", what) : 0;
}

int bl_fence_open(struct bl_fence *f, struct bpf_object *obj, int prog, struct bl_err *err)
{
	const struct {
		int *to;
		const char *name;
	} sw[] = { { &f->epoch, BL_MAP_EPOCH },    { &f->slots, BL_MAP_SW_ORDERS },
		   { &f->lives, BL_MAP_SW_LIVES }, { &f->ports, BL_MAP_SW_PORTS },
		   { &f->regs, BL_MAP_SW_REGS },   { &f->lanes, BL_MAP_SW_LANES },
		   { &f->cfg, BL_MAP_SW_CFG } },
	  host[] = { { &f->epoch, BL_MAP_EPOCH },
		     { &f->slots, BL_MAP_HOST_ORDERS },
		     { &f->page, BL_MAP_HOST_PAGE } };
	bool is_switch = f->role == BL_ROLE_SWITCH;
	unsigned int k,
		count = is_switch ? sizeof(sw) / sizeof(sw[0]) : sizeof(host) / sizeof(host[0]);
	int rc = dup_descriptor(&f->prog, prog, "the program bl_fence", err);

	for (k = 0; k < count && !rc; k++) {
		const char *name = is_switch ? sw[k].name : host[k].name;

		rc = dup_descriptor(is_switch ? sw[k].to : host[k].to,
				    bpf_object__find_map_fd_by_name(obj, name), name, err);
	}
	return rc;
}

void bl_fence_none(struct bl_fence *f)
{
	*f = (struct bl_fence){ f->role, -1, -1, -1, -1, -1, -1, -1, -1, -1 };
}

void bl_fence_close(struct bl_fence *f)
{
	int *fds[] = { &f->prog, &f->epoch, &f->slots, &f->lives, &f->ports,
		       &f->regs, &f->lanes, &f->cfg,   &f->page };
	unsigned int k;

	for (k = 0; k < sizeof(fds) / sizeof(fds[0]); k++)
		if (*fds[k] >= 0)
			close(*fds[k]);
	bl_fence_none(f);
}

static int read_value(int fd, uint32_t key, void *to)
{
	return bpf_map_lookup_elem(fd, &key, to) ? -errno : 0;
}

static uint64_t generation_of(const struct bl_fence *f)
{
	struct bl_epoch e = { 0, 0 };

	read_value(f->epoch, 0, &e);
	return e.generation;
}

/* ---- reading ---- */

static int read_host(const struct bl_fence *f, struct input *i)
{
	struct bl_host_page page;
	uint64_t generation = generation_of(f);
	int rc = read_value(f->slots, 0, &i->slot);

	i->given = 0;
	/*
	 * First whether it has obeyed, then the registers: applying bl_port_apply_fence() a second
	 * time changes nothing.
	 */
	if (!rc)
		rc = read_value(f->page, 0, &page);
	i->obeyed = page.orders >= generation;
	if (!rc)
		rc = read_value(f->page, 0, &page);
	if (rc)
		return rc;
	memcpy(i->regs.lane, page.reg, sizeof(page.reg));
	i->life = page.life;
	i->role = BL_PORT_UP;
	return 0;
}

static int read_port(const struct bl_fence *f, uint32_t p, struct input *i)
{
	struct bl_sw_port port;
	struct bl_sw_lane lane;
	struct bl_sw_cfg cfg;
	uint64_t generation = generation_of(f);
	int rc = p < BL_SW_PORTS_MAX ? read_value(f->cfg, 0, &cfg) : -ENOENT;
	uint32_t s;

	i->given = 0;
	if (!rc)
		rc = read_value(f->ports, p, &port);
	if (!rc && !port.ifindex)
		rc = -ENOENT;
	if (!rc)
		rc = read_value(f->slots, p, &i->slot);
	if (!rc)
		rc = read_value(f->lanes, cfg.single_writer ? BL_HOME_LANE(&port) : 0, &lane);
	/*
	 * The outputs before the registers. Pairs with bl_leaf_changed(), which raises them in the
	 * other order: an input that has passed what the outputs were given is never seen behind
	 * them.
	 */
	for (s = 0; s < BL_SETS_MAX && !rc; s++)
		if (port.in_sets >> s & 1 && lane.out[s].c > i->given)
			i->given = lane.out[s].c;
	if (!rc)
		rc = read_value(f->regs, p, &i->regs);
	if (!rc)
		rc = read_value(f->lives, p, &i->life);
	i->obeyed = lane.orders >= generation;
	i->role = port.role;
	return rc;
}

static int read_input_twice(const struct bl_fence *f, uint32_t p, struct input *i)
{
	int rc = f->role == BL_ROLE_SWITCH ? read_port(f, p, i) : p ? -ENOENT : read_host(f, i);

	/*
	 * A register that began to stand still while it was read may have been read before it rose
	 * for the last time.
	 */
	if (!rc && bl_port_flags(&i->regs) & BL_REG_HELD)
		rc = f->role == BL_ROLE_SWITCH ? read_port(f, p, i) : read_host(f, i);
	return rc;
}

static int sample_input(const struct bl_fence *f, uint32_t p, struct bl_fence_port *out)
{
	struct bl_pair leaf;
	struct input i;
	int rc = read_input_twice(f, p, &i);
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

int bl_fence_inputs(const struct bl_fence *f, struct bl_fence_port *v, unsigned int max)
{
	struct bl_sw_cfg cfg;
	unsigned int p, count = 0;
	int rc;

	if (f->role == BL_ROLE_HOST) {
		rc = max ? sample_input(f, 0, v) : 0;
		return rc ? rc : max != 0;
	}
	rc = read_value(f->cfg, 0, &cfg);
	for (p = 0; p < cfg.nports && p < BL_SW_PORTS_MAX && count < max && !rc; p++) {
		rc = sample_input(f, p, &v[count]);
		count += !rc;
		rc = rc == -ENOENT ? 0 : rc;
	}
	return rc ? rc : (int)count;
}

/* ---- commands ---- */

static int run_fence(const struct bl_fence *f, struct bl_fence_arg *a)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = a, .ctx_size_in = sizeof(*a));
	int rc = bpf_prog_test_run_opts(f->prog, &o);

	return rc ? rc : a->result;
}

/* Returns when all programs that were running have ended. Returns 0 or -errno. */
static int wait_grace_period(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, o);
	uint32_t zero = 0;
	int inner, outer, rc;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return 0;
	/*
	 * Kernels with nohz_full refuse that. When the call that replaces an entry of a map of maps
	 * returns, no program uses the former entry any more (Linux 1ae80cf31938, 2018).
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
 * Whether every lane that the command concerns has obeyed it. @idle: a lane that has had no clock
 * reading since counts, too.
 */
static bool lanes_answered(const struct bl_fence *f, const struct bl_fence_arg *a, bool idle)
{
	struct bl_sw_port port;
	struct bl_host_page page;
	struct bl_sw_lane lane;
	struct bl_sw_cfg cfg;
	uint32_t l, first = 0, last;

	if (f->role == BL_ROLE_HOST)
		return !read_value(f->page, 0, &page) &&
		       (page.orders >= a->generation || (idle && !page.limit_ns));
	if (read_value(f->cfg, 0, &cfg))
		return false;
	last = cfg.lanes < BL_LANES_MAX ? cfg.lanes : BL_LANES_MAX;
	if (a->kind != BL_FENCE_BAR) {
		/* One port has one lane. */
		if (read_value(f->ports, a->port, &port))
			return false;
		first = cfg.single_writer ? BL_HOME_LANE(&port) : 0;
		last = first + 1;
	}
	for (l = first; l < last; l++)
		if (read_value(f->lanes, l, &lane) ||
		    (lane.orders < a->generation && !(idle && !lane.limit_ns)))
			return false;
	return true;
}

/*
 * Waits until the lanes have obeyed.
 * @strict: the command must have taken effect on return. A host's lane is whichever CPU its NIC
 * interrupts, and its outputs are on all CPUs, so there a grace period is needed in any case.
 * RESUME need not wait so long: an earlier and a later command meet in the same slot.
 */
static int wait_obeyed(const struct bl_fence *f, struct bl_fence_arg *a, bool strict)
{
	struct bl_fence_arg again = { .epoch = a->epoch, .kind = BL_FENCE_AGAIN };
	struct timespec pause = { .tv_nsec = POLL_NS };
	uint64_t until = bl_mono_ns() + ANSWER_NS;
	bool done;
	int k, rc;

	while (!(done = lanes_answered(f, a, false)) && bl_mono_ns() < until)
		nanosleep(&pause, NULL);
	if (!strict || (done && f->role == BL_ROLE_SWITCH))
		return 0;
	for (k = 0; k < AGAIN_MAX; k++) {
		rc = wait_grace_period();
		if (rc || lanes_answered(f, a, true))
			return rc;
		rc = run_fence(f, &again);
		if (rc)
			return rc;
	}
	return -EBUSY;
}

uint64_t bl_fence_epoch(const struct bl_fence *f)
{
	struct bl_epoch e = { 0, 0 };

	read_value(f->epoch, 0, &e);
	return e.epoch;
}

int bl_fence_raise(struct bl_fence *f, uint64_t epoch)
{
	return run_fence(f, &(struct bl_fence_arg){ .epoch = epoch, .kind = BL_FENCE_RAISE });
}

int bl_fence_freeze(struct bl_fence *f, uint64_t epoch, uint32_t port, struct bl_fence_port *p)
{
	struct bl_fence_arg a = { .epoch = epoch, .kind = BL_FENCE_FREEZE, .port = port };
	int rc = sample_input(f, port, p);

	if (rc == -ENOENT) {
		/* The epoch of the command counts nevertheless, and is validated first. */
		rc = bl_fence_raise(f, epoch);
		return rc ? rc : -ENOENT;
	}
	/*
	 * An input that stands still needs no new death. One that does not may go silent at this
	 * moment: it does so once, and that is this death.
	 */
	a.death = p->held ? p->death : p->death + 1;
	if (!rc)
		rc = run_fence(f, &a);
	if (!rc)
		rc = wait_obeyed(f, &a, true);
	return rc ? rc : sample_input(f, port, p);
}

int bl_fence_bar(struct bl_fence *f, uint64_t epoch, const uint32_t *port, unsigned int nports)
{
	struct bl_fence_arg a = { .epoch = epoch, .kind = BL_FENCE_BAR };
	unsigned int k;
	int rc;

	for (k = 0; k < nports; k++)
		if (port[k] < BL_SW_PORTS_MAX)
			a.barred[port[k] / 64] |= 1ULL << port[k] % 64;
	rc = run_fence(f, &a);
	return rc ? rc : wait_obeyed(f, &a, true);
}

int bl_fence_resume(struct bl_fence *f, uint64_t epoch, uint32_t port, uint32_t death)
{
	struct bl_fence_arg a = {
		.epoch = epoch, .kind = BL_FENCE_RESUME, .port = port, .death = death
	};
	int rc = run_fence(f, &a);

	return rc ? rc : wait_obeyed(f, &a, false);
}

int bl_fence_empty(struct bl_fence *f, uint64_t epoch, uint32_t port)
{
	struct bl_fence_arg a = { .epoch = epoch, .kind = BL_FENCE_EMPTY, .port = port };
	int rc = run_fence(f, &a);

	return rc ? rc : wait_obeyed(f, &a, false);
}
