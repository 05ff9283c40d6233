#!/bin/sh
# GUEST0132 a process takes no more of the kernel's memory than the book says
/tests/bin/kernel-memory
echo "status $?"
