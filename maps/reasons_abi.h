/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a frame ended as it did: the one list of reasons, shared by every program, the command line
 * tool and the tests.
 *
 * Every barline program ends in bl_done(reason) (bpf/bpf_util.h), which counts the reason for the
 * frame's port and maps it to an XDP or tc verdict. A frame is counted exactly once per program, so
 * the sum over the reasons of a port equals the number of frames that the program saw there.
 *
 * Example: a switch receives 10 frames on port 2, forwards 9 and finds no route for one. The map
 * "counts" then has 9 at (forwarded, port 2) and 1 at (no_route, port 2), which `barline show
 * drops` prints as "no_route". Reasons of kind NOTE are counted in addition and are not part of the
 * sum.
 */
#ifndef BARLINE_REASONS_ABI_H
#define BARLINE_REASONS_ABI_H

/*
 * X(SYMBOL, "name", kind, "explanation"). Append only: the number is ABI, since it is the key of
 * the map "counts". The name is that of the command line tool, of JSON and of the manual; `barline
 * show drops` and `barline doctor` print the explanation. Kinds: OK: the frame went on; DROP: it
 * was dropped; NOTE: an event counted beside the verdict.
 *
 * To add a reason:
 * 1. Append it here. BL_REASON_MAX bounds the number of reasons.
 * 2. Return it with bl_done() in the program, or count it with bl_count(). A reason of kind OK also
 *    needs its verdict where the program maps reasons to verdicts (for example tc_done() in
 *    bpf/host/host.bpf.c).
 * 3. Add the same row to the table "Reasons" in docs/protocol.md; tests/unit/test_protocol.c
 *    compares the two, name, kind and text.
 * 4. Say in returned_by[] of tests/prog/prog_util.h which programs return it. Each of their tests
 *    then fails until it has provoked the reason.
 * 5. If an operator can do something about it, add a sentence to cures[] in cli/doctor/doctor.c.
 */
