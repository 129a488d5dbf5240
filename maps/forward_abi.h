/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of the reliable stream that go by way of the controller (1Pipe 5.2, "controller
 * forwarding"): what a process hands to its host's daemon, on the connection that stands for its
 * endpoint.
 *
 * Example: host 1's PREP for 10.0.0.3:61697 was sent five times in 400 ms, and no ACK came. The
 * library sends { BL_SOCK_FORWARD, 61697, 112, ::ffff:10.0.0.3, the UDP payload }. Host 3's daemon
 * runs it through the program bl_host_relayed, which stores it and makes an ACK of it; that comes
 * back the same way and closes the slot on host 1.
 */
#ifndef BARLINE_FORWARD_ABI_H
#define BARLINE_FORWARD_ABI_H

#include "maps/wire_abi.h"

#define BL_SOCK_FORWARD 0x424c4657u
/*
 * UDP payload of a frame that may go this way. The program runs on one page: 4096 less 256 of
 * headroom and 320 at its end (bpf_prog_test_run_xdp(), 6.1 to 6.18), less Ethernet, IPv6 and UDP
 * headers: 3458.
 */
#define BL_FORWARD_MAX 3456

/**
 * struct bl_forward_msg - @magic: BL_SOCK_FORWARD. @port, @addr: of the endpoint that it is for;
 * host order, IPv6 or mapped. @len: of @frame, which begins with struct bl_hdr; no more than that
 * is sent.
 */
struct bl_forward_msg {
	__u32 magic;
	__u16 port;
	__u16 len;
	__u8 addr[16];
	__u8 frame[BL_FORWARD_MAX];
};
_Static_assert(sizeof(struct bl_forward_msg) == 24 + BL_FORWARD_MAX, "ABI");

#endif
