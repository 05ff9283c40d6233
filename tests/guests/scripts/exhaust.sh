#!/bin/sh
# GUEST0144 one user takes all there is of something, and another user's programs run on; nothing is left of processes that are killed
for test in exhaust leaks; do
    echo "--- $test"
    /tests/bin/limits $test
    echo "status $?"
done
