#!/bin/sh
# GUEST0115 threads and processes on several processors: affinity, shared memory, signals, mappings that change, ends
for test in affinity spread shared turns signals fork mappings barriers ends; do
    /tests/bin/processors $test
    echo "status $?"
done
