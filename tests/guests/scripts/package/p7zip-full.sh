#!/bin/sh
# PACKAGE0052 p7zip-full: makes an archive with a password, lists and unpacks it
mkdir d && seq 1 1000 >d/numbers && echo text >d/text
7z a -bd -bso0 -psecret -mhe=on a.7z d
echo "status $?"
7z l -ba -slt -psecret a.7z | grep -E '^(Path|Size)'
7z x -bd -bso0 -oout -psecret a.7z && cmp out/d/numbers d/numbers
7z t -bd -bso0 -bse0 -pwrong a.7z
echo "status $?"
7z a -bd -bso0 a.zip d && 7z l -ba a.zip | wc -l
