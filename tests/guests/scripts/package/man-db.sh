#!/bin/sh
# PACKAGE0012 man-db: formats a page of its own and finds it by its description
mkdir -p man/man1
cat >man/man1/thing.1 <<'END'
.TH THING 1 2024-01-01 Macadamia
.SH NAME
thing \- does a thing
.SH SYNOPSIS
.B thing
[\fIFILE\fR]
.SH DESCRIPTION
It does a thing to
.I FILE
and nothing else.
END
export MANPATH=$PWD/man MANWIDTH=60
man thing | cat -s
mandb --quiet --create man
whatis thing
apropos nothing
man nonsense
echo "status $?"
