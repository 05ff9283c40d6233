#!/bin/sh
# PACKAGE0022 libxml2-utils: validates, formats and searches XML
cat >a.xml <<'END'
<?xml version="1.0"?><!DOCTYPE r [<!ELEMENT r (i*)><!ELEMENT i (#PCDATA)><!ATTLIST i n CDATA #REQUIRED>]><r><i n="1">one</i><i n="2">two</i></r>
END
xmllint --format --valid a.xml
xmllint --xpath 'string(//i[@n=2])' a.xml
xmllint --xpath 'count(//i)' a.xml
echo '<r><i></r>' | xmllint - 2>&1 | head -3
