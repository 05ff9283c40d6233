#!/bin/sh
# PACKAGE0002 git: keeps a history with a merge, packs it, clones it and finds a line in it
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
git config --global user.name One
git config --global user.email one@example.org
git config --global init.defaultBranch main
git init -q project && cd project || exit 1
seq 1 50 >numbers && git add . && git commit -qm first
git checkout -qb side && sed -i 's/^7$/seven/' numbers && git commit -qam side
git checkout -q main && sed -i 's/^40$/forty/' numbers && git commit -qam main
git merge -q --no-edit side
git log --format='%h %p %s'
git diff --stat HEAD~1
git gc -q
find .git/objects -name '*.pack' | wc -l
cd .. && git clone -q project copy && cd copy && git fsck && git blame -s numbers | grep seven
git grep -n forty
git status --short --branch
git archive HEAD | tar -tf -
