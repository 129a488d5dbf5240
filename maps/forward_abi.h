/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of the reliable stream that travel by way of the controller (1Pipe section 5.2,
 * "controller forwarding"): the message that a process sends to its host's daemon, on the
 * connection that stands for its endpoint.
 *
 * Example: host 1 has sent a PREP for 10.0.0.3:61697 five times in 400 ms and received no ACK. The
 * library sends { BL_SOCK_FORWARD, 61697, 112, ::ffff:10.0.0.3, the UDP payload } to the daemon,
 * and the controller passes it on. The daemon of host 3 runs the frame through the program
 * bl_host_relayed, which stores it and turns it into an ACK. The ACK returns the same way and
 * closes the slot on host 1.
 *
 * The protocol between daemon and controller is in proto/ctl.proto.
 */
#ifndef BARLINE_FORWARD_ABI_H
#define BARLINE_FORWARD_ABI_H

#include <linux/types.h>
#include "maps/wire_abi.h"

#define BL_SOCK_FORWARD 0x424c4657u
/*
 * Largest UDP payload that can be forwarded: that of a frame of MTU 9216. Frames of more than 3520
 * bytes take several buffers (bpf_prog_test_run_xdp(), Linux 6.1 to 6.18), so a host that receives
 * such frames has loaded its program for that.
 */
#define BL_FORWARD_MAX 9192

/**
 * struct bl_forward_msg - one frame to be forwarded. Only @len bytes of @frame are sent.
 */
struct bl_forward_msg {
	__u32 magic;                /* BL_SOCK_FORWARD */
	__u16 port;                 /* UDP port of the destination endpoint, host order */
	__u16 len;                  /* bytes of @frame */
	__u8 addr[16];              /* address of the destination endpoint: IPv6 or IPv4-mapped */
	__u8 frame[BL_FORWARD_MAX]; /* the UDP payload; begins with struct bl_hdr */
};
_Static_assert(sizeof(struct bl_forward_msg) == 24 + BL_FORWARD_MAX, "ABI");

#endif
