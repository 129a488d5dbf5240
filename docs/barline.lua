-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- Wireshark dissector for barline: UDP ports 61696 to 61951 and ethertype 0x88B5, FCP on UDP ports
-- 61693 to 61695, and TOP on UDP port 61692. docs/protocol.md is the reference.
--
--   wireshark -X lua_script:docs/barline.lua
--   tshark -X lua_script:docs/barline.lua -r FILE \
--       -Y 'barline.opcode == 1 && barline.ts_ahead < 0'
--
-- The last filter finds messages below the barrier of their own frame. Their FIFO is broken, or
-- their sender was excluded or has not joined yet.
--
-- To set another port range:                -o barline.ports:7000-7010
-- To accept zero UDP checksums over IPv6:   -o udp.ignore_ipv6_zero_checksum:TRUE

local VERSION = 1
local ETHERTYPE = 0x88B5
local PORTS = "61696-61951"
local HEADER_LEN = 24
local BEACON_LEN = 8
local LINK_AT = 16
local LINK_MAGIC = 0x626C6E6B
local LINK_VERSION = 1
local RSV_BODY_LEN = 22
local SETS_MAX = 8
local ITEMS_MAX = 64
local ITEM_REF = 0xFFFF
local MSG_MAX = 1048576
local NAK_WHOLE = 0xFF

local opcodes = {
	[1] = "data",
	[2] = "frag",
	[3] = "credit",
	[4] = "nak",
	[5] = "probe",
	[6] = "beacon",
	[7] = "rsv",
	[8] = "grt",
	[9] = "release",
	[10] = "prep",
	[11] = "ack",
	[12] = "open",
	[13] = "window",
	[14] = "recall",
	[15] = "recalled",
}

local FCP_PORT = 61695
local FCP_WATCHDOG_PORT = 61694
local FCP_FAULTS_PORT = 61693
local FCP_MAGIC = 0xFC50
local FCP_VERSION = 1
local FCP_HEADER_LEN = 32
local FCP_TOTALS_MAX = 64
local FCP_RUNS_MAX = 128
local FCP_COUNTS_MAX = 66
local FCP_LINKS_MAX = 256

local fcp_opcodes = {
	[1] = "req",
	[2] = "alloc",
	[3] = "ack",
	[4] = "reset",
	[5] = "call",
	[6] = "watchdog",
	[7] = "report",
	[8] = "faults",
	[9] = "heard",
}

local fcp_states = {
	[1] = "standby",
	[2] = "candidate",
	[3] = "primary",
}

local TOP_PORT = 61692
local TOP_VERSION = 1
local TOP_HEADER_LEN = 18
local TOP_CLASSES = 6

local top_opcodes = {
	[1] = "token",
	[2] = "sync",
	[3] = "fin",
	[4] = "loss",
	[5] = "stop",
}

local OP_DATA, OP_FRAG, OP_CREDIT, OP_NAK, OP_PROBE = 1, 2, 3, 4, 5
local OP_BEACON, OP_RSV, OP_GRT, OP_RELEASE = 6, 7, 8, 9
local OP_PREP, OP_ACK, OP_OPEN, OP_WINDOW, OP_RECALL, OP_RECALLED = 10, 11, 12, 13, 14, 15

local naks = {
	[1] = "late",
	[2] = "lost",
	[3] = "incomplete",
	[4] = "no_memory",
	[5] = "unreachable",
	[6] = "malformed",
	[7] = "failed",
	[8] = "unknown",
	[9] = "left",
}

local barline = Proto("barline", "barline ordered message bus")

local hops = { [0] = "host", [1] = "leaf, upwards", [2] = "leaf, downwards", [3] = "top" }

