# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Writes one page of section 3 from the comments of barline.h:
#
#	awk -v page=bl_send -v symbols="bl_send bl_flush struct:bl_msg BL_MORE" -v version=0.3.0 \
#		-v date="November 29, 2026" -v see="bl_recv bl_wait" -f man3.awk lib/barline.h
#
# A function or callback type has a comment that begins with its name and "-"; a struct or an enum,
# "struct:NAME" or "enum:NAME", likewise. A constant stands for the block of #defines that it is
# in, and the comment above. From "Returns" to the end of the paragraph a comment is about the
# return value. Lines that begin with a tab and an errno are an entry of a list of errors.

function escape(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/@[a-z_][a-z_0-9]*/, "\\fI&\\fP", s)
	gsub(/\\fI@/, "\\fI", s)
	gsub(/bl_[a-z_]+\(/, "\\fB&", s)
	gsub(/\(/, "\001", s)
	while (match(s, /\\fBbl_[a-z_]+\001/))
		s = substr(s, 1, RSTART + RLENGTH - 2) "\\fP(" substr(s, RSTART + RLENGTH)
	gsub(/\001/, "(", s)
	if (s ~ /^[.']/)
		s = "\\&" s
	return s
}

function summary(name,   s, n) {
	s = doc[name, 1]
	n = index(s, ". ")
	if (n)
		s = substr(s, 1, n - 1)
	sub(/\.$/, "", s)
	return s
}

# Prints the part of a comment that is, or is not, about the return value.
function text(name, returns,   i, s, inside, paragraph, n, k, printed) {
	if (!returns)
		doc[name, 1] = toupper(substr(doc[name, 1], 1, 1)) substr(doc[name, 1], 2)
	inside = 0
	paragraph = 1
	for (i = 1; i <= lines[name]; i++) {
		s = doc[name, i]
		if (s == "") {
			inside = 0
			paragraph = 1
			continue
		}
		n = 0
		if (s ~ /^Returns?( |$)/)
			n = 1
		else if (match(s, /[.] Returns /))
			n = RSTART + 2
		if (n && !inside) {
			if (n > 1 && !returns)
				put(substr(s, 1, n - 2))
			inside = 1
			paragraph = 1
			s = substr(s, n)
		}
		if (inside != returns)
			continue
		if (s ~ /^\t+-E/) {
			sub(/^\t+/, "", s)
			k = index(s, "  ")
			print ".TP"
			printed = 1
			if (k) {
				print ".B " escape(substr(s, 1, k - 1))
				s = substr(s, k)
				sub(/^ +/, "", s)
				print escape(s)
			} else {
				print ".B " escape(s)
			}
			paragraph = 0
			list = 1
		} else if (s ~ /^@[a-z_]+(, @[a-z_]+)*: /) {
			k = index(s, ": ")
			print ".TP"
			printed = 1
			print escape(substr(s, 1, k - 1))
			print escape(substr(s, k + 2))
			paragraph = 0
			list = 2
		} else if (list && s ~ /^\t/) {
			sub(/^\t+ */, "", s)
			print escape(s)
		} else {
			if ((paragraph || list) && printed)
				print ".PP"
			paragraph = list = 0
			printed = 1
			put(s)
		}
	}
	list = 0
}

function put(s) {
	print escape(s)
}

function verbatim(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/BL_API /, "", s)
	return s ~ /^[.']/ ? "\\&" s : s
}

function code(name,   i) {
	print ".nf"
	for (i = 1; i <= size[name]; i++)
		print verbatim(decl[name, i])
	print ".fi"
}

function has_returns(name,   i) {
	for (i = 1; i <= lines[name]; i++)
		if (doc[name, i] ~ /(^|[.] )Returns?( |$)/)
			return 1
	return 0
}

function is_function(name) {
	return decl[name, 1] ~ /^BL_API/
}

# ---- reading ----

function begin_doc(s) {
	ndoc = 0
	add_doc(s)
}

function add_doc(s) {
	sub(/ *\*\/ *$/, "", s)
	if (ndoc || s !~ /^[ \t]*$/)
		line[++ndoc] = s
}

# The comment that has just been read belongs to @name.
function own(name, first,   i, n) {
	n = 0
	for (i = 1; i <= ndoc; i++)
		doc[name, ++n] = i == 1 ? first : line[i]
	while (n && doc[name, n] == "")
		n--
	lines[name] = n
}

state == "comment" {
	s = $0
	last = s ~ /\*\//
	sub(/^ \* ?/, "", s)
	sub(/^ \*\/$/, "", s)
	if (!(last && s ~ /^ *\*?\/?$/))
		add_doc(s)
	if (last)
		state = "after"
	next
}

/^\/\*/ {
	s = $0
	last = s ~ /\*\//
	isdoc = s ~ /^\/\*\*/
	sub(/^\/\*\*? ?/, "", s)
	begin_doc(s)
	state = last ? "after" : "comment"
	next
}

state == "after" && isdoc && NF {
	first = line[1]
	sub(/^[^-]* - /, "", first)
	split(line[1], w, " ")
	name = w[1] == "struct" || w[1] == "enum" ? w[1] ":" w[2] : w[1]
	if (line[1] !~ / - /) {
		state = ""
		next
	}
	own(name, first)
	state = "decl"
}

state == "after" && !isdoc && /^#define BL_/ {
	block++
	own("block" block, line[1])
	state = "defines"
}

state == "defines" && /^#define / {
	in_block[$2] = block
	decl["block" block, ++size["block" block]] = $0
	next
}

state == "defines" { state = "" }
state == "after" && !NF { state = "" }

state == "decl" {
	decl[name, ++size[name]] = $0
	if ($0 ~ /^};/ || ($0 ~ /;$/ && $0 !~ /^\t/ && decl[name, 1] !~ /\{$/) ||
	    ($0 ~ /\);$/ && decl[name, 1] !~ /\{$/))
		state = ""
}

/^#define BL_/ && !($2 in in_block) {
	block++
	in_block[$2] = block
	decl["block" block, ++size["block" block]] = $0
}

