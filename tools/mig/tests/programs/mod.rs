//! Builds test programs from generated stubs and the C files of the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The directory of mig's tests.
pub(crate) fn tests() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests")).join("tests")
}

/// A new directory for the products of one test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let directory = tests().join("../../../target/tmp/mig").join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Names of definitions that have a C program in `c/`.
pub(crate) const SUBJECTS: [&str; 5] = ["scalars", "arrays", "structs", "ports", "translations"];

/// The C stubs of a definition, written by this compiler or by GNU's.
pub(crate) struct Stubs {
    pub(crate) directory: PathBuf,
    /// Whether this compiler, and not GNU's, has written the stubs.
    pub(crate) ours: bool,
}

impl Stubs {
    /// Runs this compiler on a definition of `good/typed`.
    pub(crate) fn ours(subject: &str, target: &str) -> Stubs {
        let directory = scratch(&format!("stubs-{subject}-{target}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
        command.current_dir(&directory).args(["-q", "-target", target]).args(files(subject));
        let dialect = if target.starts_with("untyped") { "untyped" } else { "typed" };
        command.arg(tests().join(format!("good/{dialect}/{subject}.defs")));
        success(command.output().unwrap(), subject);
        Stubs { directory, ours: true }
    }
}

/// The compiler's options for the output files of a subject.
pub(crate) fn files(subject: &str) -> Vec<String> {
    let file = |option: &str, suffix: &str| [format!("-{option}"), format!("{subject}_{suffix}")];
    let all = [
        file("user", "user.c"),
        file("server", "server.c"),
        file("header", "user.h"),
        file("sheader", "server.h"),
    ];
    all.into_iter().flatten().collect()
}

pub(crate) fn success(output: Output, what: &str) -> Output {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{what}:\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Builds the client's stubs of one compiler and the server's stubs of one compiler together with
/// the functions and the main program in `c/SUBJECT.c`, and runs the program.
pub(crate) fn build_and_run(subject: &str, target: &str, client: &Stubs, server: &Stubs) {
    let name = format!("{subject}-{target}-{}-{}", client.ours, server.ours);
    let (directory, c) = (scratch("programs"), tests().join("c"));
    // Tests of the untyped dialect have headers and a transport of their own.
    let own = if target.starts_with("untyped") { c.join("untyped") } else { c.clone() };
    let object = directory.join(format!("{name}-original.o"));
    let gcc = |headers: &Path| {
        let mut command = Command::new("gcc");
        command.args(["-std=gnu11", "-O1", "-fno-strict-aliasing"]);
        if target == "mach64-2022" {
            command.arg("-DNARROW");
        }
        command.arg("-I").arg(&own).arg("-I").arg(&c).arg("-I").arg(headers);
        command
    };
    let program = directory.join(&name);
    // Only this compiler's stubs are compiled with `-Werror`: those of other compilers cause
    // warnings.
    let mut command = gcc(&client.directory);
    command.args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fsanitize=undefined"]);
    command.args(["-fno-sanitize=alignment", "-fno-sanitize-recover=all", "-o"]).arg(&program);
    for (stubs, side) in [(client, "user"), (server, "server")] {
        let source = stubs.directory.join(format!("{subject}_{side}.c"));
        if stubs.ours {
            command.arg(source);
        } else {
            let output = gcc(&stubs.directory).arg("-c").arg(source).arg("-o").arg(&object).output();
            success(output.unwrap(), &name);
            command.arg(&object);
        }
    }
    command.arg(own.join(format!("{subject}.c"))).arg(own.join("loopback.c"));
    success(command.output().unwrap(), &name);
    success(Command::new(program).output().unwrap(), &name);
}