local f = {
	ts = ProtoField.uint64("barline.ts", "Message timestamp (ns)", base.DEC),
	barrier = ProtoField.uint64("barline.barrier", "Barrier (ns)", base.DEC),
	commit = ProtoField.uint64("barline.commit", "Commit barrier (ns)", base.DEC),
	ts_ahead = ProtoField.int64("barline.ts_ahead", "Timestamp ahead of barrier (ns)",
		base.DEC),
	psn = ProtoField.uint32("barline.psn", "Sequence number", base.DEC),
	version = ProtoField.uint8("barline.version", "Version", base.DEC, nil, 0xE0),
	opcode = ProtoField.uint8("barline.opcode", "Opcode", base.DEC, opcodes, 0x1F),
	flags = ProtoField.uint8("barline.flags", "Flags", base.HEX),
	hop = ProtoField.uint8("barline.hop", "Barriers of", base.DEC, hops, 0xc0),
	lanes = ProtoField.uint8("barline.lanes", "Lanes", base.DEC),
	lane = ProtoField.uint8("barline.lane", "Lane", base.DEC, nil, 0x07),

	tai = ProtoField.int16("barline.tai_offset", "TAI offset (s)", base.DEC),
	policy = ProtoField.uint8("barline.policy", "Admission policy, plus 1", base.DEC),
	port = ProtoField.uint8("barline.port", "Switch port", base.DEC),
	node_id = ProtoField.uint32("barline.node_id", "Node", base.DEC),
	relay = ProtoField.bytes("barline.relay", "Relay scratch (undefined on receipt)"),

	link_run = ProtoField.uint16("barline.link.run", "Count", base.HEX),
	link_racing = ProtoField.uint16("barline.link.racing", "Racing frames", base.DEC),
	link_frames = ProtoField.uint32("barline.link.frames", "Frames before", base.DEC),
	link_echo = ProtoField.int32("barline.link.echo", "Least delay of the receiver's (ns)",
		base.DEC),
	link_sent = ProtoField.uint64("barline.link.sent", "Sent at (ns)", base.DEC),
	link_version = ProtoField.uint8("barline.link.version", "Body version", base.DEC),
	link_bound = ProtoField.uint32("barline.link.bound", "Clock bound (ns)", base.DEC),
	link_overtaken = ProtoField.uint32("barline.link.overtaken", "Overtaken at the sender",
		base.DEC),
	link_tag = ProtoField.bytes("barline.link.tag", "Tag of the link body"),

	auth_epoch = ProtoField.uint16("barline.auth.epoch", "Epoch of keys", base.DEC, nil,
		0xfff0),
	auth_stream = ProtoField.uint16("barline.auth.stream", "Stream", base.DEC, nil, 0x000f),
	auth_stamp = ProtoField.uint64("barline.auth.stamp", "Stamp (ns)", base.DEC),
	auth_tag = ProtoField.bytes("barline.auth.tag", "Tag"),

	incarnation = ProtoField.uint16("barline.incarnation", "Incarnation", base.HEX),
	count = ProtoField.uint16("barline.count", "Items", base.DEC),
	item = ProtoField.none("barline.item", "Item"),
	item_len = ProtoField.uint16("barline.item.len", "Length", base.DEC),
	item_data = ProtoField.bytes("barline.item.data", "Data"),
	msg_id = ProtoField.uint32("barline.msg_id", "Message id", base.DEC),
	offset = ProtoField.uint32("barline.offset", "Offset", base.DEC),
	length = ProtoField.uint32("barline.length", "Message length", base.DEC),
	part = ProtoField.bytes("barline.part", "Part"),
	cookie = ProtoField.uint64("barline.cookie", "Cookie (challenge, or its answer)",
		base.HEX),
	padding = ProtoField.bytes("barline.padding", "Padding"),

	slot = ProtoField.uint32("barline.slot", "Slot in the sender's window", base.DEC),
	life = ProtoField.uint16("barline.life", "Incarnation of the receiver", base.HEX),
	copy = ProtoField.uint16("barline.copy", "Sent before, times"),
	recall_ts = ProtoField.uint64("barline.recall.ts", "Timestamp of the scattering (ns)",
		base.DEC),

	window = ProtoField.uint16("barline.window", "Window (frames)", base.DEC),
	first = ProtoField.uint32("barline.first", "First frame", base.DEC),
	frames = ProtoField.uint32("barline.frames", "Frames", base.DEC),
	why = ProtoField.uint8("barline.why", "Reason", base.DEC, naks),
	nak_item = ProtoField.uint8("barline.nak_item", "Item (255: all)", base.DEC),

	rsv_mac = ProtoField.ether("barline.rsv.mac", "Other end of the burst"),
	rsv_bytes = ProtoField.uint32("barline.rsv.bytes", "Bytes of frame", base.DEC),
	in_wait = ProtoField.uint32("barline.rsv.in_wait", "Wait at the input (ns)", base.DEC),
	out_wait = ProtoField.uint32("barline.rsv.out_wait", "Wait at the output (ns)", base.DEC),
	rsv_flags = ProtoField.uint8("barline.rsv.flags", "Reservation flags", base.HEX),
	rsv_early = ProtoField.bool("barline.rsv.early", "Burst follows at once", 8, nil, 0x01),
	grt_passed = ProtoField.bool("barline.rsv.passed", "Unsolicited burst is let through",
		8, nil, 0x02),
	grt_refused = ProtoField.bool("barline.rsv.refused", "Refused", 8, nil, 0x04),
	grt_copy = ProtoField.bool("barline.rsv.copy", "Copy for the receiver", 8, nil, 0x08),
	grt_off = ProtoField.bool("barline.rsv.off", "The switch promises nothing", 8, nil, 0x10),
	rsv_cookie = ProtoField.uint16("barline.rsv.cookie", "Cookie", base.HEX),
}
barline.fields = f

local e = {
	short = ProtoExpert.new("barline.short", "frame ends before its header or body does",
		expert.group.MALFORMED, expert.severity.ERROR),
	version = ProtoExpert.new("barline.bad_version", "unknown version",
		expert.group.PROTOCOL, expert.severity.ERROR),
	opcode = ProtoExpert.new("barline.bad_opcode",
		"opcode unknown, or in the wrong kind of frame",
		expert.group.PROTOCOL, expert.severity.ERROR),
	flags = ProtoExpert.new("barline.bad_flags", "lane not below the lane count",
		expert.group.PROTOCOL, expert.severity.ERROR),
	below = ProtoExpert.new("barline.below_barrier",
		"message timestamp below the frame's own barrier",
		expert.group.SEQUENCE, expert.severity.ERROR),
	body = ProtoExpert.new("barline.malformed", "body is not valid",
		expert.group.MALFORMED, expert.severity.ERROR),
	nak = ProtoExpert.new("barline.nakked", "messages were not delivered",
		expert.group.SEQUENCE, expert.severity.WARN),
}
barline.experts = e

barline.prefs.ports = Pref.range("UDP ports", PORTS, "Port range of ordered traffic", 65535)

