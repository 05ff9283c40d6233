#!/bin/sh
# GUEST0141 a user's process gets no further than under Linux with names, files, descriptors, signals, sockets and terminals of others
chmod 755 .
for test in names files others; do
    echo "--- $test"
    mkdir $test
    (cd $test && /tests/bin/rights $test)
    echo "status $?"
done
