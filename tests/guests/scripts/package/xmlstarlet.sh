#!/bin/sh
# PACKAGE0024 xmlstarlet: edits and queries XML
echo '<r><i n="2">b</i><i n="1">a</i></r>' >a.xml
xmlstarlet sel -t -m //i -s A:N:- @n -v . -n a.xml
xmlstarlet ed -u '//i[@n=1]' -v changed -d '//i[@n=2]' a.xml
xmlstarlet val a.xml