-- Returns the signed difference a - b of two 48-bit serial numbers. The numbers of Lua 5.2 are
-- doubles, which are exact up to 2^53.
local function diff48(a, b)
	local d = (a - b) % 0x1000000000000

	return d < 0x800000000000 and d or d - 0x1000000000000
end

-- Returns the 48-bit number at the start of buf.
local function num48(buf)
	return buf(0, 2):uint() * 0x100000000 + buf(2, 4):uint()
end

-- The functions dissect_* add a body to the tree and return text for the Info column.

-- marked: a link frame whose header begins with a mark, which says that it is authenticated
local marked = false

local function dissect_link(buf, tree)
	if buf(0, 4):uint() ~= LINK_MAGIC or buf(22, 1):uint() ~= LINK_VERSION then
		return
	end
	tree:add(f.link_run, buf(4, 2))
	tree:add(f.link_racing, buf(6, 2))
	tree:add(f.link_frames, buf(8, 4))
	tree:add(f.link_echo, buf(12, 4))
	tree:add(f.link_sent, buf(16, 6))
	tree:add(f.link_version, buf(22, 1))
	tree:add(f.link_bound, buf(24, 4))
	tree:add(f.link_overtaken, buf(28, 4))
	tree:add(f.link_tag, buf(32, 8))
end

local function dissect_beacon(buf, tree)
	if buf:len() < BEACON_LEN then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	tree:add(f.tai, buf(0, 2))
	tree:add(f.policy, buf(2, 1))
	tree:add(f.port, buf(3, 1))
	tree:add(f.node_id, buf(4, 4))
	if buf:len() < BEACON_LEN + SETS_MAX * 12 then
		tree:add_proto_expert_info(e.short)
	else
		if marked then
			tree:add(f.auth_stamp, buf(BEACON_LEN, 8))
			tree:add(f.auth_tag, buf(BEACON_LEN + 8, 8))
		else
			tree:add(f.relay, buf(BEACON_LEN, SETS_MAX * 12))
		end
		dissect_link(buf(BEACON_LEN + LINK_AT, 40), tree)
	end
	return string.format(" node=%u port=%u", buf(4, 4):uint(), buf(3, 1):uint())
end

-- Adds the items of a DATA body from offset at on. Returns the sum of their lengths in bytes.
local function dissect_items(buf, tree, at, count)
	local bytes = 0

	for i = 0, count - 1 do
		if buf:len() - at < 2 then
			tree:add_proto_expert_info(e.body, "item " .. i .. " is past the end")
			return bytes
		end
		local n = buf(at, 2):uint()
		local ref = n == ITEM_REF
		local len = ref and 8 or n

		if buf:len() - at - 2 < len then
			tree:add_proto_expert_info(e.body, "item " .. i .. " is past the end")
			return bytes
		end
		local sub = tree:add(f.item, buf(at, 2 + len))

		sub:add(f.item_len, buf(at, 2))
		if ref then
			local total = buf(at + 6, 4):uint()

			sub:set_text(string.format("Item %d: reference to message %u of %u bytes",
				i, buf(at + 2, 4):uint(), total))
			sub:add(f.msg_id, buf(at + 2, 4))
			sub:add(f.length, buf(at + 6, 4))
			if total == 0 or total > MSG_MAX then
				sub:add_proto_expert_info(e.body,
					"the length of the referenced message is not allowed")
			end
			bytes = bytes + total
		else
			sub:set_text(string.format("Item %d: %u bytes", i, n))
			if n > 0 then
				sub:add(f.item_data, buf(at + 2, n))
			end
			bytes = bytes + n
		end
		at = at + 2 + len
	end
	if at < buf:len() then
		tree:add(f.padding, buf(at))
	end
	return bytes
end

local function dissect_data(buf, tree)
	if buf:len() < 4 then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	local count = buf(2, 2):uint()

	tree:add(f.incarnation, buf(0, 2))
	tree:add(f.count, buf(2, 2))
	if count == 0 or count > ITEMS_MAX then
		tree:add_proto_expert_info(e.body, "a frame has 1 to " .. ITEMS_MAX .. " items")
		return ""
	end
	return string.format(" items=%u bytes=%u", count, dissect_items(buf, tree, 4, count))
end

local function dissect_frag(buf, tree)
	if buf:len() <= 16 then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	local offset, total, n = buf(8, 4):uint(), buf(12, 4):uint(), buf:len() - 16

	tree:add(f.incarnation, buf(0, 2))
	tree:add(f.msg_id, buf(4, 4))
	tree:add(f.offset, buf(8, 4))
	tree:add(f.length, buf(12, 4))
	tree:add(f.part, buf(16))
	if total == 0 or total > MSG_MAX or offset + n > total then
		tree:add_proto_expert_info(e.body, "the part extends past the end of the message")
	end
	return string.format(" msg=%u %u+%u of %u", buf(4, 4):uint(), offset, n, total)
end

-- A cookie may follow a body of this size.
local function dissect_cookie(buf, tree, size)
	if buf:len() >= size + 8 then
		tree:add(f.cookie, buf(size, 8))
	end
end

local function dissect_credit(buf, tree, size)
	if buf:len() < 8 then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	tree:add(f.first, buf(0, 4)):set_text(string.format("Free before: %u", buf(0, 4):uint()))
	tree:add(f.incarnation, buf(4, 2))
	tree:add(f.window, buf(6, 2))
	if buf(6, 2):uint() == 0 then
		tree:add_proto_expert_info(e.body, "a window of 0")
	end
	dissect_cookie(buf, tree, size or 8)
	return string.format(" before=%u window=%u", buf(0, 4):uint(), buf(6, 2):uint())
