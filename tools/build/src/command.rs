//! Starts other programs, in an environment that does not influence builds, and reports their
//! errors.

use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a variable influences cargo or rustc, and so must not be passed to the compilers that
/// are started. The variables that say where cargo has its home and its registry are passed, since
/// a machine may reach only a mirror. So is the one for incremental builds, which does not change
/// results.
fn steers_compiler(name: &str) -> bool {
    const KEPT: [&str; 6] =
        ["CARGO_HOME", "CARGO_HTTP_", "CARGO_INCREMENTAL", "CARGO_NET_", "CARGO_REGISTR", "CARGO_SOURCE_"];
    if KEPT.iter().any(|kept| name.starts_with(kept)) {
        return false;
    }
    ["CARGO", "RUSTC", "RUSTDOC", "RUSTFLAGS", "RUSTUP_TOOLCHAIN"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// A command that is started in the root of the tree. Its environment does not influence cargo or
/// rustc, and the program's own directory is first in PATH, so that a cargo finds the rustc next to
/// it.
pub fn clean(program: impl AsRef<OsStr>) -> Command {
    let program = program.as_ref();
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(steers_compiler) {
            command.env_remove(name);
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(directory) = Path::new(program).parent().filter(|directory| directory.is_absolute()) {
        let mut joined = OsString::from(directory);
        joined.push(":");
        joined.push(path);
        command.env("PATH", joined);
    }
    command.env("RUSTUP_AUTO_INSTALL", "0").current_dir(crate::tree::root());
    command
}

/// Runs a command to its end; its output goes to the terminal. `what` names the step in the error.
pub fn run(command: &mut Command, what: &str) -> Result<()> {
    let status =
        command.status().with_context(|| format!("{what}: cannot start {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{what}: {} {status}", Path::new(command.get_program()).display());
    }
    Ok(())
}

/// Runs a command to its end. Returns its output without the final newline.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_owned();
    let output =
        command.output().with_context(|| format!("cannot start {}", Path::new(&program).display()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({}): {}", Path::new(&program).display(), output.status, stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string())
}

/// The first executable of this name in PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_steering_is_removed_and_registry_settings_are_kept() {
        for name in ["CARGO", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTFLAGS", "RUSTUP_TOOLCHAIN"] {
            assert!(steers_compiler(name), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_INCREMENTAL",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_X_INDEX",
            "RUSTUP_HOME",
            "PATH",
        ] {
            assert!(!steers_compiler(name), "{name}");
        }
    }

    #[test]
    fn a_failing_command_is_an_error_with_its_words() {
        let error = output(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"])).unwrap_err();
        assert!(format!("{error:#}").contains("no such luck"));
        assert!(run(&mut Command::new("/nonexistent"), "a step").unwrap_err().to_string().contains("a step"));
    }
}
