#!/bin/sh
# PACKAGE0031 ocaml-nox: compiles a program to byte code and to machine code
cat >program.ml <<'END'
type tree = Leaf | Node of tree * int * tree
let rec insert n = function
  | Leaf -> Node (Leaf, n, Leaf)
  | Node (l, m, r) when n < m -> Node (insert n l, m, r)
  | Node (l, m, r) -> Node (l, m, insert n r)
let rec show = function Leaf -> [] | Node (l, n, r) -> show l @ (n :: show r)
let () =
  [5; 2; 8; 1] |> List.fold_left (fun t n -> insert n t) Leaf |> show |> List.iter (Printf.printf "%d ");
  print_newline ();
  (try failwith "wrong" with Failure m -> print_endline m);
  exit 3
END
ocamlc -o bytes program.ml && ./bytes
echo "status $?"
ocamlopt -o native program.ml && ./native
echo "status $?"
echo 'let x = 1 + "a"' >bad.ml && ocamlc bad.ml
echo 'List.map (fun x -> x * x) [1; 2; 3];;' | TERM=dumb ocaml -noprompt | grep list