end

local function dissect_nak(buf, tree)
	if buf:len() < 12 then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	local why = buf(10, 1):uint()

	tree:add(f.first, buf(0, 4))
	tree:add(f.frames, buf(4, 4))
	tree:add(f.incarnation, buf(8, 2))
	tree:add(f.why, buf(10, 1))
	tree:add(f.nak_item, buf(11, 1))
	if buf(4, 4):uint() == 0 or why == 0 then
		tree:add_proto_expert_info(e.body)
	else
		tree:add_proto_expert_info(e.nak)
	end
	return string.format(" first=%u frames=%u %s%s",
		buf(0, 4):uint(), buf(4, 4):uint(), naks[why] or "unknown",
		buf(11, 1):uint() ~= NAK_WHOLE and " item=" .. buf(11, 1):uint() or "")
end

local function dissect_probe(buf, tree)
	if buf:len() < 4 then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	tree:add(f.incarnation, buf(0, 2))
	dissect_cookie(buf, tree, 4)
	return ""
end

-- Dissects the body that RSV, GRT and RELEASE share.
local function dissect_rsv(buf, tree)
	if buf:len() < RSV_BODY_LEN then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	local flags = buf(18, 1):uint()
	local sub

	tree:add(f.rsv_mac, buf(0, 6))
	tree:add(f.rsv_bytes, buf(6, 4))
	tree:add(f.in_wait, buf(10, 4))
	tree:add(f.out_wait, buf(14, 4))
	sub = tree:add(f.rsv_flags, buf(18, 1))
	sub:add(f.rsv_early, buf(18, 1))
	sub:add(f.grt_passed, buf(18, 1))
	sub:add(f.grt_refused, buf(18, 1))
	sub:add(f.grt_copy, buf(18, 1))
	sub:add(f.grt_off, buf(18, 1))
	tree:add(f.rsv_cookie, buf(20, 2))
	if buf(6, 4):uint() == 0 or flags > 31 then
		tree:add_proto_expert_info(e.body)
	end
	return string.format(" %s bytes=%u in=%u out=%u%s%s%s%s%s",
		tostring(buf(0, 6):ether()), buf(6, 4):uint(), buf(10, 4):uint(), buf(14, 4):uint(),
		flags % 2 >= 1 and " early" or "", flags % 4 >= 2 and " passed" or "",
		flags % 8 >= 4 and " refused" or "", flags % 16 >= 8 and " copy" or "",
		flags % 32 >= 16 and " off" or "")
end

-- Dissects the whole body of an ACK, which is also the first part of a PREP's body.
local function dissect_ack(buf, tree)
	if buf:len() < 12 then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	tree:add(f.incarnation, buf(0, 2))
	tree:add(f.count, buf(2, 2))
	tree:add(f.slot, buf(4, 4))
	tree:add(f.life, buf(8, 2))
	tree:add(f.copy, buf(10, 2))
	return string.format(buf(10, 2):uint() > 0 and " slot=%u copy=%u" or " slot=%u",
		buf(4, 4):uint(), buf(10, 2):uint())
end

local function dissect_prep(buf, tree)
	local info = dissect_ack(buf, tree)

	if buf:len() < 12 then
		return info
	end
	if buf(2, 2):uint() > 0 then
		return info .. string.format(" items=%u", buf(2, 2):uint())
	end
	if buf:len() < 25 then
		tree:add_proto_expert_info(e.short)
		return info
	end
	tree:add(f.msg_id, buf(12, 4))
	tree:add(f.offset, buf(16, 4))
	tree:add(f.length, buf(20, 4))
	if buf(16, 4):uint() >= buf(20, 4):uint() or buf(20, 4):uint() > MSG_MAX then
		tree:add_proto_expert_info(e.body)
	end
	return info .. string.format(" msg=%u at %u of %u",
		buf(12, 4):uint(), buf(16, 4):uint(), buf(20, 4):uint())
end

local function dissect_window(buf, tree)
	if buf:len() < 12 then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	tree:add(f.life, buf(8, 2))
	return dissect_credit(buf, tree, 12)
end

local function dissect_recall(buf, tree)
	if buf:len() < 16 then
		tree:add_proto_expert_info(e.short)
		return ""
	end
	tree:add(f.incarnation, buf(0, 2))
	tree:add(f.life, buf(2, 2))
	tree:add(f.frames, buf(4, 4))
	tree:add(f.recall_ts, buf(8, 6))
	if buf(4, 4):uint() == 0 then
		tree:add_proto_expert_info(e.body)
	end
	return string.format(" frames=%u", buf(4, 4):uint())
end

-- The body dissectors by opcode.
local bodies = {
	[OP_DATA] = dissect_data,
	[OP_FRAG] = dissect_frag,
	[OP_CREDIT] = dissect_credit,
	[OP_NAK] = dissect_nak,
	[OP_PROBE] = dissect_probe,
	[OP_BEACON] = dissect_beacon,
	[OP_RSV] = dissect_rsv,
	[OP_GRT] = dissect_rsv,
	[OP_RELEASE] = dissect_rsv,
	[OP_PREP] = dissect_prep,
	[OP_ACK] = dissect_ack,
	[OP_OPEN] = dissect_probe,
	[OP_WINDOW] = dissect_window,
	[OP_RECALL] = dissect_recall,
	[OP_RECALLED] = dissect_recall,
}

