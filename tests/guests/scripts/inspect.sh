#!/bin/sh
# GUEST0142 processes learn of each other, get from each other and start with no more than under Linux, whatever they open, share or replace
chmod 755 .
for test in processes self stale programs end; do
    echo "--- $test"
    /tests/bin/inspect $test
    echo "status $?"
done
