//! Definitions that cover every construct of the language. The compiler's layouts of valid
//! definitions and its errors for invalid ones are compared with files; `MIG_BLESS=1` writes the
//! files.

use mig::target::{Dialect, Target};
use mig::{Compiled, list};
use std::fs;
use std::path::{Path, PathBuf};

fn files(directory: &str) -> Vec<PathBuf> {
    let path = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests"))
        .join("tests")
        .join(directory);
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "defs")).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn compile(target: Target, path: &Path) -> Compiled {
    let name = path.file_name().unwrap().to_string_lossy();
    mig::compile(target, &name, &fs::read_to_string(path).unwrap())
}

/// Compares `found` with the file that has the definition's name and another extension.
fn expect(path: &Path, extension: &str, found: &str) {
    let expected = path.with_extension(extension);
    if std::env::var_os("MIG_BLESS").is_some() {
        fs::write(&expected, found).unwrap();
    }
    let text = fs::read_to_string(&expected).unwrap_or_default();
    assert_eq!(text, found, "{} differs; MIG_BLESS=1 accepts what was found", expected.display());
}

fn good(directory: &str, target: Target) {
    for path in files(directory) {
        let compiled = compile(target, &path);
        let Some(interface) = &compiled.interface else { panic!("{}", compiled.report()) };
        let text = format!("{}{}", list::layouts(interface), compiled.report());
        expect(&path, target.name, &text);
    }
}

#[test]
fn typed_messages_have_their_layouts() {
    good("good/typed", Target::by_name("mach64").unwrap());
    good("good/typed", Target::by_name("mach32").unwrap());
}

#[test]
fn untyped_messages_have_their_layouts() {
    good("good/untyped", Target::by_name("untyped64").unwrap());
}

#[test]
fn unusual_names_are_taken() {
    good("good/lenient", Target::by_name("mach64").unwrap());
}

#[test]
fn errors_point_at_their_place() {
    for path in files("bad") {
        let name = path.file_stem().unwrap().to_string_lossy();
        let dialect = if name.starts_with("untyped") { Dialect::Untyped } else { Dialect::Typed };
        let compiled = compile(Target::of(dialect), &path);
        assert!(compiled.interface.is_none(), "{} has no error", path.display());
        expect(&path, "txt", &compiled.report());
    }
}

#[test]
fn what_has_no_form_in_rust_is_an_error_at_its_place() {
    for path in files("bad_rust") {
        let compiled = compile(Target::of(Dialect::Typed), &path);
        let Some(interface) = &compiled.interface else { panic!("{}", compiled.report()) };
        let error = mig::message::module(interface).expect_err("there is no module");
        expect(&path, "txt", &format!("{}\n", error.render(&compiled.source)));
    }
}