/* clang-format off */
#define BL_REASONS(X) \
	X(NONE, "none", OK, "never used: a program that returns it has a fault") \
	X(NOT_OURS, "not_ours", OK, "not a barline frame: handed to the kernel untouched") \
	X(FORWARDED, "forwarded", OK, "ordered frame sent on with this switch's barrier") \
	X(BEACON, "beacon", OK, "beacon received: its barrier was used, and the frame ended here") \
	X(RELAYED, "relayed", OK, "beacon that raised a barrier and was cloned to the ports") \
	X(STORED, "stored", OK, "message appended to its endpoint's ring") \
	X(SENT, "sent", OK, "ordered frame of this host sent with barriers filled in") \
	X(BEACON_SENT, "beacon_sent", OK, "beacon of this host sent with barriers filled in") \
	X(TO_KERNEL, "to_kernel", OK, \
	  "ordered frame without a resolved neighbour: handed to the kernel") \
	X(CLONE_SENT, "clone_sent", OK, "relayed beacon sent on this port") \
	X(CLONE_STALE, "clone_stale", DROP, \
	  "relayed beacon not needed: this port carried newer barriers") \
	X(SHORT, "short", DROP, "frame ends inside a header it announces") \
	X(BAD_LENGTH, "bad_length", DROP, "IP or UDP length disagrees with the frame") \
	X(BAD_IHL, "bad_ihl", DROP, "IPv4 header length below 5 words") \
	X(IP_OPTIONS, "ip_options", DROP, "IPv4 options on an ordered frame") \
	X(FRAGMENT, "fragment", DROP, "IP fragment of an ordered frame; raise the MTU") \
	X(DOUBLE_TAG, "double_tag", DROP, "more than one VLAN tag") \
	X(BAD_VERSION, "bad_version", DROP, "header version is not one this build speaks") \
	X(BAD_OPCODE, "bad_opcode", DROP, "opcode unknown, or not allowed in this kind of frame") \
	X(BAD_FLAGS, "bad_flags", DROP, "reserved flag set, or lane not below the lane count") \
	X(TTL, "ttl", DROP, "TTL or hop limit used up: a forwarding loop") \
	X(LOOPED, "looped", DROP, \
	  "frame came back: to the port it would leave by, or a beacon to the node that " \
	  "sent it") \
	X(BARRIER_AHEAD, "barrier_ahead", DROP, \
	  "barrier further ahead than this node's clock plus the bound and what silent " \
	  "hosts may promise") \
	X(TS_AHEAD, "ts_ahead", DROP, \
	  "message timestamp further ahead than this node's clock plus the bound and what " \
	  "silent hosts may promise") \
	X(TAI_MISMATCH, "tai_mismatch", DROP, \
	  "neighbour uses another TAI offset; fix its clock first") \
	X(CLOCK_VOID, "clock_void", DROP, \
	  "the clock record is past void_after; is barlined running?") \
	X(UNKNOWN_PORT, "unknown_port", DROP, "interface is not a port of this switch") \
	X(NO_ROUTE, "no_route", DROP, "no route or no table entry for the destination") \
	X(TOO_BIG, "too_big", DROP, \
	  "frame larger than the output's MTU or the largest ring record") \
	X(NO_ENDPOINT, "no_endpoint", DROP, "no endpoint has this address and port") \
	X(RING_FULL, "ring_full", DROP, \
	  "the endpoint's ring is full: the process does not keep up") \
	X(NOT_ENDPOINT, "not_endpoint", DROP, \
	  "sent into barline's port range by a process that is not an endpoint") \
	X(REDIRECT_FAILED, "redirect_failed", DROP, "the device map refused the output port") \
	X(FORGED_BEACON, "forged_beacon", DROP, \
	  "link-local barline frame that did not come from the host daemon") \
	X(PROMISE_BROKEN, "promise_broken", NOTE, \
	  "message with a timestamp below its lane's barrier: the FIFO before this port is " \
	  "broken") \
	X(WRONG_CPU, "wrong_cpu", NOTE, \
	  "frame received on another CPU than the one its port is steered to; it is sent " \
	  "there, but in generic XDP mode handled where it came in") \
	X(BARRIER_OLD, "barrier_old", NOTE, "barrier below its register: normal, ignored") \
	X(EXCLUDED, "excluded", NOTE, "silent input excluded from the barrier after dead_after") \
	X(JOINED, "joined", NOTE, "input taken into the barrier") \
	X(STEERED, "steered", OK, \
	  "frame received on another CPU than its port's, or behind one that was, and sent " \
	  "to that CPU, where it is counted once more with its result") \
	X(HELD, "held", OK, "application's frame put into a hold queue") \
	X(HOLD_FULL, "hold_full", DROP, \
	  "the destination's hold queue is full: the application sends faster than it may") \
	X(NO_SLOT, "no_slot", DROP, \
	  "no free slot for a frame: all queues together hold as many as there are") \
	X(HOLD_DESTS, "hold_dests", DROP, \
	  "more destinations that hold frames than there are hold queues") \
	X(FRAME_SIZE, "frame_size", DROP, "frame shorter or longer than a queue can take") \
	X(TO_APP, "to_app", OK, "frame for bl0's address, handed to it") \
	X(QUEUED, "queued", OK, "put into an output queue of a metered port; the pacer sends it") \
	X(QUEUE_FULL, "queue_full", DROP, "the metered port's output queue is full") \
	X(PASSED_ON, "passed_on", OK, \
	  "frame that is not barline's, forwarded by the switch program") \
	X(ECN_MARKED, "ecn_marked", NOTE, \
	  "ECN congestion experienced set: the queue was longer than its mark") \
	X(RSV_GRANTED, "rsv_granted", OK, "reservation granted") \
	X(RSV_REPEATED, "rsv_repeated", OK, \
	  "repeated reservation: the same answer, and nothing more is promised") \
	X(RSV_REFUSED, "rsv_refused", OK, \
	  "reservation refused: no timeslot is near enough; the host was told") \
	X(RSV_BAD, "rsv_bad", DROP, \
	  "reservation refused: demand 0 or above the limit, unknown port, or its own port") \
	X(RSV_OFF, "rsv_off", DROP, \
	  "reservation request to a switch that makes none; use `barline admission set pl2`") \
	X(GRT, "grt", OK, "grant accepted") \
	X(GRT_COPY, "grt_copy", OK, "copy of a grant accepted: its burst will arrive") \
	X(GRT_BAD, "grt_bad", DROP, \
	  "grant that answers no reservation of this host: late, replayed or forged") \
	X(RELEASED, "released", OK, \
	  "promise taken back because the receiver said that nothing came") \
	X(RELEASE_BAD, "release_bad", DROP, "release of a promise that does not exist") \
	X(UNRESERVED, "unreserved", DROP, \
	  "data without a promise, or beyond it, on a port where only promised data may " \
	  "pass") \
	X(EARLY_REFUSED, "early_refused", DROP, \
	  "unsolicited frame dropped: too much is promised already; its sender sends it " \
	  "again") \
	X(RSV_LAPSED, "rsv_lapsed", NOTE, "promise that was not used in time, taken back") \
	X(PACED, "paced", OK, "frame sent by the pacer") \
	X(BEACON_PACED, "beacon_paced", OK, \
	  "beacon that the pacer carries, on its way to the NIC's egress program") \
	X(PATH_TAKEN, "path_taken", NOTE, "frame sent up by the path that it carries") \
	X(PATH_LOST, "path_lost", NOTE, \
	  "frame whose path leads nowhere: this switch chose another way; is the link down?") \
	X(TOKEN_PASSED, "token_passed", OK, "token let through at once") \
	X(TOKEN_LIMIT, "token_limit", DROP, \
	  "token dropped: as many tokens of its class as are allowed are in front of it") \
	X(TOKEN_EXPIRED, "token_expired", DROP, \
	  "token dropped: it was, or would be, under way for longer than a token is valid") \
	X(TOKEN_CLASS, "token_class", DROP, "token of a class that does not exist") \
	X(TOKEN_FLOOD, "token_flood", DROP, \
	  "token or signal above the rate of this input's link: is the receiver on that " \
	  "host faulty?") \
	X(TOKEN_USED, "token_used", OK, \
	  "token answered: its frame became a held frame and went back") \
	X(TOKEN_PACED, "token_paced", OK, \
	  "token answered by the pacer, since its frame could not grow") \
	X(TOKEN_WASTED, "token_wasted", DROP, "token for a flow that holds nothing") \
	X(TOKEN_STOP, "token_stop", OK, \
	  "token for a flow that holds nothing, sent back as a STOP") \
	X(TOKEN_UNKNOWN, "token_unknown", DROP, "token for a flow that this host does not have") \
	X(TOKEN_FORGED, "token_forged", DROP, \
	  "token with another tag than its flow's: old, or forged") \
	X(TOKEN_REPLAYED, "token_replayed", DROP, \
	  "token whose number was received before, or is far from those received") \
	X(TOKEN_AHEAD, "token_ahead", DROP, \
	  "token with a time in the future, by more than two clocks may differ") \
	X(SIGNAL, "signal", OK, "SYNC, STOP or FIN accepted") \
	X(SIGNAL_BAD, "signal_bad", DROP, \
	  "TOP frame cut short, of another version or opcode, or of a flow that was never " \
	  "announced") \
	X(FLOWS_FULL, "flows_full", DROP, \
	  "SYNC of a new flow while all places for inbound flows are taken") \
	X(ECHO_BAD, "echo_bad", NOTE, "data that answers a token which was never sent") \
	X(NO_TOKEN, "no_token", NOTE, \
	  "application's frame that needs no token: TCP without payload, or no IP") \
	X(TOKEN_RESENT, "token_resent", OK, \
	  "token answered with a frame that was sent before and got lost") \
	X(TOKEN_BLOCKED, "token_blocked", DROP, \
	  "token for a flow that keeps its last 64 data frames until they are acknowledged, " \
	  "none of them missing: no more are sent") \
	X(LOSS, "loss", OK, \
	  "LOSS accepted: slots of received data are freed, and missing data is sent again") \
	X(LOSS_BAD, "loss_bad", DROP, \
	  "LOSS of another tag than its flow's, of a flow that keeps nothing, or of data " \
	  "that was never sent") \
	X(LOSS_GONE, "loss_gone", NOTE, "data that a LOSS asked for and that is no longer kept") \
	X(NOT_KEPT, "not_kept", NOTE, \
	  "data not kept for resending, since kept frames already use all the slots that " \
	  "they may") \
	X(DATA_REPEATED, "data_repeated", DROP, "data that was received before, or given up") \
	X(DATA_LOST, "data_lost", NOTE, "lost data that is no longer waited for") \
	X(PREPARED, "prepared", OK, "reliable message stored; its frame went back as the ACK") \
	X(ACKED, "acked", OK, "ACK that closed a slot of its sender's window") \
	X(ACK_REPEATED, "ack_repeated", OK, "ACK of a slot that was closed already") \
	X(ACK_UNKNOWN, "ack_unknown", DROP, \
	  "ACK that answers nothing in its endpoint's window: late, replayed or forged") \
	X(COMMITTED, "committed", OK, \
	  "ACK that emptied a window; its frame went on as a beacon with the commit barrier") \
	X(WRONG_LIFE, "wrong_life", DROP, \
	  "reliable message or RECALL for an earlier endpoint of this port, or for none") \
	X(SENT_ACK, "sent_ack", DROP, \
	  "ACK or RECALLED that a process of this host tried to send; only programs send " \
	  "them") \
	X(PREP_LATE, "prep_late", DROP, \
	  "reliable message below the commit barrier: committed already, or from a sender " \
	  "for which the barrier does not wait") \
	X(EPOCH_OLD, "epoch_old", NOTE, "fence of a controller that no longer leads; refused") \
	X(BY_CONTROLLER, "by_controller", NOTE, \
	  "frame of the reliable stream that came by way of the controller") \
	X(NOT_IN, "not_in", DROP, \
	  "OPEN or PREP from an input for which the commit barrier does not wait: its host " \
	  "was announced as failed, or its link has lanes that were not heard yet") \
	X(BYPASSED, "bypassed", DROP, \
	  "ordered frame that the kernel tried to send past this switch's program, with the " \
	  "barriers of another node") \
	X(HOME_FULL, "home_full", DROP, \
	  "frame received on the wrong CPU while too many frames of its port were on their " \
	  "way to the right one") \
	X(RECALLED, "recalled", OK, "RECALL stored; its frame went back as the RECALLED") \
	X(UNSWITCHED, "unswitched", DROP, \
	  "ordered frame with the barriers of another node than the neighbour: a switch in " \
	  "between forwards without barline's program, or no beacon of the neighbour has " \
	  "arrived yet") \
	X(LEFT, "left", OK, \
	  "reliable message or RECALL for an endpoint that left in order: answered in its " \
	  "place") \
	X(GRT_OFF, "grt_off", OK, \
	  "answer of a switch that makes no reservations: frames go without, as under " \
	  "policy none, until it does") \
	X(POLICY_APART, "policy_apart", NOTE, \
	  "data without a promise from an input that asks for none: let through, since its " \
	  "host has another policy than this switch") \
	X(HELD_LONG, "held_long", DROP, \
	  "application's frame that waited too long for permission to leave: its peer or " \
	  "the arbiter does not answer") \
	X(SPOOFED, "spoofed", DROP, \
	  "source address is not one of the host behind this port; see `barline show sources`") \
	X(LANES_REFUSED, "lanes_refused", DROP, \
	  "frame of a neighbour with more lanes than its port is configured for") \
	X(CONTROL_FLOOD, "control_flood", DROP, \
	  "control frame, beacon or reservation beyond the quota of its port") \
	X(LAGGING, "lagging", NOTE, \
	  "input excluded from the barrier although it talks: its barrier lags behind those of " \
	  "others by more than lag_max") \
	X(EPOCH_FAR, "epoch_far", NOTE, \
	  "fence with an epoch too far above the highest one that was obeyed: no election " \
	  "can have raised it so much; refused") \
	X(AUTH_MISSING, "auth_missing", DROP, \
	  "link frame without a tag on a link that is authenticated: does the neighbour " \
	  "have `auth: links` and its keys?") \
	X(AUTH_BAD, "auth_bad", DROP, \
	  "link frame with a wrong tag: forged, damaged, or from a neighbour with other " \
	  "keys than this node's") \
	X(AUTH_REPLAYED, "auth_replayed", DROP, \
	  "link frame whose stamp is not above the last one of its stream, or too far from " \
	  "this node's clock: replayed") \
	X(AUTH_FLOOD, "auth_flood", DROP, \
	  "link frame dropped unchecked, since too many before it had wrong tags") \
	X(AUTH_EPOCH, "auth_epoch", DROP, \
	  "link frame under an epoch of keys that this node does not have, or no longer " \
	  "accepts") \
	X(FOREIGN_SOURCE, "foreign_source", DROP, \
	  "frame with the port of an endpoint, but from another socket or address; or from " \
	  "the network with an address of this host or of loopback") \
	X(SEND_VOID, "send_void", DROP, \
	  "message of a process that had stopped in the middle of sending it: its host went " \
	  "on without it") \
	X(PROMISE_ABSURD, "promise_absurd", NOTE, \
	  "promise of this host far ahead of its clock; taken back") \
	X(CHAINED, "chained", OK, \
	  "not a barline frame: handed to the chained XDP program") \
	X(SEND_LATE, "send_late", DROP, \
	  "message that left its host below a barrier that the host had sent: it waited in " \
	  "the kernel meanwhile, as for ARP, or its process chose the timestamp")
/* clang-format on */

#define BL_REASON_ENUM(sym, name, kind, text) BL_R_##sym,
enum bl_reason { BL_REASONS(BL_REASON_ENUM) BL_R_COUNT };
#undef BL_REASON_ENUM

#define BL_REASON_MAX 128 /* room to grow: keys of the map "counts" */
_Static_assert(BL_R_COUNT <= BL_REASON_MAX, "reasons outgrew the map \"counts\"");

/*
 * Whether frames that end for reason @r are beacons, each of BL_BEACON_LEN bytes. Programs count no
 * bytes for them: whoever reads the counters multiplies (loader/load/counts.c).
 */
#define BL_BEACON_REASON(r)                                                      \
	((r) == BL_R_BEACON || (r) == BL_R_RELAYED || (r) == BL_R_BEACON_SENT || \
	 (r) == BL_R_CLONE_SENT || (r) == BL_R_CLONE_STALE || (r) == BL_R_BEACON_PACED)

enum bl_reason_kind { BL_KIND_OK, BL_KIND_DROP, BL_KIND_NOTE };

#endif
