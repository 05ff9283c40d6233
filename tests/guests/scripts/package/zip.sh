#!/bin/sh
# PACKAGE0048 zip: makes an archive that unzip lists, tests and unpacks
mkdir d && seq 1 1000 >d/numbers && echo text >d/text && ln -s text d/link
zip -qry a.zip d
unzip -l a.zip | awk '{ print $1, $4 }' | tail -1
unzip -tq a.zip
zip -q a.zip -d d/text && unzip -Z1 a.zip | sort
mkdir out && cd out && unzip -q ../a.zip && cmp d/numbers ../d/numbers && readlink d/link
zip -qP secret e.zip d/numbers && unzip -qP wrong -p e.zip 2>/dev/null | wc -c
echo junk >bad.zip; unzip -q bad.zip 2>/dev/null
echo "status $?"
