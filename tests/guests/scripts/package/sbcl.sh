#!/bin/sh
# PACKAGE0030 sbcl: compiles Lisp, handles conditions and uses threads
cat >program.lisp <<'END'
(defun fact (n) (if (zerop n) 1 (* n (fact (1- n)))))
(print (fact 30))
(defclass point () ((x :initarg :x :accessor x)))
(defmethod area ((p point)) (* (x p) (x p)))
(print (area (make-instance 'point :x 7)))
(print (handler-case (error "wrong") (error (c) (princ-to-string c))))
(print (loop for i from 1 to 10 when (oddp i) collect (* i i)))
(print (mapcar #'sb-thread:join-thread (loop for i below 4 collect (let ((i i)) (sb-thread:make-thread (lambda () (* i i)))))))
(print (with-output-to-string (s) (sb-ext:run-program "/bin/echo" '("from a program") :output s)))
(sb-ext:gc :full t)
(print (sb-ext:posix-getenv "HOME"))
(terpri)
(sb-ext:exit :code 3)
END
sbcl --noinform --non-interactive --load program.lisp
echo "status $?"