-- Dissects the header and the body. link: the frame came by ethertype, not in UDP.
local function dissect(buf, pinfo, root, link)
	pinfo.cols.protocol = "BARLINE"
	local tree = root:add(barline, buf())

	if buf:len() < HEADER_LEN then
		tree:add_proto_expert_info(e.short)
		return buf:len()
	end
	local ts, b = num48(buf(0, 6)), num48(buf(6, 6))
	local op, flags = buf(22, 1):uint() % 32, buf(23, 1):uint()
	local version = math.floor(buf(22, 1):uint() / 32)
	local lanes, lane = math.floor(flags / 8) % 8 + 1, flags % 8

	marked = link and buf(0, 2):uint() ~= 0
	if marked then
		tree:add(f.auth_epoch, buf(0, 2))
		tree:add(f.auth_stream, buf(0, 2))
	else
		tree:add(f.ts, buf(0, 6))
	end
	if marked and op ~= OP_BEACON then
		tree:add(f.auth_stamp, buf(2, 8))
		tree:add(f.auth_tag, buf(10, 8))
	else
		tree:add(f.barrier, buf(6, 6))
		tree:add(f.commit, buf(12, 6))
	end
	tree:add(f.psn, buf(18, 4))
	tree:add(f.version, buf(22, 1))
	tree:add(f.opcode, buf(22, 1))
	local sub = tree:add(f.flags, buf(23, 1))

	sub:add(f.hop, buf(23, 1))
	sub:add(f.lanes, buf(23, 1), lanes)
	sub:add(f.lane, buf(23, 1))

	local info = string.format("%s psn=%u B=%.0f",
		opcodes[op] or "opcode " .. op, buf(18, 4):uint(), b)

	if version ~= VERSION then
		tree:add_proto_expert_info(e.version)
		pinfo.cols.info = "version " .. version
		return buf:len()
	end
	if not bodies[op] or (op >= OP_BEACON and op <= OP_RELEASE) ~= link then
		tree:add_proto_expert_info(e.opcode)
		pinfo.cols.info = info
		return buf:len()
	end
	if lane >= lanes then
		tree:add_proto_expert_info(e.flags)
	end
	if lanes > 1 then
		info = info .. string.format(" lane=%u/%u", lane, lanes)
	end
	if op == OP_DATA then
		local ahead = diff48(ts, b)

		tree:add(f.ts_ahead, buf(0, 12), Int64.new(ahead)):set_generated()
		if ahead < 0 then
			tree:add_proto_expert_info(e.below)
		end
		info = info .. string.format(" ts=B%+.0f", ahead)
	end
	tree:append_text(", " .. (opcodes[op] or "?"))
	pinfo.cols.info = info .. bodies[op](buf(HEADER_LEN):tvb(), tree)
	return buf:len()
end

function barline.dissector(buf, pinfo, root)
	return dissect(buf, pinfo, root, false)
end

local link = Proto("barline_link", "barline link-local frame")

function link.dissector(buf, pinfo, root)
	return dissect(buf, pinfo, root, true)
end

-- The UDP port range under which the dissector is registered at present.
local used

-- Registers the dissector for the port range of the preferences.
local function register()
	local udp = DissectorTable.get("udp.port")

	if used then
		udp:remove(used, barline)
	end
	used = barline.prefs.ports
	udp:add(used, barline)
end

barline.prefs_changed = register
DissectorTable.get("ethertype"):add(ETHERTYPE, link)
DissectorTable.get("udp.port"):add(PORTS, barline)
used = PORTS

-- ---- FCP, the Fastpass control protocol ----

local fcp = Proto("barline_fcp", "barline Fastpass control protocol")

