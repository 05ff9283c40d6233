#!/bin/sh
# GUEST0109 four thousand threads, addresses beyond a program's own, processor time and its limits
for test in threads places time; do
    echo "--- $test"
    /tests/bin/limits $test
    echo "status $?"
done
