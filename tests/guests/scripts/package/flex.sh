#!/bin/sh
# PACKAGE0039 flex: makes a scanner
cat >scan.l <<'END'
%option noyywrap
%{
#include <stdio.h>
int words, numbers;
%}
%%
[0-9]+    numbers++;
[a-z]+    words++;
.|\n      ;
%%
int main(void) { yylex(); printf("%d words, %d numbers\n", words, numbers); return 0; }
END
flex scan.l && gcc -o scan lex.yy.c && echo 'one 2 three 44 5' | ./scan
echo '%%%' | flex 2>&1 | head -2
