#!/bin/sh
# GUEST0130 two thousand times fork, exec, exit and wait: nothing grows, neither memory nor threads nor what the servers have
/tests/bin/generations 2000 0
