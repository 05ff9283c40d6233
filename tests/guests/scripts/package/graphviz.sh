#!/bin/sh
# PACKAGE0046 graphviz: lays out graphs
echo 'digraph g { a -> b -> c; a -> c [label=x]; subgraph cluster_1 { c; d } }' >a.dot
dot -Tplain a.dot | sort
dot -Tsvg a.dot | grep -c '<g '
neato -Tplain -Gstart=1 a.dot | grep -c node
dot -Tpng a.dot | head -c 4 | od -An -c
gc -n a.dot
echo 'graph { a -- ' | dot -Tplain
echo "status $?"
