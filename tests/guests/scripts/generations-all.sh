#!/bin/sh
# GUEST0112 twenty thousand times fork, exec, exit and wait: nothing grows, neither memory nor threads nor what the servers have
/tests/bin/generations 20000 0
