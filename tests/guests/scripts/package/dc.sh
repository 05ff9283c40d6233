#!/bin/sh
# PACKAGE0019 dc: computes in reverse Polish notation
dc -e '20k 2v p 16o 255 p 3 5 10 | p'
echo '[la1+dsa*pla10>y]sy0sa1lyx' | dc
dc -e '+'
