# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# memcached.gp - latency of a GET beside bulk data. Each transport of the bulk data is one panel;
# each policy and size of the value is one line. The script reads DIR/memcached.csv and writes
# DIR/memcached.png. The vertical axis counts nines: 1 is p90, 2 is p99, 3 is p99.9.
#
#   gnuplot -e "dir='DIR'; mbit=250; transports='tcp udp'; policies='none pl2'" memcached.gp
set terminal pngcairo size 1000,400 * words(transports) font "sans,11"
set output dir . "/memcached.png"
set datafile separator ","
set grid
set key bottom right
set logscale x
set xlabel "latency of a GET (us)"
set ylabel "quantile"
set yrange [0:4]
set ytics ("0" 0, "p50" 0.30103, "p90" 1, "p99" 2, "p99.9" 3, "p99.99" 4)
csv = dir . "/memcached.csv"
set multiplot layout words(transports), 1
do for [t in transports] {
	set title sprintf("memcached beside bulk %s, links of %.0f Mbit/s", \
		t eq "tcp" ? "TCP" : "UDP", mbit) noenhanced
	plot for [p in policies] csv skip 1 \
		using (strcol(1) eq p && strcol(2) eq t && $3 == 1024 ? $5 : NaN):(-log10(1 - $4)) \
		with lines lw 2 dt 1 title p . ", 1024 bytes" noenhanced, \
	     for [p in policies] csv skip 1 \
		using (strcol(1) eq p && strcol(2) eq t && $3 == 4096 ? $5 : NaN):(-log10(1 - $4)) \
		with lines lw 2 dt 2 title p . ", 4096 bytes" noenhanced
}
unset multiplot
