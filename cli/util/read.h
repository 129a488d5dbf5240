/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading nodes: the pinned maps of the nodes in sight, and names of what is in them.
 */
#ifndef BARLINE_CLI_UTIL_READ_H
#define BARLINE_CLI_UTIL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/node.h"
#include "maps/clock_abi.h"
#include "maps/reasons_abi.h"
#include "maps/switch_abi.h"

struct bl_ep_word; /* maps/host_abi.h */

/** reason_name - Name of reason @r, as in JSON; "unknown" if a newer build counted it. */
const char *reason_name(unsigned int r);
/**
 * reason_of - Returns the number of the reason with this name, or BL_R_COUNT; *@near gets a name
 * like it, or NULL.
 */
enum bl_reason reason_of(const char *name, const char **near);
/** reason_text - Sentence that explains reason @r. */
const char *reason_text(unsigned int r);
/** reason_kind - Whether frames with reason @r were forwarded, dropped, or only noted. */
enum bl_reason_kind reason_kind(unsigned int r);
/** role_name - "switch", "host" or "none", of enum bl_role. */
const char *role_name(unsigned int role);
/** port_role_name - Name of a port's role, of enum bl_port_role. */
const char *port_role_name(unsigned int role);
/** node_name - Returns the name of a node, or its role if it has none. */
const char *node_name(const struct bl_node_ref *ref);
/** endpoint_out_name - why an endpoint is no longer a member; "" if it is one. */
const char *endpoint_out_name(const struct bl_ep_word *w);
/** input_state_name - Name of an input's state; @state as in struct bl_reg, with its flags. */
const char *input_state_name(unsigned int state);

/**
 * nodes_here - Lists the nodes of the current network namespace, or with @all of the machine.
 * Returns their number, or -1 after a message, also if there is none. The caller frees *@out.
 */
int nodes_here(struct bl_node_ref **out, bool all);

/**
 * node_value - Reads element @key of a pinned map of a node into @value, which has @size bytes.
 * Returns 0, or -errno after a message.
 */
int node_value(const struct bl_node_ref *ref, const char *map, uint32_t key, void *value,
	       uint32_t size);

/**
 * node_now - Returns the bus time of a node in ns, or 0 if its clock cannot be used. @clock gets
 * the clock; it is zero if the clock cannot be read.
 */
uint64_t node_now(const struct bl_node_ref *ref, struct bl_clock *clock);

/** node_nic - Writes the name of a host's network interface into @name; "nic" if unknown. */
void node_nic(const struct bl_node_ref *ref, char *name, size_t size);

/**
 * node_ports_each - calls @fn for each port in use of a switch, or for port 0, the NIC, of a host.
 * A port that cannot be read is left out.
 */
void node_ports_each(const struct bl_node_ref *ref,
		     void (*fn)(const struct bl_node_ref *ref, uint32_t port, const char *name,
				void *ctx),
		     void *ctx);

/**
 * node_alive - Returns whether the socket of a host's daemon accepts connections, as that of one
 * that is stopped does. Never blocks.
 */
bool node_alive(const struct bl_node_ref *ref);

/** addr_text - Formats an IPv6 or IPv4-mapped address; the zero address is "any". Returns @buf. */
char *addr_text(const uint8_t ip[16], char *buf, size_t size);
/** mac_text - Formats an Ethernet address. Returns @buf. */
char *mac_text(const uint8_t mac[6], char *buf, size_t size);

/** struct count_row - Counters of one place of a node: a switch port, or a hook of a host. */
struct count_row {
	uint32_t key;     /* of the map of counters */
	char name[24];    /* interface */
	const char *role; /* role of the port, or name of the hook */
	struct bl_counts n;
};

/**
 * node_count_rows - Reads the counters of all places of a node. Returns their number, or -1 after a
 * message. The caller frees *@out in both cases.
 */
int node_count_rows(const struct bl_node_ref *ref, struct count_row **out);

/** counts_frames - Returns how many frames were counted, forwarded or dropped. */
uint64_t counts_frames(const struct bl_counts *n);
/** counts_data - Returns how many frames of messages were sent, forwarded or stored. */
uint64_t counts_data(const struct bl_counts *n);
/** counts_beacons - Returns how many beacons were sent, relayed or received. */
uint64_t counts_beacons(const struct bl_counts *n);
/** counts_dropped - Returns the drops, without relayed beacons that a port did not need. */
uint64_t counts_dropped(const struct bl_counts *n);
/** counts_kind - Returns the sum of all counters whose reason is of @kind. */
uint64_t counts_kind(const struct bl_counts *n, enum bl_reason_kind kind);
/** counts_bytes - Returns the bytes of the frames that counts_frames() counts. */
uint64_t counts_bytes(const struct bl_counts *n);
/** counts_add - Adds the frames and bytes of @n to @to. */
void counts_add(struct bl_counts *to, const struct bl_counts *n);

#endif
