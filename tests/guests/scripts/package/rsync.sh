#!/bin/sh
# PACKAGE0053 rsync: copies trees with links, times and sparse files, sends only changes, deletes
mkdir -p from/sub && seq 1 1000 >from/sub/numbers && ln -s numbers from/sub/link && ln from/sub/numbers from/hard && truncate -s 1M from/sparse && chmod 640 from/hard
touch -d 2024-01-01 from/sub/numbers
rsync -aHS from/ to/
diff -r from to && echo same
stat -c '%h %a %Y %n' to/hard
echo more >>from/sub/numbers && rm from/sparse
rsync -aHi --delete from/ to/ | sort
rsync -a --dry-run --stats from/ to/ | grep 'files transferred'
printf '#!/bin/sh\nshift\nexec "$@"\n' >remote && chmod 755 remote
rsync -a -e ./remote from/ host:/tmp/work/far/ && diff -r from far && echo far
rsync nothing to/ 2>&1 | tail -1 | cut -d' ' -f1-5
