// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See link_loss.h. The pinned link of a host's program is updated to the dropping program, which
 * calls the host's program through a map of programs.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/util/out.h"
#include "lab/link_loss.h"
#include "loader/node.h"
#include "loss.skel.h"

struct link_loss {
	/*
	 * by host. They stay open, because the kernel empties a map of programs when the last
	 * process closes it
	 */
	struct bl_loss **skel;
	int n; /* elements of @skel */
};

/* returns a descriptor of the program that a BPF link runs, or -1 */
static int program_of(int link)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(link, &info, &len) ? -1 : bpf_prog_get_fd_by_id(info.prog_id);
}

/* Puts the dropping program in front of the program of @link. Returns 0 or -errno. */
static int insert_before(struct bl_loss *s, int link)
{
	int prog = program_of(link), res = 0;
	uint32_t zero = 0;

	if (prog < 0 || bpf_map_update_elem(bpf_map__fd(s->maps.next), &zero, &prog, BPF_ANY) ||
	    bpf_link_update(link, bpf_program__fd(s->progs.bl_loss), NULL))
		res = -errno;
	if (prog >= 0)
		close(prog);
	return res;
}

static int make_lossy(struct link_loss *l, const struct bl_node_ref *ref, double p)
{
	struct bl_loss *s = bl_loss__open();
	char path[384];
	int link, err;

	if (!s)
		return cli_fail("cannot open the dropping program: %s", strerror(errno));
	l->skel[l->n++] = s;
	s->rodata->below = (uint32_t)(p * 4294967295.0 + 0.5);
	err = bl_loss__load(s);
	if (err)
		return cli_fail("cannot load the dropping program: %s", strerror(-err));
	/* the NIC of a lab's host is called eth0 */
	snprintf(path, sizeof(path), "%s/links/xdp-eth0", ref->dir);
	link = bpf_obj_get(path);
	err = link < 0 ? -errno : insert_before(s, link);
	if (link >= 0)
		close(link);
	return err ? cli_fail("%s: %s", path, strerror(-err)) : 0;
}

struct link_loss *link_loss_begin(double p)
{
	struct link_loss *l = calloc(1, sizeof(*l));
	struct bl_node_ref *refs = NULL;
	struct bl_err err;
	int n = bl_nodes_find(&refs, 0, &err), i, bad = 0, hosts = 0;

	if (n < 0)
		cli_fail("%s", err.text);
	else if (!l || !(l->skel = calloc((size_t)n + 1, sizeof(*l->skel))))
		cli_fail("out of memory");
	for (i = 0; i < n && l && l->skel && !bad; i++)
		if (refs[i].role == BL_ROLE_HOST) {
			bad = make_lossy(l, &refs[i], p);
			hosts++;
		}
	free(refs);
	if (hosts && !bad)
		return l;
	if (n >= 0 && !hosts)
		cli_fail("there is no host that could lose frames");
	link_loss_end(l);
	return NULL;
}

uint64_t link_loss_end(struct link_loss *l)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; l && i < l->n; i++) {
		if (l->skel[i]->bss)
			sum += __atomic_load_n(&l->skel[i]->bss->lost, __ATOMIC_RELAXED);
		bl_loss__destroy(l->skel[i]);
	}
	if (l)
		free(l->skel);
	free(l);
	return sum;
}
