//! Linux programs that tests boot as guests: built here by Debian's own compilers for Linux, statically, with nothing of
//! ours linked in.

use crate::programs_c::execute;
use crate::{command, tree};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// Name in `target/boot`, source in `tests/guests`, compiler.
const GUESTS: [(&str, &str, &str); 3] = [
    ("hello-musl", "hello.c", "musl-gcc"),
    ("hello-glibc", "hello.c", "gcc"),
    ("attack", "attack.c", "musl-gcc"),
];

/// Builds every guest whose source has changed; returns all of them.
pub(crate) fn build(verbose: bool) -> Result<Vec<PathBuf>> {
    let out = tree::target().join("guests");
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    GUESTS
        .iter()
        .map(|(name, source, compiler)| {
            let source = tree::root().join("tests/guests").join(source);
            let program = out.join(name);
            if !is_newer(&program, &source) {
                let mut compile = command::clean(compiler);
                compile.args(["-static", "-no-pie", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
                compile.arg(&program).arg(&source);
                execute(compile, verbose, &format!("building the Linux program {name}"))?;
            }
            Ok(program)
        })
        .collect()
}

fn is_newer(program: &PathBuf, source: &PathBuf) -> bool {
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    changed(program).is_some_and(|built| changed(source).is_some_and(|source| built > source))
}