# ---- writing ----

END {
	n = split(symbols, sym, " ")
	printf ".\\\" Generated from lib/barline.h by docs/man3/man3.awk.\n"
	printf ".TH %s 3 \"%s\" \"barline %s\"\n.SH NAME\n", toupper(page), date, version
	names = ""
	for (i = 1; i <= n; i++) {
		if (sym[i] ~ /^BL_/) {
			if (!(sym[i] in in_block))
				fail = sym[i]
			continue
		}
		if (!lines[sym[i]])
			fail = sym[i]
		if (sym[i] !~ /:/)
			names = names (names == "" ? "" : ", ") sym[i]
	}
	if (fail) {
		print "man3.awk: no comment in the header is about " fail > "/dev/stderr"
		exit 1
	}
	print names " \\- " escape(summary(sym[1]))
	print ".SH SYNOPSIS\n.nf\n.B #include <barline.h>"
	for (i = 1; i <= n; i++)
		if (sym[i] !~ /^BL_/ && is_function(sym[i])) {
			print ""
			for (k = 1; k <= size[sym[i]]; k++)
				print verbatim(decl[sym[i], k])
		}
	print ".fi\n.PP\nLink with \\fB\\-lbarline\\fP."
	print ".SH DESCRIPTION"
	for (i = 1; i <= n; i++)
		if (sym[i] !~ /^BL_/ && is_function(sym[i])) {
			print ".SS " sym[i] "()"
			text(sym[i], 0)
		}
	print ".SH RETURN VALUE"
	for (i = 1; i <= n; i++)
		if (sym[i] !~ /^BL_/ && is_function(sym[i])) {
			print ".SS " sym[i] "()"
			if (has_returns(sym[i]))
				text(sym[i], 1)
			else if (decl[sym[i], 1] ~ /^BL_API void/)
				print "None."
			else
				print "See the description."
		}
	for (i = 1; i <= n; i++) {
		if (sym[i] !~ /^BL_/ && is_function(sym[i]))
			continue
		if (!types++)
			print ".SH TYPES AND CONSTANTS"
		name = sym[i] ~ /^BL_/ ? "block" in_block[sym[i]] : sym[i]
		title = sym[i]
		sub(/:/, " ", title)
		print ".SS " title
		if (lines[name]) {
			text(name, 0)
			text(name, 1)
			print ".PP"
		}
		code(name)
	}
	print ".SH SEE ALSO"
	print ".BR libbarline (3)" (see == "" ? "" : ",")
	n = split(see, also, " ")
	for (i = 1; i <= n; i++)
		print ".BR " also[i] " (3)" (i < n ? "," : "")
}
