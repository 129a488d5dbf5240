/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps of a BPF object against a node's pins: reuse the pinned ones, pin the new ones. */
#ifndef BARLINE_LOADER_MAPS_H
#define BARLINE_LOADER_MAPS_H

#include <linux/capability.h>
#include <stdint.h>

#include "base/log.h"
#include "base/privileges.h"

/* Capabilities without which the kernel refuses the programs, or to attach them. */
#define BL_CAPS_LOAD (BL_CAP(CAP_BPF) | BL_CAP(CAP_PERFMON) | BL_CAP(CAP_NET_ADMIN))

struct bpf_map;
struct bpf_object;

/**
 * bl_maps_reuse - before the object is loaded: makes it use every map that is pinned in @dir. A map
 * without a pin is created by the load.
 * @anew: names of maps that are created nevertheless, NULL-terminated; bl_maps_pin() replaces their
 * pins. May be NULL.
 * Returns 0 or -errno; -EPROTO: a pinned map has another shape.
 */
int bl_maps_reuse(struct bpf_object *obj, const char *dir, const char *const *anew,
		  struct bl_err *err);

/**
 * bl_maps_pin - pins every map of the loaded object in @dir, in place of other maps of that name.
 * The meta map comes last, so that a directory without it was never finished. Returns 0 or -errno.
 */
int bl_maps_pin(struct bpf_object *obj, const char *dir, struct bl_err *err);

/** bl_libbpf_listen - keeps what libbpf prints from now on, for bl_load_failed(). */
void bl_libbpf_listen(void);

/** bl_libbpf_said - the end of what libbpf has printed since bl_libbpf_listen(). */
const char *bl_libbpf_said(void);

/**
 * bl_load_failed - fills @err with the reason why the kernel refused the programs of @what, taken
 * from what libbpf printed. Returns -@errnum.
 */
int bl_load_failed(int errnum, const char *what, struct bl_err *err);

/** bl_map_find - finds the map @name of an object; value_size 0: any. Returns 0 or -errno. */
int bl_map_find(struct bpf_object *obj, const char *name, uint32_t value_size, struct bpf_map **map,
		struct bl_err *err);

/** bl_map_set - writes entry @key of the map @fd; @name is for @err. Returns 0 or -errno. */
int bl_map_set(int fd, uint32_t key, const void *value, const char *name, struct bl_err *err);

#endif
