#!/bin/sh
# GUEST0113 eight hours, mostly asleep, with a fork, exec, exit and wait every ten seconds: nothing grows
/tests/bin/generations 2880 10
