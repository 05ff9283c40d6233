#!/bin/sh
# PACKAGE0001 vim: edits a file in ex mode, with a macro, a script and syntax colours as HTML
which vim vi editor
printf 'one two\nthree four\nfive six\n' >text
vim -es -u NONE text -c '%s/\(\w\+\) \(\w\+\)/\2 \1/' -c 'normal ggddGp' -c 'sort' -c 'wq'
echo "status $?"
cat text
cat >script.vim <<'END'
let total = 0
for line in readfile('numbers')
  let total += str2nr(line)
endfor
call writefile(['total ' . total, toupper('macadamia'), json_encode({'a': [1, 2.5, v:true]})], 'result')
quit!
END
seq 1 100 >numbers
vim -es -N -u NONE -S script.vim
cat result
printf 'int main(void) { return 0; /* end */ }\n' >a.c
vim -es -N -u NONE -c 'syntax on' -c 'set filetype=c' \
    -c 'call writefile(map([1, 10, 16, 28], "synIDattr(synID(1, v:val, 1), \"name\")"), "names")' -c 'qa!' a.c
cat names