local c = {
	magic = ProtoField.uint16("barline_fcp.magic", "Magic", base.HEX),
	version = ProtoField.uint8("barline_fcp.version", "Version", base.DEC, nil, 0xF0),
	opcode = ProtoField.uint8("barline_fcp.opcode", "Opcode", base.DEC, fcp_opcodes, 0x0F),
	flags = ProtoField.uint8("barline_fcp.flags", "Flags", base.HEX),
	challenge = ProtoField.uint32("barline_fcp.challenge", "Challenge", base.HEX),
	seq = ProtoField.uint32("barline_fcp.seq", "Sequence number", base.DEC),
	ack = ProtoField.uint32("barline_fcp.ack", "Acknowledges", base.DEC),
	ack_bits = ProtoField.uint64("barline_fcp.ack_bits", "And before it", base.HEX),
	check = ProtoField.uint64("barline_fcp.check", "Check", base.HEX),
	total = ProtoField.none("barline_fcp.total", "Total"),
	dst = ProtoField.uint16("barline_fcp.dst", "Destination", base.DEC),
	slots = ProtoField.uint32("barline_fcp.slots", "Slots in this session", base.DEC),
	base = ProtoField.uint64("barline_fcp.base", "First timeslot", base.DEC),
	run = ProtoField.none("barline_fcp.run", "Run"),
	offset = ProtoField.uint16("barline_fcp.offset", "Offset", base.DEC),
	path = ProtoField.uint8("barline_fcp.path", "Path (255: any)", base.DEC),
	count = ProtoField.uint8("barline_fcp.count", "Slots", base.DEC),
	stride = ProtoField.uint8("barline_fcp.stride", "Stride", base.DEC),
	nonce = ProtoField.uint64("barline_fcp.nonce", "Nonce", base.HEX),
	term = ProtoField.uint32("barline_fcp.term", "Term", base.DEC),
	table = ProtoField.uint32("barline_fcp.table", "List of endpoints", base.HEX),
	slot_ns = ProtoField.uint32("barline_fcp.slot_ns", "Slot length (ns)", base.DEC),
	slot_bytes = ProtoField.uint32("barline_fcp.slot_bytes", "Slot size (bytes)", base.DEC),
	index = ProtoField.uint16("barline_fcp.index", "Index of the host", base.DEC),
	endpoints = ProtoField.uint16("barline_fcp.endpoints", "Endpoints", base.DEC),
	rank = ProtoField.uint16("barline_fcp.rank", "Rank", base.DEC),
	state = ProtoField.uint8("barline_fcp.state", "State", base.DEC, fcp_states),
	boot = ProtoField.uint64("barline_fcp.boot", "Counts since", base.DEC),
	at = ProtoField.uint64("barline_fcp.at", "Read at", base.DEC),
	first = ProtoField.uint16("barline_fcp.first", "From peer", base.DEC),
	last = ProtoField.uint16("barline_fcp.last", "To peer", base.DEC),
	frames = ProtoField.none("barline_fcp.frames", "Frames"),
	sent = ProtoField.uint64("barline_fcp.sent", "Sent", base.DEC),
	came = ProtoField.uint64("barline_fcp.came", "Arrived", base.DEC),
	list = ProtoField.uint32("barline_fcp.list", "Version of the list", base.DEC),
	link = ProtoField.none("barline_fcp.link", "Link"),
}
fcp.fields = c

local ce = {
	short = ProtoExpert.new("barline_fcp.short", "packet ends before its header or body does",
		expert.group.MALFORMED, expert.severity.ERROR),
	head = ProtoExpert.new("barline_fcp.bad_header",
		"unknown version or opcode, or a flag is set",
		expert.group.PROTOCOL, expert.severity.ERROR),
	body = ProtoExpert.new("barline_fcp.malformed", "body is not valid",
		expert.group.MALFORMED, expert.severity.ERROR),
	reset = ProtoExpert.new("barline_fcp.reset", "a new session begins",
		expert.group.SEQUENCE, expert.severity.NOTE),
}
fcp.experts = ce

-- Adds the totals and runs at the start of buf. base: the timeslot from which the runs count.
-- Returns the number of slots in the runs.
local function fcp_lists(buf, tree, ntotals, nruns, base)
	local at, sum = 0, 0
	local dsts = {}

	if ntotals > FCP_TOTALS_MAX or nruns > FCP_RUNS_MAX or
	   buf:len() ~= 6 * (ntotals + nruns) then
		tree:add_proto_expert_info(ce.body, "lengths do not match")
		return 0
	end
	for i = 0, ntotals - 1 do
		local sub = tree:add(c.total, buf(at, 6))

		dsts[i] = buf(at, 2):uint()
		sub:set_text(string.format("Total: %u for %u", buf(at + 2, 4):uint(), dsts[i]))
		sub:add(c.dst, buf(at, 2))
		sub:add(c.slots, buf(at + 2, 4))
		at = at + 6
	end
	for _ = 1, nruns do
		local dst, n, stride =
			dsts[buf(at + 2, 1):uint()], buf(at + 4, 1):uint(), buf(at + 5, 1):uint()
		local sub = tree:add(c.run, buf(at, 6))

		sub:set_text(string.format(
			"Run: %u slots from %.0f, stride %u, to %s, path %u",
			n, base + buf(at, 2):uint(), stride, dst or "?", buf(at + 3, 1):uint()))
		sub:add(c.offset, buf(at, 2))
		sub:add(c.path, buf(at + 3, 1))
		sub:add(c.count, buf(at + 4, 1))
		sub:add(c.stride, buf(at + 5, 1))
		if not dst or n == 0 or (n > 1 and stride == 0) then
			tree:add_proto_expert_info(ce.body,
				"a run without slots, or to an unknown destination")
		end
		sum = sum + n
		at = at + 6
	end
	return sum
end

