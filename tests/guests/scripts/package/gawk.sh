#!/bin/sh
# PACKAGE0020 gawk: sums fields, formats, uses arrays of arrays and coprocesses
printf 'a 1\nb 2\na 3\n' >data
gawk '{ sum[$1] += $2 } END { PROCINFO["sorted_in"] = "@ind_str_asc"; for (k in sum) print k, sum[k] }' data
gawk 'BEGIN { a[1][2] = 3; print a[1][2], length(a[1]), strftime("%F", 0, 1), gensub(/(b)(c)/, "\\2\\1", 1, "abcd") }'
gawk 'BEGIN { c = "sort -r"; print "1\n2" |& c; close(c, "to"); while ((c |& getline line) > 0) print line; print close(c) }'
gawk -M 'BEGIN { print 2 ^ 128 }'
gawk 'BEGIN { printf "%5.2f|%-5s|%05d|%c\n", 3.14159, "ab", 42, 65; exit 3 }'
echo "status $?"
