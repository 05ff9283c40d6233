mkdir -p t/a/b t/c
for i in 1 2 3 4 5; do echo "$i" > t/a/f$i; done
ln t/a/f1 t/c/hard
ln -s ../a/f2 t/c/soft
chmod 640 t/a/f3
touch -d '2001-02-03 04:05:06' t/a/f4
tar cf t.tar t
mkdir u
tar xf t.tar -C u
find u -type f | sort | xargs cat > all
sed -n '2,4p' all
cut -c1 all | uniq -c
cmp t/a/f4 u/t/a/f4 && stat -c '%a %h %s' u/t/a/f3 u/t/c/hard
cp -a t v
dd if=all of=copy bs=3 count=2 2>/dev/null
truncate -s 100 copy
head -c 4 copy
tail -n 1 all
rm -r t u v t.tar all copy
