#!/bin/sh
# GUEST0117 what /proc/stat says of each processor, and where /proc/PID/stat says that a process runs
/tests/bin/processors times
echo "status $?"
