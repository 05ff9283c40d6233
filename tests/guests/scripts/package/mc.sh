#!/bin/sh
# PACKAGE0011 mc: shows a file of an archive and compares files without its panels
which mc mcedit mcview mcdiff
mc --version | sed -n '1s/[0-9].*//p'
mkdir in && echo text >in/file && tar -cf a.tar in
/usr/lib/mc/extfs.d/uzip list nothing.zip 2>/dev/null
echo "status $?"
TERM=xterm script -qec "stty rows 24 cols 80; mcview in/file" /dev/null <<END | grep -ac text
q
END
mc -F 2>/dev/null | sed -n 1,3p
