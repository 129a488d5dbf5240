/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The metrics that barline exports: the one list of names, types, labels and sentences. The table
 * in docs/metrics.md is compared with it, and so are the alert rules and the dashboard in
 * monitoring/.
 *
 * X(SYMBOL, TYPE, "name", "unit", "labels", "help"). The exported name is barline_NAME; it ends in
 * the unit, if there is one, and a counter gets _total behind that. Times are in seconds, sizes in
 * bytes. Labels are separated by one comma. To add a metric: a row here, a row in docs/metrics.md,
 * and a call of metric_*() in one of the collect_*.c.
 */
#ifndef BARLINE_CLI_METRICS_FAMILIES_H
#define BARLINE_CLI_METRICS_FAMILIES_H

/* clang-format off */
#define BL_METRICS(X) \
	X(BUILD, GAUGE, "build_info", "", "version", \
	  "1; the version of the exporter") \
	X(SCRAPE_TIME, GAUGE, "scrape_duration_seconds", "seconds", "source", \
	  "how long this scrape took to read a source") \
	X(SCRAPE_ERROR, GAUGE, "scrape_error", "", "source", \
	  "1: a part of the source could not be read; the log says why") \
	X(SCRAPE_OMITTED, GAUGE, "scrape_omitted_samples", "", "", \
	  "samples that this scrape left out since there were too many") \
	\
	X(NODE, GAUGE, "node_info", "", "node,kind,id,abi,build", \
	  "1; a switch or host that is pinned in this network namespace") \
	X(DAEMON_UP, GAUGE, "daemon_up", "", "node", \
	  "1: the clock record was renewed in the last 3 s, so a daemon serves the node") \
	X(INTERFACES_GONE, GAUGE, "node_interfaces_gone", "", "node", \
	  "interfaces to which programs of the node were attached, and that no longer exist") \
	X(NODE_EPOCH, GAUGE, "node_controller_epoch", "", "node", \
	  "highest epoch of a controller that the node obeys; 0: none") \
	\
	X(FRAMES, COUNTER, "frames", "", "node,port,role,verdict,reason", \
	  "frames by what became of them; verdict is ok or drop") \
	X(PORT_BYTES, COUNTER, "port_bytes", "bytes", "node,port,role,verdict,reason", \
	  "bytes of these frames, from the Ethernet header on") \
	X(NOTES, COUNTER, "notes", "", "node,port,role,reason", \
	  "events counted beside the verdict on a frame") \
	X(IF_BYTES, COUNTER, "interface_bytes", "bytes", "node,port,direction", \
	  "bytes of all traffic of an interface, as the kernel counts them") \
	X(IF_FRAMES, COUNTER, "interface_frames", "", "node,port,direction", \
	  "frames of all traffic of an interface, as the kernel counts them") \
	X(IF_ERRORS, COUNTER, "interface_errors", "", "node,port,direction", \
	  "errors of an interface, as the kernel counts them") \
	X(IF_DROPPED, COUNTER, "interface_dropped", "", "node,port,direction", \
	  "frames that the kernel or the driver of an interface dropped") \
	\
	X(INPUT_LAG, GAUGE, "input_lag_seconds", "seconds", "node,port,lane,stream", \
	  "bus time less the barrier (stream order) or commit barrier (reliable) of a live input") \
	X(INPUT_SILENT, GAUGE, "input_silent_seconds", "seconds", "node,port,lane", \
	  "how long nothing came from an input, as far as its lane has checked") \
	X(INPUT_STATE, GAUGE, "input_state", "", "node,port,lane,state", \
	  "1: the input is in this state: absent, joining, live or dead") \
	X(INPUT_HELD, GAUGE, "input_held", "", "node,port,lane", \
	  "1: the input is frozen until the controller resumes it") \
	X(INPUT_BARRED, GAUGE, "input_barred", "", "node,port", \
	  "1: the port promises no commit barrier and does not join it") \
	X(INPUT_DEATHS, COUNTER, "input_deaths", "", "node,port", \
	  "times that the input was declared dead, by the node or by a controller") \
	X(OUTPUT_LAG, GAUGE, "output_lag_seconds", "seconds", "node,output,lane,stream", \
	  "bus time less what an output was given: a set of a switch; delivered or sent of " \
	  "a host") \
	X(LAG_HIST, HISTOGRAM, "barrier_lag_seconds", "seconds", "node", \
	  "bus time less the barrier below which a host delivers, 100 times per second; by " \
	  "HTTP only") \
	\
	X(LINK_NEIGHBOUR, GAUGE, "link_neighbour_info", "", "node,port,neighbour", \
	  "1; the node id of the neighbour, from its last beacon") \
	X(LINK_FRAMES, COUNTER, "link_frames", "", "node,port,lane", \
	  "ordered frames that came from the neighbour") \
	X(LINK_LOST, COUNTER, "link_lost_frames", "", "node,port,lane", \
	  "ordered frames of the neighbour that never came") \
	X(LINK_MISSING, GAUGE, "link_missing_frames", "", "node,port,lane", \
	  "ordered frames of the neighbour that are missing and may still come") \
	X(LINK_OVERTAKEN, COUNTER, "link_overtaken_frames", "", "node,port,lane", \
	  "frames that came after a beacon that had counted them: the link is no FIFO") \
	X(LINK_RACED, COUNTER, "link_raced_frames", "", "node,port,lane", \
	  "frames that changed places without harm") \
	X(LINK_THEIRS, COUNTER, "link_peer_overtaken_frames", "", "node,port", \
	  "frames of this node that the neighbour counted as overtaken") \
	X(LINK_DELAY, GAUGE, "link_delay_seconds", "seconds", "node,port,direction", \
	  "least delay of beacons by the clocks of both ends; direction is in or out") \
	X(LINK_CLOCK, GAUGE, "link_clock", "", "node,port,verdict", \
	  "1: what the daemon found out about the neighbour's clock") \
	X(LINK_CLOCK_OFF, GAUGE, "link_clock_off_seconds", "seconds", "node,port", \
	  "by how much the neighbour's clock is further off than both bounds allow; 0: it is not") \
	\
	X(CLOCK_VALID, GAUGE, "clock_valid", "", "node", \
	  "1: the clock may be used; 0: it is void, and ordered traffic stops") \
	X(CLOCK_BOUND, GAUGE, "clock_bound_seconds", "seconds", "node", \
	  "largest error of bus time now") \
	X(CLOCK_MAX_BOUND, GAUGE, "clock_max_bound_seconds", "seconds", "node", \
	  "bound above which the clock is void; +Inf: no limit") \
	X(CLOCK_SOURCE_BOUND, GAUGE, "clock_source_bound_seconds", "seconds", "node", \
	  "the part of the bound that comes from the source") \
	X(CLOCK_AGE, GAUGE, "clock_age_seconds", "seconds", "node", \
	  "time since the daemon last measured the clock") \
	X(CLOCK_SOURCE_AGE, GAUGE, "clock_source_age_seconds", "seconds", "node", \
	  "time since the source last said something; +Inf: it never did") \
	X(CLOCK_VOID_IN, GAUGE, "clock_void_in_seconds", "seconds", "node", \
	  "time until the clock is void unless the daemon renews it; 0: it is void") \
	X(CLOCK_SOURCE, GAUGE, "clock_source_info", "", "node,source", \
	  "1; where the bound of the system clock comes from") \
	X(CLOCK_STATE, GAUGE, "clock_state", "", "node,state", \
	  "1: the state of the clock that the daemon wrote last") \
	X(CLOCK_TAI, GAUGE, "clock_tai_offset_seconds", "seconds", "node", \
	  "the kernel's TAI - UTC") \
	\
	X(ENDPOINTS, GAUGE, "endpoints", "", "node,state", \
	  "endpoints of a host; state is member, or why an endpoint is out (barline show " \
	  "endpoints)") \
	X(EP_RING, GAUGE, "endpoint_ring_bytes", "bytes", "node,endpoint", \
	  "size of the ring of an endpoint, which is named by its port") \
	X(EP_RING_USED, GAUGE, "endpoint_ring_used_bytes", "bytes", "node,endpoint", \
	  "bytes that wait in the ring of an endpoint") \
	X(EP_EVENTS, COUNTER, "endpoint_events", "", "node,endpoint,event", \
	  "what the library counts of an endpoint: members of struct bl_stats (bl_get_stats(3))") \
	X(EP_QUEUED, GAUGE, "endpoint_queued_frames", "", "node,endpoint,stream", \
	  "frames that an endpoint has taken from its ring and not delivered yet") \
	X(EP_STAGED, GAUGE, "endpoint_staged_seconds", "seconds", "node,endpoint,stream", \
	  "how long the oldest message of an endpoint has been waiting to leave; 0: none waits") \
	X(SEND_WAIT, HISTOGRAM, "send_wait_seconds", "seconds", "node,endpoint,stream", \
	  "from the first send call of what leaves together to its timestamp") \
	X(DELIVERY, HISTOGRAM, "delivery_seconds", "seconds", "node,endpoint,stream", \
	  "from the timestamp of a message to the call that delivers it to the application") \
	X(HOLD, HISTOGRAM, "reorder_hold_seconds", "seconds", "node,endpoint,stream", \
	  "from the ring to delivery, of a sample of frames: waiting to be in order") \
	\
	X(AUTH_MODE, GAUGE, "auth_mode_info", "", "node,port,mode", \
	  "1; how the link is treated: required, offered, exempt or off") \
	X(AUTH_EPOCH, GAUGE, "auth_epoch", "", "node,port,direction", \
	  "epoch of keys of the last frame sent (direction out) or accepted (in); 0: " \
	  "without a tag") \
	X(AUTH_ENDS, GAUGE, "auth_epoch_ends_seconds", "seconds", "node,port", \
	  "time until the last epoch of keys that the node has ends; +Inf: it does not end") \
	X(CERTIFICATE, GAUGE, "certificate_expires_seconds", "seconds", "file", \
	  "time until a certificate that --certificate names expires") \
	\
	X(POLICY, GAUGE, "admission_policy_info", "", "node,policy", \
	  "1; the admission policy of a host that has bl0") \
	X(QUEUE_FRAMES, GAUGE, "queue_frames", "", "node,port,class", \
	  "frames in an output queue of a metered port; port is bl0 for the hold queues of " \
	  "a host") \
	X(QUEUE_BYTES, GAUGE, "queue_bytes", "bytes", "node,port,class", \
	  "bytes in these queues") \
	X(QUEUE_PUT, COUNTER, "queue_put_frames", "", "node,port,class", \
	  "frames put into these queues") \
	X(QUEUE_SENT, COUNTER, "queue_sent_frames", "", "node,port,class", \
	  "frames taken out of these queues") \
	X(QUEUE_DROPPED, COUNTER, "queue_dropped_frames", "", "node,port,class", \
	  "frames dropped because one of these queues was full") \
	X(QUEUE_MARKED, COUNTER, "queue_marked_frames", "", "node,port,class", \
	  "frames marked with ECN CE in these queues") \
	X(QUEUE_LENGTH, HISTOGRAM, "queue_length_bytes", "bytes", "node,port,class", \
	  "bytes that frames found in front of them in a queue") \
	X(QUEUE_WAIT, HISTOGRAM, "queue_wait_seconds", "seconds", "node,port,class", \
	  "time that frames waited in a queue: output queues, hold queues, and tokens") \
	X(PACER_TURNS, COUNTER, "pacer_turns", "", "node", \
	  "times that the pacer asked a node whether something is due") \
	X(PACER_FRAMES, COUNTER, "pacer_frames", "", "node,kind", \
	  "what the pacer sent: frames, beacons, or failed") \
	X(PACER_LATE, HISTOGRAM, "pacer_late_seconds", "seconds", "node", \
	  "from the time a frame was due until the device took it") \
	X(RSV_BYTES, COUNTER, "reservation_bytes", "bytes", "node,port,event", \
	  "PL2 at a switch: bytes granted, used, lapsed and released") \
	X(RSV_ASKED, COUNTER, "reservation_answers", "", "node,port,answer", \
	  "PL2 at a switch: reservations granted and refused") \
	X(PL2, COUNTER, "pl2_events", "", "node,event", \
	  "PL2 at a host, all destinations: reservations by what became of them") \
	X(TOKENS, COUNTER, "tokens", "", "node,port,class,event", \
	  "TOP at a switch: tokens passed, or dropped by limit or expired") \
	X(TOKENS_SENT, COUNTER, "tokens_sent", "", "node,class", \
	  "TOP at a host: tokens sent") \
	X(FP_SESSION, GAUGE, "fastpass_session", "", "node", \
	  "1: an arbiter has answered this host") \
	X(FP_FALLBACK, GAUGE, "fastpass_fallback", "", "node", \
	  "1: no arbiter answers, and frames leave without slots") \
	X(FP_SLOTS, COUNTER, "fastpass_slots", "", "node,event", \
	  "timeslots of a host: asked, given, lost, refused, healed, used, idle, missed") \
	X(FP_PATHS, COUNTER, "fastpass_path_frames", "", "node,path,direction", \
	  "frames of applications by path; sent by all hosts less received by all is the loss") \
	\
	X(SERVICES, GAUGE, "services", "", "service,state", \
	  "controllers and arbiters of this network namespace; state is answering or silent") \
	X(CTL_STATE, GAUGE, "controller_state", "", "controller,state", \
	  "1: the controller is standby, loading, or leader") \
	X(CTL_EPOCH, GAUGE, "controller_epoch", "", "controller", \
	  "epoch in which the controller was elected; 0: it was not") \
	X(CTL_TROUBLE, GAUGE, "controller_trouble", "", "controller", \
	  "1: barline show controller reports a trouble") \
	X(CTL_SESSIONS, GAUGE, "controller_sessions", "", "controller", \
	  "nodes and strangers that are connected") \
	X(CTL_NODES, GAUGE, "controller_nodes", "", "controller,state", \
	  "nodes that the leader knows, by state") \
	X(CTL_FAILURES, GAUGE, "controller_failures", "", "controller,step", \
	  "failures that the leader knows, by their step") \
	X(CTL_EVENTS, COUNTER, "controller_events", "", "controller,event", \
	  "what the controller counts: messages refused, and reasons of its decisions") \
	X(CTL_REFUSED, COUNTER, "controller_refused", "", "controller", \
	  "sessions, messages and reports that the controller refused") \
	X(ARB_PRIMARY, GAUGE, "arbiter_primary", "", "rank", \
	  "1: the arbiter gives timeslots; 0: it waits to take over") \
	X(ARB_TERM, GAUGE, "arbiter_term", "", "rank", \
	  "term of the arbiter") \
	X(ARB_SESSIONS, GAUGE, "arbiter_sessions", "", "rank", \
	  "endpoints with a session") \
	X(ARB_WAITING, GAUGE, "arbiter_waiting_slots", "", "rank", \
	  "timeslots that all endpoints asked for and were not given yet") \
	X(ARB_SLOTS, COUNTER, "arbiter_slots", "", "rank,event", \
	  "timeslots granted, late, stale, skipped, overrun, or refunded") \
	X(ARB_RUNS, COUNTER, "arbiter_runs", "", "rank", \
	  "runs of the allocator") \
	X(ARB_CHANGES, COUNTER, "arbiter_changes", "", "rank,event", \
	  "takeovers, yields and stalls") \
	X(ARB_PACKETS, COUNTER, "arbiter_packets", "", "rank,reason", \
	  "requests received, by reason") \
	X(ARB_TIME, HISTOGRAM, "arbiter_run_seconds", "seconds", "rank", \
	  "time that a run of the allocator took")
/* clang-format on */

#define BL_METRIC_ENUM(sym, type, name, unit, labels, help) BL_METRIC_##sym,
/** enum metric - a row of the list. */
enum metric { BL_METRICS(BL_METRIC_ENUM) BL_METRIC_COUNT };
#undef BL_METRIC_ENUM

#endif
