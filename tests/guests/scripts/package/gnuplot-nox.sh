#!/bin/sh
# PACKAGE0045 gnuplot-nox: plots as text and as SVG, and fits a curve
cat >plot.gp <<'END'
set terminal dumb 60 15
plot sin(x) notitle
set terminal svg
set output 'a.svg'
plot '-' with lines
1 1
2 4
3 9
e
set output
f(x) = a * x ** b
a = 1; b = 1
set fit quiet nolog
fit f(x) 'data' via a, b
print sprintf("%.3f %.3f", a, b)
END
seq 1 10 | awk '{ print $1, 3 * $1 * $1 }' >data
gnuplot plot.gp
grep -c '<path' a.svg
