#!/bin/sh
# PACKAGE0016 moreutils: writes back to its input, timestamps, runs a command if there is input
printf 'b\na\n' >file && sort file | sponge file && cat file
echo x | ifne wc -l
: | ifne echo never
echo one | ts '%Y' | grep -c '^20[0-9][0-9] one$'
printf '1\n2\n' | pee 'wc -l' 'tail -1' | sort
chronic sh -c 'echo quiet'
chronic sh -c 'echo loud; exit 3'
echo "status $?"
mispipe 'sh -c "exit 4"' true
echo "status $?"
combine file not file
zrun cat file
