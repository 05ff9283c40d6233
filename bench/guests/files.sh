#!/bin/sh
# A mixture of work with files, after the description of such scripts in papers: directories are
# made, a tree is copied, looked at and read, and a program is compiled. The argument is where.
set -e
cd "$1"
mkdir script
cd script
for directory in a b c d e; do mkdir -p $directory/one/two/three; done
cp -r /usr/include/x86_64-linux-gnu copy
find copy -type f | xargs ls -l >listing
find copy -type f | xargs cat | wc -c >size
for i in 1 2 3 4 5 6 7 8 9 10; do
    cat >part$i.c <<END
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int part$i(int n)
{
    char text[100];
    snprintf(text, sizeof text, "%d %d", n, $i);
    return (int)strlen(text) + atoi(text);
}
END
    tcc -c part$i.c -o part$i.o
done
echo 'int part1(int), part10(int); int main(void) { return part1(3) + part10(4) == 0; }' >main.c
tcc -o program main.c part*.o
./program
cd ..
rm -r script
sync
