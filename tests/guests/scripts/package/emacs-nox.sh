#!/bin/sh
# PACKAGE0009 emacs-nox: evaluates Lisp, sorts a buffer and byte-compiles a file in batch mode
which emacs
cat >program.el <<'END'
(with-temp-buffer
  (insert "pear\napple\nfig\n")
  (sort-lines nil (point-min) (point-max))
  (goto-char (point-min))
  (while (re-search-forward "p+" nil t) (replace-match "<\\&>"))
  (write-region (point-min) (point-max) "sorted" nil 'quiet))
(message "%s %s" (apply '+ (number-sequence 1 100)) (format-time-string "%F" 0 t))
(message "%S" (mapcar (lambda (n) (* n n)) '(1 2 3)))
(message "%s" (string-trim (shell-command-to-string "echo from a shell")))
(message "%s" (json-encode '((a . 1) (b . [1 2]))))
END
emacs --batch -Q -l json -l program.el
cat sorted
echo '(defun twice (n) "Double N." (* 2 n))' >twice.el
emacs --batch -Q -f batch-byte-compile twice.el && ls twice.elc
emacs --batch -Q -l ./twice.elc --eval '(message "%d" (twice 21))'
emacs --batch -Q --eval '(error "wrong")'
echo "status $?"
