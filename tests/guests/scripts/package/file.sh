#!/bin/sh
# PACKAGE0014 file: tells the types of files by their contents
echo text >text && gzip -kn text && printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\2\0\0\0' >p && ln -s text link
mkfifo pipe
printf '#!/bin/sh\n' >script
file -N text text.gz p link pipe script /dev/null . | sed 's/, from.*//'
file -b --mime-type text text.gz p script
file -b /usr/bin/file | cut -d, -f1,2
