#!/bin/sh
# GUEST0131 an hour, mostly asleep, with a fork, exec, exit and wait every ten seconds: nothing grows
/tests/bin/generations 360 10
