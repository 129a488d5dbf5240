# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fct.gp - completion times and slowdowns by size of flow, and the distribution of slowdowns. Each
# policy is one line. The script reads DIR/buckets.csv and DIR/flows.csv and writes DIR/fct.svg:
#
#   gnuplot -e "dir='DIR'; what='rack, 100 Mbit/s, load 0.60'; policies='none pl2';
#               tics='\"small\" 0'" fct.gp
set terminal svg size 1100,800 font "sans,12"
set output dir . "/fct.svg"
set datafile separator ","
# Rows of other policies between those of one policy must not interrupt its line.
set datafile missing NaN
set grid
set key top left
set logscale y
buckets = dir . "/buckets.csv"
flows = dir . "/flows.csv"
set multiplot layout 2, 2 title what noenhanced
set xlabel "size of the flow (bytes)"
set xtics rotate by 15 right
eval "set xtics (" . tics . ")"
set offsets 0.4, 0.4, 0, 0
do for [col in "5 8 10"] {
	set title (col eq "5" ? "FCT, mean" : col eq "8" ? "FCT, p99" : "slowdown, mean")
	set ylabel (col eq "10" ? "times the ideal FCT" : "ms")
	plot for [p in policies] buckets skip 1 \
		using (strcol(1) eq p && $3 >= 0 ? $3 : NaN): \
		(column(int(col)) / (col eq "10" ? 1 : 1e6)) \
		with linespoints lw 2 pt 7 ps 0.5 title p noenhanced
}
set title "slowdown, all flows"
set xlabel "slowdown"
set xtics norotate autofreq
set ylabel "share of flows"
unset logscale y
set logscale x
set offsets
set yrange [0:1]
set key bottom right
plot for [p in policies] flows skip 1 using (strcol(1) eq p ? $12 : NaN):(1) \
	smooth cnormal with lines lw 2 title p noenhanced
unset multiplot
