#!/bin/sh
# PACKAGE0057 cron: runs a job of a user at the next minute
useradd --create-home runner
echo '* * * * * id -un >>/tmp/ran; pwd >>/tmp/ran' | crontab -u runner -
crontab -u runner -l
cron
for second in $(seq 1 150); do [ -s /tmp/ran ] && break; sleep 1; done
sleep 1
head -2 /tmp/ran
stat -c '%U' /tmp/ran
echo '61 * * * * true' | crontab -u runner - 2>&1 | sed 's,/tmp[^ :]*,FILE,'
crontab -u runner -r && crontab -u runner -l
kill "$(cat /run/crond.pid)"
userdel -r runner 2>/dev/null
