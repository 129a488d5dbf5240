/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Authentication of a node's links: reads the node's key file into the map of keys, at the start
 * and again on SIGHUP, while programs use the map. bpf/auth.h says what they do with the keys.
 */
#ifndef BARLINE_LOADER_AUTH_H
#define BARLINE_LOADER_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "maps/auth_abi.h"

struct bl_node;
struct bpf_object;

/** struct bl_auth_port - a port that needs keys. */
struct bl_auth_port {
	const char *ifname;
	uint32_t port; /* its number; a host's NIC is 0 */
	enum bl_auth_how how;
};

/**
 * bl_auth_fill - writes the keys of all @n ports in @ports into the map of @obj, which is loaded
 * and not attached yet. No-op for a node without authentication.
 * Returns 0 or -errno; -EPERM: others than its owner can read the file; -EINVAL: a port has no
 * keys, or the file was made for another node.
 */
int bl_auth_fill(struct bl_node *node, struct bpf_object *obj, const struct bl_auth_port *ports,
		 unsigned int n, struct bl_err *err);

/**
 * bl_auth_reload - reads the key file of a running node again. An error leaves all keys unchanged.
 * Returns 0 or -errno; -ENOENT: the node has no authentication.
 */
int bl_auth_reload(struct bl_node *node, struct bl_err *err);

/**
 * bl_auth_forget - removes the keys of a node that was taken over and does not use authentication
 * any more. To be called when no program uses them. Returns 0 or -errno.
 */
int bl_auth_forget(struct bl_node *node, struct bpf_object *obj, struct bl_err *err);

/** bl_auth_close - releases what bl_auth_fill() keeps for bl_auth_reload(). */
void bl_auth_close(struct bl_node *node);

#endif
