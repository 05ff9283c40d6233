#!/bin/sh
# GUEST0110 the attacks of a program that knows what it runs on get nothing, and no other process is affected
for attack in 1 2 3 4 10 11 12 13 14 15 16 17 18 19 20 21; do
    /tests/bin/attack $attack >output 2>&1
    case $? in
    1) echo "attack $attack: $(cat output)" ;;
    *) echo "attack $attack got nothing" ;;
    esac
done
echo after | cat
