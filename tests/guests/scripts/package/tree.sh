#!/bin/sh
# PACKAGE0013 tree: shows directories as a tree
mkdir -p a/b a/c && touch a/b/1 a/c/2 && ln -s ../b a/c/link
tree a
tree -J --noreport a
tree -d a | tail -1
