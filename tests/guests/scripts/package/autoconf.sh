#!/bin/sh
# PACKAGE0041 autoconf: makes a configure script that finds the compiler, and builds by automake
cat >configure.ac <<'END'
AC_INIT([thing], [1.0])
AM_INIT_AUTOMAKE([foreign])
AC_PROG_CC
AC_CHECK_HEADERS([unistd.h nothing.h])
AC_CHECK_FUNCS([strlcpy memcpy])
AC_CONFIG_HEADERS([config.h])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
END
printf 'bin_PROGRAMS = thing\nthing_SOURCES = thing.c\n' >Makefile.am
printf '#include <config.h>\n#include <stdio.h>\nint main(void) { puts(PACKAGE_STRING); return 0; }\n' >thing.c
autoreconf -i >log 2>&1
echo "status $?"
./configure -q && make -s && ./thing
grep -E 'HAVE_(UNISTD|NOTHING|STRLCPY|MEMCPY)' config.h
