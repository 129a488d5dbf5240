/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Running bl_switch_devmap. The kernel refuses to test_run a device-map program by itself, so it is
 * run where it is used: BPF_F_TEST_XDP_LIVE_FRAMES sends a frame of the test through a program of
 * three instructions that redirects it into sw_tx (or through bl_switch_xdp), and the device map
 * runs bl_switch_devmap for each port. A frame that the program passes arrives at the other end of
 * that port's veth, where a packet socket reads every byte.
 */
#ifndef BARLINE_TEST_LIVE_UTIL_H
#define BARLINE_TEST_LIVE_UTIL_H

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <sys/socket.h>
#include "tests/prog/switch/switch_util.h"

static int sock[NPORTS];    /* at the far ends p0 to p3 */
static int to_port, to_all; /* programs that redirect to entry 1 of sw_tx, and to all entries */

static int redirect_prog(int map, int key, int flags)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = key },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = flags },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "to_sw_tx", "GPL", insns,
			       sizeof(insns) / sizeof(*insns), NULL);

	if (fd < 0)
		fail_msg("cannot load the redirecting program: %s", strerror(-fd));
	return fd;
}

static void send_live(int prog, __u32 port, const struct frame *in)
{
	struct xdp_md ctx = { .data_end = in->n, .ingress_ifindex = net.ifindex[port] };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->p, .data_size_in = in->n, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	int rc = bpf_prog_test_run_opts(prog, &o);

	if (rc)
		fail_msg("cannot send a live frame: %s", strerror(-rc));
	ran_on(in->n);
}

/*
 * Sends the frame over the wire: from the far end of @port, with @prog attached to the port itself.
 */
static void send_by_wire(int prog, __u32 port, const struct frame *in)
{
	int fd, rc;

	fd = bpf_program__fd(net.pass->progs.bl_pass);
	rc = bpf_xdp_attach(
		(int)net.ifindex[port], prog, XDP_FLAGS_DRV_MODE | XDP_FLAGS_REPLACE,
		(struct bpf_xdp_attach_opts[]){
			{ .sz = sizeof(struct bpf_xdp_attach_opts), .old_prog_fd = fd } });
	if (rc)
		fail_msg("cannot attach to port %u: %s", port, strerror(-rc));
	assert_int_equal(send(sock[port], in->p, in->n, 0), in->n);
	ran_on(in->n);
	/*
	 * The frame is handled in softirq context on this CPU, to which the test is bound: on the
	 * way out of send(), or by ksoftirqd before an idle CPU sleeps.
	 */
	usleep(20000);
	rc = bpf_xdp_attach(
		(int)net.ifindex[port], fd, XDP_FLAGS_DRV_MODE | XDP_FLAGS_REPLACE,
		(struct bpf_xdp_attach_opts[]){
			{ .sz = sizeof(struct bpf_xdp_attach_opts), .old_prog_fd = prog } });
	assert_int_equal(rc, 0);
}

/*
 * Whether this kernel clones live frames correctly. Linux 6.1 cuts the clones short, because there
 * test_run keeps the frame's descriptor outside of the headroom that xdpf_clone() copies. Frames
 * from a wire are not affected.
 */
static bool live_clones;

/*
 * Sends one frame through @prog and the device map. When this returns, everything but the reception
 * is done.
 */
static void send_through(int prog, __u32 port, const struct frame *in)
{
	if (live_clones)
		send_live(prog, port, in);
	else
		send_by_wire(prog, port, in);
}

/*
 * Reads the next frame that arrived at the far end of @port; @f has 0 bytes if none arrives within
 * @ms.
 */
static void receive_frame(__u32 port, struct frame *f, int ms)
{
	struct pollfd p = { .fd = sock[port], .events = POLLIN };

	f->n = 0;
	while (poll(&p, 1, ms) == 1) {
		union {
			struct cmsghdr align;
			char room[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
		} control;
		struct sockaddr_ll a;
		struct iovec v = { .iov_base = f->p, .iov_len = sizeof(f->p) };
		struct msghdr m = { .msg_name = &a,
				    .msg_namelen = sizeof(a),
				    .msg_iov = &v,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(p.fd, &m, MSG_DONTWAIT);
		struct cmsghdr *c;

		assert_true(n > 0);
		if (a.sll_pkttype == PACKET_OUTGOING)
			continue;
		f->n = (__u32)n;
		for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			struct tpacket_auxdata aux;
			__be16 tag[2];

			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
			if (c->cmsg_type != PACKET_AUXDATA ||
			    !(aux.tp_status & TP_STATUS_VLAN_VALID))
				continue;
			/* The kernel took the VLAN tag off; this puts it back. */
			tag[0] = htons(aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid
										 : ETH_P_8021Q);
			tag[1] = htons(aux.tp_vlan_tci);
			memmove(f->p + 16, f->p + 12, f->n - 12);
			memcpy(f->p + 12, tag, 4);
			f->n += 4;
		}
		return;
	}
}

static void probe_clones(void)
{
	struct frame in = { .n = 64 }, out;
	__u32 i;

	for (i = 0; i < in.n; i++)
		in.p[i] = (__u8)(i + 1); /* neither barline's nor IP */
	live_clones = true;
	send_live(to_all, 0, &in);
	for (i = 0; i < NPORTS; i++) {
		receive_frame(i, &out, 5000);
		live_clones &= out.n == in.n && !memcmp(out.p, in.p, in.n);
	}
}

MAYBE_UNUSED static int live_setup(void **state)
{
	int i;

	net_setup(false);
	for (i = 0; i < NPORTS; i++) {
		struct sockaddr_ll a = { .sll_family = AF_PACKET,
					 .sll_protocol = htons(ETH_P_ALL),
					 .sll_ifindex = (int)net.peer[i] };
		int one = 1;

		sock[i] = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
		assert_true(sock[i] >= 0);
		assert_int_equal(bind(sock[i], (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(setsockopt(sock[i], SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)),
				 0);
	}
	switch_setup(state);
	to_port = redirect_prog(bpf_map__fd(sk->maps.sw_tx), 1, 0);
	to_all = redirect_prog(bpf_map__fd(sk->maps.sw_tx), 0, BPF_F_BROADCAST);
	probe_clones();
	return 0;
}

MAYBE_UNUSED static void expect_arrival(__u32 port, const struct desc *want)
{
	struct frame got, expect;

	build(&expect, want);
	receive_frame(port, &got, 5000);
	same_frame(&got, &expect);
}

MAYBE_UNUSED static void expect_no_arrival(void)
{
	struct frame f;
	__u32 p;

	for (p = 0; p < NPORTS; p++) {
		receive_frame(p, &f, 0);
		assert_int_equal(f.n, 0);
	}
}

#endif
