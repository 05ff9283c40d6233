#!/bin/sh
# PACKAGE0021 m4: expands macros
cat >in.m4 <<'END'
define(`times', `ifelse(`$1', 0, `', `$2`'times(decr(`$1'), `$2')')')dnl
times(5, `ab')
eval(6 * 7) len(`macadamia') translit(`abc', `a-c', `A-C')
esyscmd(`echo from a shell')dnl
END
m4 in.m4
m4 -Dx=1 -P <<'END'
m4_ifdef(`x', `yes', `no')
END
echo 'm4exit(3)' | m4
echo "status $?"
