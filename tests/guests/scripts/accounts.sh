#!/bin/sh
# GUEST0203 accounts: useradd, chpasswd, su, login and the like, with shadow passwords, PAM and utmp
section() { echo "--- $*"; }
section users
useradd --create-home --shell /bin/bash --comment One one
echo "useradd $?"
useradd one
echo "twice $?"
echo 'one:secret' | chpasswd
echo "chpasswd $?"
getent passwd one
getent group one
awk -F: '$1 == "one" { print $1, substr($2, 1, 3), $4, $5, $6 }' /etc/shadow
passwd --status one | cut -d' ' -f1,2
find /home/one -printf '%f %u %g %m\n' | sort
groupadd --system gang
usermod --append --groups gang,www-data one
id one
chfn -f 'The One' one
getent passwd one
section passwords
printf 'secret\0' | unix_chkpwd one nonull
echo "the password: $?"
usermod --lock one
passwd --status one | cut -d' ' -f1,2
usermod --unlock one
section su
su one -c 'id -un; pwd; echo $HOME $SHELL $USER $LOGNAME'
su - one -c 'id; pwd; echo $HOME $SHELL $USER $LOGNAME; umask'
su -s /bin/sh www-data -c 'id; pwd'
su one -c 'su root -c id </dev/null'
echo "without a password: $?"
runuser -u one -- id -un
su one -c 'cat /etc/shadow'
echo "shadow: $?"
su one -c 'kill -0 1'
echo "kill: $?"
section login
cat >/usr/local/bin/shown <<'END'
#!/bin/sh
id -un
pwd
who | sed 's/ *pts.*//'
stat -c '%U %G %a' "$(tty)"
END
chmod 755 /usr/local/bin/shown
echo /usr/local/bin/shown >>/etc/shells
chsh -s /usr/local/bin/shown one
touch /home/one/.hushlogin
script --quiet --return --command 'login -f one' /dev/null </dev/null | tr -d '\r'
last | sed -n '1s/ .*//p'
lastlog --user one | sed -n '2s/ .*//p'
login one </dev/null
echo "without a terminal: $?"
section records
stat -c '%n %U %G %a' /run/utmp /var/log/wtmp /var/log/lastlog /var/log/btmp
users
section removed
userdel --remove one
echo "userdel $?"
ls -d /home/one
getent passwd one
echo "gone: $?"
grpck -r
echo "grpck $?"
groupdel gang
rm /usr/local/bin/shown
