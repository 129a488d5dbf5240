/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects of the two roles. Of each there are two, compiled from the same source: one for all
 * nodes, and one for plain nodes, which have neither admission nor authentication of links. The
 * second has the same programs, maps and read-only data, and so the skeleton of the first serves
 * both; its programs are without the functions that they would never call (BL_PLAIN in
 * bpf/bpf_util.h), which makes bl_host_xdp a third as long and bl_switch_xdp half as long.
 */
#ifndef BARLINE_LOADER_OBJECTS_H
#define BARLINE_LOADER_OBJECTS_H

#include <stdbool.h>

struct bl_host;
struct bl_switch;

/**
 * bl_host_object - opens the object of a host, as bl_host__open() does.
 * @plain: the one for plain nodes; the loader sets bl_admits and bl_auth in any case.
 * Returns the skeleton, for bl_host__destroy(), or NULL with errno set.
 */
struct bl_host *bl_host_object(bool plain);

/** bl_switch_object - the same of a switch. */
struct bl_switch *bl_switch_object(bool plain);

#endif
