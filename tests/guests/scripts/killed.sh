#!/bin/sh
# GUEST0128 a process is killed in every state, those too that only the kernel below has; exec and exit end threads in them
/tests/bin/killed
