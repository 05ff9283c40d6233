#!/bin/sh
# PACKAGE0040 bison: makes a parser
cat >calc.y <<'END'
%{
#include <ctype.h>
#include <stdio.h>
int yylex(void); void yyerror(const char *s) { printf("%s\n", s); }
%}
%token NUMBER
%left '+' '-'
%left '*'
%%
lines: | lines line;
line: e '\n' { printf("%d\n", $1); } | error '\n' { yyerrok; };
e: e '+' e { $$ = $1 + $3; } | e '-' e { $$ = $1 - $3; } | e '*' e { $$ = $1 * $3; } | '(' e ')' { $$ = $2; } | NUMBER;
%%
int yylex(void) { int c = getchar(); while (c == ' ') c = getchar(); if (isdigit(c)) { ungetc(c, stdin); scanf("%d", &yylval); return NUMBER; } return c == EOF ? 0 : c; }
int main(void) { return yyparse(); }
END
bison -o calc.c calc.y && gcc -o calc calc.c && printf '1 + 2 * 3\n(4 - 5) * 6\n1 +\n7\n' | ./calc
echo 'e: e e | N' >bad.y; bison bad.y 2>&1 | head -2
