#!/bin/sh
# PACKAGE0059 logrotate: rotates, compresses and makes logs
mkdir logs && cat >conf <<'END'
/tmp/work/logs/*.log {
    rotate 2
    size 10
    compress
    delaycompress
    create 640 root adm
    postrotate
        echo rotated >>/tmp/work/done
    endscript
}
END
chmod 644 conf
for n in 1 2 3 4; do seq 1 100 >>logs/a.log; logrotate -s state conf; done
ls logs; cat done
stat -c '%a %G %s' logs/a.log
zcat logs/a.log.2.gz | wc -l
echo 'nonsense {' >bad; chmod 644 bad; logrotate -s state bad 2>/dev/null
echo "status $?"
