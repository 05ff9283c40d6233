#!/bin/sh
# GUEST0109 four thousand threads, addresses beyond a program's own, what all share used up, processor time and its limits, and nothing left of who is killed
for test in threads places exhaust time leaks; do
    echo "--- $test"
    /tests/bin/limits $test
    echo "status $?"
done
