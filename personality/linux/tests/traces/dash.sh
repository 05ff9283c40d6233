trap 'echo usr1' USR1
mkdir d
cd d
for i in 1 2 3; do echo "line $i" > f$i; done
cat f1 f2 f3 | sort -r | wc -l
kill -USR1 $$
(exit 3)
echo $?
ln -s f1 l
readlink l
while read a b; do echo "$b $a"; done < f2
cat <<END
here $((6 * 7)) $(echo substituted)
END
for f in f*; do [ -s "$f" ] && echo "$f"; done
sleep 0.01 &
wait
rm -r ../d
ls nothing 2>&1
exit 5
