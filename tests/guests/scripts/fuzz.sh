#!/bin/sh
# GUEST0140 random system calls with nearly right arguments: processes may die of it, another one goes on, and nothing grows
/tests/bin/fuzz 1 16000 4
