#!/bin/sh
# PACKAGE0007 openssl: makes a key and a certificate, verifies it, signs, encrypts and computes sums
openssl genpkey -algorithm ed25519 -out key.pem
openssl req -new -x509 -key key.pem -subj /CN=macadamia -days 1 -out certificate.pem
openssl x509 -in certificate.pem -noout -subject -issuer
openssl verify -CAfile certificate.pem certificate.pem
openssl genrsa -out rsa.pem 1024 2>/dev/null && openssl rsa -in rsa.pem -pubout -out public.pem 2>/dev/null
echo text >file
openssl dgst -sha256 -sign rsa.pem -out signature file
openssl dgst -sha256 -verify public.pem -signature signature file
echo more >>file
openssl dgst -sha256 -verify public.pem -signature signature file 2>/dev/null
echo "status $?"
openssl enc -aes-256-cbc -pbkdf2 -k secret -in file -out hidden && openssl enc -d -aes-256-cbc -pbkdf2 -k secret -in hidden
openssl enc -aes-256-cbc -K 00 -iv 00 -in file 2>/dev/null | od -An -tx1 | head -1
for sum in md5 sha1 sha512 blake2s256; do openssl dgst -$sum file; done
openssl rand -hex 16 | wc -c
