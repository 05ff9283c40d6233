#!/bin/sh
# PACKAGE0018 bc: computes with many digits
echo 'scale=50; 4*a(1)' | bc -l
echo '2^200; define f(n) { if (n < 2) return 1; return n * f(n - 1) } f(30)' | bc
echo 'obase=16; ibase=2; 11111111' | bc
echo '1/0' | bc
