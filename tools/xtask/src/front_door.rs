//! Tests of the script `./mac` on fake machines. A fake machine is a scratch directory with a copy
//! of the script, whose root directory it is, and with programs that only record their calls.

use crate::Arguments;
use clap::CommandFactory;
use mac_build::scratch::Scratch;
use mac_build::{command, tree};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The programs that the script expects on every machine.
const BASE: [&str; 10] = ["awk", "dirname", "df", "env", "find", "ln", "mkdir", "sed", "touch", "tr"];

/// The files by which the script finds out what is installed.
const TOOLS: [&str; 5] = ["bin/cc", "bin/g++", "bin/musl-gcc", "usr/include/stdlib.h", "etc/ssl/cert.pem"];

/// A fake machine.
struct Machine {
    /// The machine's root directory, whose name has a blank and a comma.
    root: PathBuf,
    _scratch: Scratch,
}

impl Machine {
    /// A machine with Debian 12 and every tool, and the tree in `tree`. Its programs record their
    /// calls in `calls`.
    fn new(name: &str) -> Machine {
        let scratch = Scratch::new(name).unwrap();
        let machine = Machine { root: scratch.0.join("a machine, a tree"), _scratch: scratch };
        for tool in BASE {
            let place = machine.path(&format!("bin/{tool}"));
            symlink(command::find(tool).unwrap_or_else(|| panic!("no {tool}")), place).unwrap();
        }
        for tool in TOOLS {
            machine.program(tool, "");
        }
        machine.file("etc/os-release", "ID=debian\nVERSION_ID=12\n");
        machine.program("bin/id", "echo 0");
        machine.program("bin/apt-get", "");
        machine.program("bin/apt-cache", "echo '  Candidate: 1.96.0+dfsg-1'");
        machine.compiler("bin", 96);
        for file in ["Cargo.toml", "Cargo.lock", "tools/xtask/src/main.rs"] {
            machine.file(&format!("tree/{file}"), &fs::read_to_string(tree::root().join(file)).unwrap());
        }
        let root = machine.root.to_str().unwrap();
        let mut script = fs::read_to_string(tree::root().join("mac")).unwrap();
        // The blank in the directory's name must be quoted in the shell script.
        for directory in ["/usr/", "/etc/"] {
            script = script.replace(directory, &format!("'{root}'{directory}"));
        }
        machine.file("tree/mac", &script);
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(&self, path: &str, content: &str) {
        fs::write(self.path(path), content).unwrap();
    }

    /// Adds a program that records its call, then runs `script`. `$root` is the machine's root
    /// directory.
    fn program(&self, path: &str, script: &str) {
        let root = self.root.display();
        let text = format!("#!/bin/sh\nroot='{root}'\necho \"{path} $*\" >>\"$root/calls\"\n{script}\n");
        self.file(path, &text);
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds a complete compiler of version 1.`minor`. Its cargo says which rustc comes first in
    /// PATH.
    fn compiler(&self, directory: &str, minor: u32) {
        let library = "lib/rustlib/x86_64-unknown-none/lib/libcore.rlib";
        self.file(&format!("{directory}/{library}"), "");
        let sysroot = self.path(directory);
        let says = format!(
            "case $1 in --version) echo 'rustc 1.{minor}.0' ;; --print) echo '{}' ;; esac",
            sysroot.display()
        );
        self.program(&format!("{directory}/rustc"), &says);
        let builds = "case $1 in build) echo 'Compiling xtask' >&2 ;; run) rustc --version ;; esac";
        self.program(&format!("{directory}/cargo"), builds);
    }

    /// Runs the script with these directories in PATH.
    fn mac(&self, path: &[&str], arguments: &[&str]) -> Output {
        let directories = path.iter().map(|directory| self.root.join(directory));
        let mut shell = Command::new(command::find("sh").unwrap());
        shell.arg(self.root.join("tree/mac")).args(arguments).env_clear();
        shell.env("PATH", std::env::join_paths(directories).unwrap()).stdin(Stdio::null());
        shell.output().unwrap()
    }

    /// The recorded calls of programs, one on each line.
    fn calls(&self) -> String {
        fs::read_to_string(self.root.join("calls")).unwrap_or_default()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_and_version_and_a_wrong_verb_call_no_program() {
    let machine = Machine::new("door-help");
    fs::remove_file(machine.path("bin/cc")).unwrap();
    for arguments in [&[][..], &["help"], &["--help"], &["-h"]] {
        let said = text(&machine.mac(&["bin"], arguments).stdout);
        for verb in Arguments::command().get_subcommands() {
            let about = verb.get_about().unwrap().to_string();
            let line = format!("  {:10} {about}", verb.get_name());
            assert!(said.lines().any(|it| it == line), "{line:?} is not in\n{said}");
        }
    }
    for arguments in [["--version"], ["-V"]] {
        let said = text(&machine.mac(&["bin"], &arguments).stdout);
        assert_eq!(said, format!("Macadamia {}\n", env!("CARGO_PKG_VERSION")));
    }
    let wrong = machine.mac(&["bin"], &["biuld"]);
    assert_eq!(text(&wrong.stderr), "mac: there is no verb biuld; ./mac help lists them\n");
    assert!(!wrong.status.success());
    assert_eq!(machine.calls(), "");
}

#[test]
fn the_first_build_of_the_tool_shows_its_progress_and_later_ones_are_quiet() {
    let machine = Machine::new("door-first");
    let first = machine.mac(&["bin"], &["words"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(text(&first.stderr), "mac: building the tool itself\nCompiling xtask\n");
    assert!(machine.calls().contains("bin/cargo run --quiet --locked --package xtask -- words\n"));
    machine.program("tree/target/debug/xtask", "");
    assert_eq!(text(&machine.mac(&["bin"], &["words"]).stderr), "");
}

#[test]
fn an_older_rustc_first_in_path_is_not_used() {
    let machine = Machine::new("door-old");
    machine.compiler("old", 63);
    let output = machine.mac(&["old", "bin"], &["build", "--verbose"]);
    assert_eq!(text(&output.stdout), "rustc 1.96.0\n", "{}", text(&output.stderr));
    assert!(!machine.calls().contains("old/cargo"), "{}", machine.calls());
    assert!(machine.calls().contains("bin/cargo run --quiet --locked --package xtask -- build --verbose\n"));
    // The result of the search for tools is kept, and is used only with the same PATH.
    machine.compiler("older", 62);
    let output = machine.mac(&["older", "old", "bin"], &["build"]);
    assert_eq!(text(&output.stdout), "rustc 1.96.0\n", "{}", text(&output.stderr));
}

#[test]
fn without_a_network_one_line_says_that_crates_cannot_be_fetched() {
    let machine = Machine::new("door-crates");
    let fails = "[ $1 != tree ] || { printf 'error: failed to download from `there`\n\nCaused by:\n  \
                 Could not resolve host: there\n' >&2; exit 101; }";
    machine.program("bin/cargo", fails);
    let output = machine.mac(&["bin"], &["words"]);
    let expected = "mac: building the tool itself\n\
                    mac: the tool's crates cannot be fetched; is there a network? \
                    failed to download from `there`: Could not resolve host: there\n";
    assert_eq!((text(&output.stderr), output.status.code()), (expected.into(), Some(1)));
    assert!(!machine.calls().contains("bin/cargo build"), "{}", machine.calls());
}

#[test]
fn a_package_that_is_new_in_the_workspace_is_added_to_the_lock_file_but_not_by_tests() {
    let machine = Machine::new("door-member");
    let update = "bin/cargo update --quiet --workspace\n";
    let lacks = "case $1 in metadata) echo 'cannot update the lock file because --locked was passed' >&2
        exit 101 ;; esac";
    machine.program("bin/cargo", lacks);
    // No line was added, since the file was complete before.
    assert!(machine.mac(&["bin"], &["words"]).status.success());
    assert!(!machine.calls().contains("metadata"), "{}", machine.calls());
    let added = fs::File::create(machine.path("tree/new/Cargo.toml")).unwrap();
    added.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
    let refused = machine.mac(&["bin"], &["check"]);
    assert!(text(&refused.stderr).contains("./mac build completes it"), "{}", text(&refused.stderr));
    assert!(!refused.status.success() && !machine.calls().contains(update), "{}", machine.calls());
    let output = machine.mac(&["bin"], &["words"]);
    assert!(output.status.success() && machine.calls().contains(update), "{}", machine.calls());
    assert!(text(&output.stderr).contains("completing Cargo.lock"), "{}", text(&output.stderr));
}

/// A fake apt. It would fetch some packages, and remove one if the file `removes` exists.
const APT: &str = "case $* in
    *--simulate*) echo 'Inst gcc (4:12.2.0-3 Debian:12.5/oldstable [amd64])'
        [ ! -e \"$root/removes\" ] || echo 'Remv libother [1.0]' ;;
    *--assume-no*) echo 'Need to get 62.1 MB of archives.'
        echo 'After this operation, 200 MB of additional disk space will be used.' ;;
    *--download-only*) ;;
    *install*) ln -s id \"$root/bin/cc\" ;;
esac";

/// A machine without a C compiler, which apt can install.
fn without_gcc(name: &str) -> Machine {
    let machine = Machine::new(name);
    fs::remove_file(machine.path("bin/cc")).unwrap();
    machine.program("bin/apt-get", APT);
    machine
}

/// Whether apt was called to install something.
fn installs(machine: &Machine) -> bool {
    machine.calls().lines().any(|call| call.contains(" install --yes"))
}

#[test]
fn what_is_to_be_installed_is_named_with_its_size() {
    let machine = without_gcc("door-install");
    let output = machine.mac(&["bin"], &["words"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    for line in [
        "mac: installing what this machine lacks:",
        "  gcc: links host programs, compiles C programs",
        "mac: to fetch: 62.1 MB of archives.",
        "mac: on disk: 200 MB of additional disk space will be used.",
    ] {
        assert!(said.lines().any(|it| it == line), "{line:?} is not in\n{said}");
    }
    assert!(installs(&machine));
}

#[test]
fn nothing_is_removed_without_being_asked() {
    let machine = without_gcc("door-removal");
    machine.file("removes", "");
    let output = machine.mac(&["bin"], &["words"]);
    let said = text(&output.stderr);
    assert!(said.contains("mac: apt would remove: libother\n"), "{said}");
    assert!(!output.status.success() && !installs(&machine), "{said}");
}

#[test]
fn no_install_installs_nothing_and_names_what_is_missing() {
    let machine = without_gcc("door-no-install");
    let output = machine.mac(&["bin"], &["--no-install", "words"]);
    assert!(text(&output.stderr).contains("mac: on Debian 12: apt-get install gcc\n"));
    assert!(!output.status.success() && !machine.calls().contains("apt-get"), "{}", machine.calls());
}

#[test]
fn a_compiler_that_is_too_old_is_not_installed() {
    let machine = without_gcc("door-security");
    machine.compiler("bin", 63);
    for (candidate, offers) in [("1.78.0+dfsg1-2", "only Rust 1.78"), ("(none)", "no compiler")] {
        machine.program("bin/apt-cache", &format!("echo '  Candidate: {candidate}'"));
        let output = machine.mac(&["bin"], &["words"]);
        let said = text(&output.stderr);
        assert!(said.contains(&format!("mac: Debian's archive offers {offers}; needed is")), "{said}");
        assert!(said.contains("http://security.debian.org/debian-security"), "{said}");
        assert!(!output.status.success() && !installs(&machine), "{said}");
    }
}

#[test]
fn without_a_network_one_line_says_that_packages_cannot_be_fetched() {
    let error = "E: Failed to fetch http://there/InRelease  Temporary failure resolving 'there'";
    let fails = format!("echo \"{error}\" >&2; echo 'E: Some index files failed' >&2; exit 100");
    // The three cases: the lists of packages are missing, a package is missing although the lists
    // exist, the compiler is too old.
    for (name, apt, minor) in [
        ("lists", fails.clone(), 96),
        ("package", APT.replace("--download-only*) ;;", &format!("--download-only*) {fails} ;;")), 96),
        ("compiler", fails.clone(), 63),
    ] {
        let machine = without_gcc(&format!("door-network-{name}"));
        machine.compiler("bin", minor);
        machine.program("bin/apt-get", &apt);
        if minor == 63 {
            machine.program("bin/apt-cache", "");
        }
        let output = machine.mac(&["bin"], &["words"]);
        let said = text(&output.stderr);
        let complaint = said.lines().last().unwrap_or_default();
        let expected = "mac: Debian's archive cannot be reached; is there a network? Failed to fetch http://there/InRelease";
        assert!(complaint.starts_with(expected), "{name}: {said}");
        assert_eq!(said.matches("there/").count(), 1, "{name}: {said}");
        assert!(!output.status.success());
    }
}

/// No source may keep the directory in which it was compiled: it would use that directory when the
/// checkout, together with `target`, was moved or copied.
#[test]
fn no_program_keeps_the_place_where_it_was_compiled() {
    let found = tree::own_files(&[".rs"]).unwrap();
    assert!(found.len() > 100);
    for file in found {
        let text = fs::read_to_string(&file).unwrap();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_TARGET_TMPDIR"] {
            let kept = text.contains(&format!("env!(\"{name}\""));
            // The output of a build script is kept in `target`, too.
            let printed = file.ends_with("build.rs") && text.contains(&format!("(\"{name}\")"));
            assert!(!kept && !printed, "{} keeps {name}", file.display());
        }
    }
}
