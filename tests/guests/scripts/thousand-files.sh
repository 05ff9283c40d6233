#!/bin/sh
# GUEST0103 a tree of a thousand files: find, xargs, sort, uniq; tar and gzip there and back, compared by checksum
export LC_ALL=C
n=0
while [ $n -lt 1000 ]; do
    directory=tree/$((n % 10))/$((n / 10 % 10))
    [ -d $directory ] || mkdir -p $directory
    echo "file $((n % 7)) content $((n % 13))" >$directory/file$n
    n=$((n + 1))
done
find tree -type f | wc -l
find tree -type f -print0 | xargs -0 cat | sort | uniq -c | sort -rn | head -n 5
find tree -type f | xargs -n 50 grep -l 'file 3' | wc -l
find tree -type f -name 'file*9' | xargs wc -c | tail -n 1
find tree -type f | sed 's/.*file//' | sort -n | uniq | tail -n 1
(cd tree && find . -type f | sort | xargs md5sum) >sums
md5sum <sums
tar cf tree.tar tree
mkdir out
tar xf tree.tar -C out
(cd out/tree && md5sum -c --quiet ../../sums) && echo "tar: the same"
gzip -9 tree.tar
rm -rf out
mkdir out
tar xzf tree.tar.gz -C out 2>/dev/null || { gunzip -c tree.tar.gz | tar xf - -C out; }
(cd out/tree && md5sum -c --quiet ../../sums) && echo "gzip: the same"
mkdir piped
(cd tree && tar cf - .) | (cd piped && tar xf -)
diff -r tree piped && echo "piped: the same"
cp -r tree copy && rm -r tree/3 && diff -rq tree copy
find . -type f -delete
find . -type f | wc -l
rm -rf tree out piped copy
ls