-- The body dissectors by opcode. They return text for the Info column.
local fcp_bodies = {
	[1] = function(buf, tree)
		if buf:len() < 4 then
			tree:add_proto_expert_info(ce.short)
			return ""
		end
		local n = buf(0, 2):uint()

		fcp_lists(buf(4, buf:len() - 4), tree, n, 0, 0)
		return string.format(" totals=%u", n)
	end,
	[2] = function(buf, tree)
		if buf:len() < 8 then
			tree:add_proto_expert_info(ce.short)
			return ""
		end
		local base, nt, nr = num48(buf(0, 6)), buf(6, 1):uint(), buf(7, 1):uint()

		tree:add(c.base, buf(0, 6))
		return string.format(" base=%.0f totals=%u slots=%u",
			base, nt, fcp_lists(buf(8, buf:len() - 8), tree, nt, nr, base))
	end,
	[3] = function() return "" end,
	[4] = function(buf, tree)
		if buf:len() < 32 then
			tree:add_proto_expert_info(ce.short)
			return ""
		end
		tree:add(c.nonce, buf(0, 8))
		tree:add(c.term, buf(8, 4))
		tree:add(c.table, buf(12, 4))
		tree:add(c.slot_ns, buf(16, 4))
		tree:add(c.slot_bytes, buf(20, 4))
		tree:add(c.index, buf(24, 2))
		tree:add(c.endpoints, buf(26, 2))
		tree:add_proto_expert_info(ce.reset)
		return string.format(" term=%u index=%u", buf(8, 4):uint(), buf(24, 2):uint())
	end,
	[5] = function() return "" end,
	[6] = function(buf, tree)
		if buf:len() < 16 then
			tree:add_proto_expert_info(ce.short)
			return ""
		end
		tree:add(c.term, buf(0, 4))
		tree:add(c.rank, buf(4, 2))
		tree:add(c.state, buf(6, 1))
		tree:add(c.table, buf(8, 4))
		return string.format(" term=%u rank=%u %s",
			buf(0, 4):uint(), buf(4, 2):uint(), fcp_states[buf(6, 1):uint()] or "?")
	end,
	[7] = function(buf, tree)
		if buf:len() < 32 then
			tree:add_proto_expert_info(ce.short)
			return ""
		end
		local n = buf(26, 2):uint()

		tree:add(c.boot, buf(0, 8))
		tree:add(c.at, buf(8, 8))
		tree:add(c.table, buf(16, 4))
		tree:add(c.index, buf(20, 2))
		tree:add(c.first, buf(22, 2))
		tree:add(c.last, buf(24, 2))
		if n > FCP_COUNTS_MAX or buf:len() ~= 32 + 16 * n then
			tree:add_proto_expert_info(ce.body)
			return ""
		end
		for i = 0, n - 1 do
			local b = buf(32 + 16 * i, 16)
			local item = tree:add(c.frames, b)

			item:append_text(string.format(
				": peer %u path %u: %.0f sent, %.0f arrived",
				b(0, 2):uint(), b(2, 1):uint(), num48(b(4, 6)), num48(b(10, 6))))
			item:add(c.dst, b(0, 2))
			item:add(c.path, b(2, 1))
			item:add(c.sent, b(4, 6))
			item:add(c.came, b(10, 6))
		end
		return string.format(" index=%u peers=%u-%u counts=%u",
			buf(20, 2):uint(), buf(22, 2):uint(), buf(24, 2):uint(), n)
	end,
	[8] = function(buf, tree)
		if buf:len() < 24 then
			tree:add_proto_expert_info(ce.short)
			return ""
		end
		local n = buf(16, 2):uint()

		tree:add(c.boot, buf(0, 8))
		tree:add(c.list, buf(8, 4))
		tree:add(c.table, buf(12, 4))
		if n > FCP_LINKS_MAX or buf:len() ~= 24 + 4 * n then
			tree:add_proto_expert_info(ce.body)
			return ""
		end
		for i = 0, n - 1 do
			local b = buf(24 + 4 * i, 4)

			tree:add(c.link, b):append_text(string.format(
				b(3, 1):uint() == 0 and ": rack %u -> path %u" or
					": rack %u <- path %u",
				b(0, 2):uint(), b(2, 1):uint()))
		end
		return string.format(" version=%u links=%u", buf(8, 4):uint(), n)
	end,
	[9] = function(buf, tree)
		if buf:len() < 16 then
			tree:add_proto_expert_info(ce.short)
			return ""
		end
		tree:add(c.boot, buf(0, 8))
		tree:add(c.list, buf(8, 4))
		tree:add(c.table, buf(12, 4))
		return string.format(" version=%u", buf(8, 4):uint())
	end,
}

function fcp.dissector(buf, pinfo, root)
	if buf:len() < 4 or buf(0, 2):uint() ~= FCP_MAGIC then
		return 0
	end
	pinfo.cols.protocol = "FCP"
	local tree = root:add(fcp, buf())
	local op = buf(2, 1):uint() % 16

	tree:add(c.magic, buf(0, 2))
	tree:add(c.version, buf(2, 1))
	tree:add(c.opcode, buf(2, 1))
	tree:add(c.flags, buf(3, 1))
	if buf:len() < FCP_HEADER_LEN then
		tree:add_proto_expert_info(ce.short)
		return buf:len()
	end
	tree:add(c.challenge, buf(4, 4))
	tree:add(c.seq, buf(8, 4))
	tree:add(c.ack, buf(12, 4))
	tree:add(c.ack_bits, buf(16, 8))
	tree:add(c.check, buf(24, 8))
	if math.floor(buf(2, 1):uint() / 16) ~= FCP_VERSION or not fcp_bodies[op] or
	   buf(3, 1):uint() ~= 0 then
		tree:add_proto_expert_info(ce.head)
		return buf:len()
	end
	pinfo.cols.info = string.format("%s seq=%u ack=%u",
		fcp_opcodes[op], buf(8, 4):uint(), buf(12, 4):uint()) ..
		fcp_bodies[op](buf(FCP_HEADER_LEN, buf:len() - FCP_HEADER_LEN), tree)
	return buf:len()
end

DissectorTable.get("udp.port"):add(FCP_PORT, fcp)
DissectorTable.get("udp.port"):add(FCP_WATCHDOG_PORT, fcp)
DissectorTable.get("udp.port"):add(FCP_FAULTS_PORT, fcp)

-- ---- TOP ----

local top = Proto("barline_top", "barline TOP tokens")

