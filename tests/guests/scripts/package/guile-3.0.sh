#!/bin/sh
# PACKAGE0027 guile-3.0: evaluates Scheme with continuations, modules and big numbers
which guile
cat >program.scm <<'END'
(use-modules (srfi srfi-1) (ice-9 match) (ice-9 popen) (ice-9 rdelim))
(define (fact n) (if (zero? n) 1 (* n (fact (1- n)))))
(display (fact 30)) (newline)
(write (fold + 0 (iota 100))) (newline)
(write (call/cc (lambda (k) (for-each (lambda (x) (if (> x 2) (k x))) '(1 2 3 4)) 'none))) (newline)
(write (match '(1 (2 3)) ((a (b c)) (list c b a)))) (newline)
(let* ((port (open-input-pipe "echo from a shell")) (line (read-line port))) (close-pipe port) (write line) (newline))
(write (exact->inexact 1/3)) (newline)
(catch 'misc-error (lambda () (error "wrong" 1)) (lambda (key . rest) (write key) (newline)))
(exit 3)
END
export GUILE_AUTO_COMPILE=0
guile -s program.scm
echo "status $?"
