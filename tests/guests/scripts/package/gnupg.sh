#!/bin/sh
# PACKAGE0061 gnupg: makes a key, encrypts, signs and verifies by its agent
export GNUPGHOME=/tmp/work/g && mkdir -m 700 g
gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-generate-key 'One <one@example.org>' ed25519 sign never 2>/dev/null
echo "status $?"
gpg --list-keys --with-colons 2>/dev/null | awk -F: '$1 == "uid" { print $10 }'
echo text >file
gpg --batch --quiet --clearsign file && gpg --verify file.asc 2>&1 | grep -o 'Good signature.*'
sed -i s/text/other/ file.asc && gpg --verify file.asc 2>&1 | grep -o 'BAD signature.*'
gpg --batch --quiet --pinentry-mode loopback --passphrase secret -c -o hidden file && gpg --batch --quiet --pinentry-mode loopback --passphrase secret -d hidden
gpg --batch --quiet --pinentry-mode loopback --passphrase wrong -d hidden 2>/dev/null
echo "status $?"
gpg --print-md sha256 file
gpgconf --kill all
