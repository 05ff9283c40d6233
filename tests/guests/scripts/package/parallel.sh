#!/bin/sh
# PACKAGE0017 parallel: runs commands side by side and keeps their order
parallel --will-cite -k 'echo {} {#}; sleep 0.{}' ::: 3 1 2
seq 1 20 | parallel --will-cite -j4 -k -N5 'echo {1}-{5}'
parallel --will-cite 'exit {}' ::: 0 1 1
echo "status $?"
parallel --will-cite --tag -k 'expr {1} \* {2}' ::: 2 3 ::: 10 20
