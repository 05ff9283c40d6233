#!/bin/sh
# GUEST0107 signals under load, five hundred processes, a fork bomb under a limit, descriptors and memory exhausted
for test in signals forks bomb descriptors memory; do
    echo "--- $test"
    /tests/bin/processes $test
    echo "status $?"
done
