//! Tests that the C bindings are complete: the test programs call, and the book lists, every
//! function of the headers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    // cargo gives the directory at run time. That of compile time may belong to another copy of the
    // tree.
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The public names of the headers' inline functions, those of the C part and those of the C++
/// part.
fn defined() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut c, mut cxx) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(root().join("lib/l4/include/l4")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let (names, rest) = match (line.strip_prefix("L4_INLINE "), line.strip_prefix("static inline ")) {
                (Some(rest), _) => (&mut c, rest),
                (_, Some(rest)) => (&mut cxx, rest),
                _ => continue,
            };
            let Some((declaration, _)) = rest.split_once('(') else { continue };
            let name = declaration.rsplit([' ', '*']).next().unwrap();
            if name.starts_with("L4_") {
                names.insert(name.to_string());
            }
        }
    }
    (c, cxx)
}

fn missing(names: &BTreeSet<String>, text: &str) -> Vec<String> {
    names.iter().filter(|name| !text.contains(&format!("{name}("))).cloned().collect()
}

#[test]
fn every_function_is_called_by_a_test_program() {
    let (c, cxx) = defined();
    assert!(
        c.len() > 200 && cxx.len() >= 40,
        "{} and {} functions: are they still found?",
        c.len(),
        cxx.len()
    );
    let programs = read("tests/c/x2-c/main.c") + &read("tests/c/x2-extensions/main.c");
    assert_eq!(missing(&c, &programs), Vec::<String>::new());
    let as_cxx = read("tests/c/x2-c-as-cxx/main.cc");
    assert!(as_cxx.contains("#include \"../x2-c/main.c\""), "C++ programs call the functions of C too");
    assert_eq!(missing(&cxx, &read("tests/c/x2-cxx/main.cc")), Vec::<String>::new());
}

#[test]
fn every_function_is_in_the_book() {
    let (c, cxx) = defined();
    let page = read("docs/src/reference/c-bindings.md");
    assert_eq!(missing(&c, &page), Vec::<String>::new());
    assert_eq!(missing(&cxx, &page), Vec::<String>::new());
}
