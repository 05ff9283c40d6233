#!/bin/sh
# PACKAGE0010 ed: edits a file by commands
printf 'one\ntwo\nthree\n' >text
printf '%s\n' '2s/two/2/' '1m$' ',n' '/three/' 'a' 'inserted' '.' 'w' 'q' | ed -s text
cat text
printf 'nonsense\n' | ed -s text
echo "status $?"
