/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching programs to interfaces by pinned links, and detaching them. The calling thread is in
 * the node's network namespace. attach.c has the names of the pins.
 */
#ifndef BARLINE_ATTACH_H
#define BARLINE_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/iface.h"
#include "base/log.h"
#include "loader/load/xdp.h"
#include "maps/meta_abi.h"

/* how the clsact fallback recognizes its own filters */
#define BL_TC_HANDLE   0xb1
#define BL_TC_PRIORITY 0xb1

struct bpf_program;

/** struct bl_attached - an interface that programs are attached to. */
struct bl_attached {
	struct bl_iface iface;
	enum bl_xdp_mode mode;    /* that the kernel really uses */
	int port;                 /* number of the switch's port; -1 on a host */
	uint8_t role;             /* enum bl_port_role */
	int cpu;                  /* that serves the port's lane */
	bool dispatcher;          /* its XDP program joins a dispatcher of libxdp (dispatcher.h) */
	bool gone;                /* the interface does not exist at present */
	bool unfit;               /* link_watch.c: it has become one that a node cannot run on */
	char refusal[240];        /* link_watch.c: why it is not used, as in the log; "": it is */
	unsigned int mtu_refused; /* MTU whose refusal is in the log already; 0: none */
	int home_cpu;             /* @cpu, if the NAPI threads are pinned there; -1: they are not */
	const char *egress; /* how the egress program is attached: "tcx", "clsact"; NULL: not */
};

/** bl_no_tcx - for tests: behave as a kernel without tcx. */
extern bool bl_no_tcx;

/** bl_xdp_mtu_max - the greatest MTU of programs with (@frags) or without frags. */
unsigned int bl_xdp_mtu_max(bool frags);

/** bl_iface_xdp_ok - returns 0, or -EMSGSIZE if the MTU is too large for programs as @frags says.
 */
int bl_iface_xdp_ok(const struct bl_iface *i, bool frags, struct bl_err *err);

/** bl_xdp_set_frags - before the load: makes the program accept frames of several buffers. */
void bl_xdp_set_frags(struct bpf_program *p);

/**
 * bl_attach_xdp - attaches @prog_fd to @a's interface, or swaps the program of the link that is
 * pinned there. Sets @a->mode. With @a->dispatcher, @kind "xdp" joins a dispatcher of libxdp.
 * @kind: first part of the pin's name ("xdp", "hold", "pass").
 * @replace: displace an XDP program of somebody else.
 * Returns 0 or -errno; -EBUSY: another XDP program is attached.
 */
int bl_attach_xdp(struct bl_attached *a, const char *dir, const char *kind, int prog_fd,
		  enum bl_xdp_mode mode, bool replace, struct bl_err *err);

/**
 * bl_attach_tc - attaches @prog_fd to the egress or ingress hook by tcx, or by a clsact filter
 * where the kernel has no tcx. Sets @a->egress. Returns 0 or -errno.
 */
int bl_attach_tc(struct bl_attached *a, const char *dir, bool ingress, int prog_fd,
		 struct bl_err *err);

/**
 * bl_link_prog - finds the link that is pinned in @dir for hook @kind of @i, or the entry into a
 * dispatcher, and writes the id of its program (0: an entry is empty). Returns 0, or -ENOENT if
 * there is no pin, or it is not attached to @i.
 */
int bl_link_prog(const char *dir, const char *kind, const struct bl_iface *i, uint32_t *id);

/**
 * bl_tcx_around - the ids of the first tcx program at egress or ingress, and of that which runs
 * behind program @own; 0: none, or not known.
 */
void bl_tcx_around(int ifindex, bool ingress, uint32_t own, uint32_t *first, uint32_t *behind);

/** bl_clsact_prog - returns the program id of the filter in barline's place; 0: none. */
uint32_t bl_clsact_prog(const struct bl_iface *i, bool ingress);

/** bl_xdp_is_own - returns whether the XDP link that is pinned in @dir is attached to @i. */
bool bl_xdp_is_own(const char *dir, const struct bl_iface *i);

/** bl_detach_ingress - removes a host's ingress program of an interface; no-op without one. */
void bl_detach_ingress(const char *dir, const char *ifname);

/**
 * bl_detach_links - detaches and unpins links of the node, XDP programs first.
 * @only: links of this interface; NULL: all.
 * Returns 0 or -errno.
 */
int bl_detach_links(const char *dir, const char *only, struct bl_err *err);

/** bl_detach_clsact - removes the clsact filters of a node with this role from an interface. */
void bl_detach_clsact(const char *ifname, enum bl_role role);

/** bl_links_rename - renames the pins of an interface that has a new name. */
void bl_links_rename(const char *dir, const char *from, const char *to);

#endif