local tf = {
	version = ProtoField.uint8("barline_top.version", "Version", base.DEC, nil, 0xF0),
	opcode = ProtoField.uint8("barline_top.opcode", "Opcode", base.DEC, top_opcodes, 0x0F),
	cls = ProtoField.uint8("barline_top.class", "Class", base.DEC),
	flow = ProtoField.uint16("barline_top.flow", "Flow", base.DEC),
	seq = ProtoField.uint32("barline_top.seq", "Sequence number", base.DEC),
	ts = ProtoField.uint64("barline_top.ts", "Sent at (ns)", base.DEC),
	tag = ProtoField.uint32("barline_top.tag", "Tag", base.HEX),
	bytes = ProtoField.uint64("barline_top.bytes", "Bytes of the flow (0: not known)",
		base.DEC),
	frames = ProtoField.uint32("barline_top.frames", "Frames that wait", base.DEC),
	deadline = ProtoField.uint32("barline_top.deadline", "Deadline (us, 0: none)", base.DEC),
	coflow = ProtoField.uint32("barline_top.coflow", "Coflow (0: none)", base.DEC),
	unscheduled = ProtoField.uint16("barline_top.unscheduled", "Unscheduled frames that follow",
		base.DEC),
	data = ProtoField.uint32("barline_top.data", "Last data frame (0: no numbers)", base.DEC),
	missing = ProtoField.uint64("barline_top.missing", "Missing (bit k: data - k)", base.HEX),
	rtt = ProtoField.uint32("barline_top.rtt", "Token to data (us)", base.DEC),
}
top.fields = tf

local te = {
	short = ProtoExpert.new("barline_top.short", "frame ends before its header or body does",
		expert.group.MALFORMED, expert.severity.ERROR),
	head = ProtoExpert.new("barline_top.bad_header",
		"unknown version or opcode, or a class that does not exist",
		expert.group.PROTOCOL, expert.severity.ERROR),
	loss = ProtoExpert.new("barline_top.loss", "data did not arrive",
		expert.group.SEQUENCE, expert.severity.WARN),
}
top.experts = te

-- The bodies by opcode: the minimum length in bytes, and the body dissector.
local top_bodies = {
	[1] = { 0, function(buf, tree) return "" end },
	[2] = { 28, function(buf, tree)
		tree:add(tf.bytes, buf(0, 8))
		tree:add(tf.frames, buf(8, 4))
		tree:add(tf.deadline, buf(12, 4))
		tree:add(tf.coflow, buf(16, 4))
		tree:add(tf.unscheduled, buf(20, 2))
		tree:add(tf.data, buf(24, 4))
		return string.format(" bytes=%.0f frames=%u", num48(buf(2, 6)), buf(8, 4):uint())
	end },
	[3] = { 12, function(buf, tree)
		tree:add(tf.bytes, buf(0, 8))
		tree:add(tf.data, buf(8, 4))
		return string.format(" bytes=%.0f", num48(buf(2, 6)))
	end },
	[4] = { 16, function(buf, tree)
		tree:add(tf.data, buf(0, 4))
		tree:add(tf.missing, buf(4, 8))
		tree:add(tf.rtt, buf(12, 4))
		if buf(4, 4):uint() ~= 0 or buf(8, 4):uint() ~= 0 then
			tree:add_proto_expert_info(te.loss)
		end
		return string.format(" data=%u missing=0x%08x%08x",
			buf(0, 4):uint(), buf(4, 4):uint(), buf(8, 4):uint())
	end },
	-- A STOP that was made from a token has no body.
	[5] = { 0, function(buf, tree)
		if buf:len() < 4 then
			return ""
		end
		tree:add(tf.data, buf(0, 4))
		return string.format(" data=%u", buf(0, 4):uint())
	end },
}

function top.dissector(buf, pinfo, root)
	pinfo.cols.protocol = "TOP"
	local tree = root:add(top, buf())

	if buf:len() < TOP_HEADER_LEN then
		tree:add_proto_expert_info(te.short)
		return buf:len()
	end
	local op = buf(0, 1):uint() % 16

	tree:add(tf.version, buf(0, 1))
	tree:add(tf.opcode, buf(0, 1))
	tree:add(tf.cls, buf(1, 1))
	tree:add(tf.flow, buf(2, 2))
	tree:add(tf.seq, buf(4, 4))
	tree:add(tf.ts, buf(8, 6), UInt64.new(buf(10, 4):uint(), buf(8, 2):uint()))
	tree:add(tf.tag, buf(14, 4))
	if math.floor(buf(0, 1):uint() / 16) ~= TOP_VERSION or not top_bodies[op] or
	   (op == 1 and buf(1, 1):uint() >= TOP_CLASSES) then
		tree:add_proto_expert_info(te.head)
		return buf:len()
	end
	local text = string.format("%s class=%u flow=%u seq=%u",
		top_opcodes[op], buf(1, 1):uint(), buf(2, 2):uint(), buf(4, 4):uint())
	if buf:len() < TOP_HEADER_LEN + top_bodies[op][1] then
		tree:add_proto_expert_info(te.short)
	elseif buf:len() > TOP_HEADER_LEN then
		text = text ..
			top_bodies[op][2](buf(TOP_HEADER_LEN, buf:len() - TOP_HEADER_LEN), tree)
	end
	pinfo.cols.info = text
	return buf:len()
end

DissectorTable.get("udp.port"):add(TOP_PORT, top)
