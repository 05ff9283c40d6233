//! Finds the booted suites that report a test with a given id, for `./mac test FST0006`.
//!
//! Ids of expected texts, of scripts of guests and of interactive scripts are in the tables and
//! scripts. Ids of programs that report in TAP are found in the programs' sources.

use anyhow::Result;
use mac_build::packages::{self, Package};
use mac_build::{toolchain, tree};
use mac_machine::qemu;
use mac_machine::suites::Suite;
use std::path::{Path, PathBuf};

/// The program whose command line selects chapters or tests, and the directory of its chapters.
pub(crate) const CHOOSES: &str = "x2-tests";
const CHAPTERS: &str = "tests/x2/src/chapters";
/// The index of the module that is the root task.
const ROOT_TASK: usize = 1;
/// The words of its command line that select nothing.
const OPTIONS: [&str; 2] = ["leak-check", "regions"];

/// The directories of the sources of native programs.
pub(crate) struct Sources {
    packages: Vec<Package>,
}

impl Sources {
    pub(crate) fn find() -> Result<Sources> {
        Ok(Sources { packages: packages::all(&toolchain::host_cargo())? })
    }

    /// Whether a suite reports the test with this id.
    pub(crate) fn report(&self, suite: &Suite, id: &str) -> Result<bool> {
        if suite.expect.iter().any(|expectation| expectation.id == id) {
            return Ok(true);
        }
        if mac_guest::ids(suite)?.iter().any(|script| script == id) {
            return Ok(true);
        }
        if suite.tests.is_none() {
            return Ok(false);
        }
        for (place, module) in suite.modules().enumerate() {
            let program = qemu::module_name(module);
            // The program reports tests only as the root task; as another module it is just a file.
            let reports = match program {
                CHOOSES if place == ROOT_TASK => chapter_of(id)?.is_some_and(|it| chooses(module, &it, id)),
                CHOOSES => false,
                _ => self.has(program, id)?,
            };
            if reports {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the sources of a program contain the test.
    fn has(&self, program: &str, id: &str) -> Result<bool> {
        let Some(directory) = self.directory(program) else { return Ok(false) };
        Ok(find(&directory, id)?.is_some())
    }

    fn directory(&self, program: &str) -> Option<PathBuf> {
        let in_c = tree::root().join("tests/c").join(program);
        let package =
            || self.packages.iter().find(|package| package.binaries.iter().any(|binary| binary == program));
        if in_c.is_dir() { Some(in_c) } else { package().map(|package| package.directory.join("src")) }
    }
}

/// Whether a command line selects the test or its chapter, or selects nothing.
fn chooses(module: &str, chapter: &str, id: &str) -> bool {
    let mut words = module.split(' ').skip(1).filter(|word| !OPTIONS.contains(word)).peekable();
    words.peek().is_none() || words.any(|word| word == chapter || word == id)
}

/// The chapter that contains the test.
fn chapter_of(id: &str) -> Result<Option<String>> {
    let root = tree::root().join(CHAPTERS);
    let Some(file) = find(&root, id)? else { return Ok(None) };
    let path = file.strip_prefix(&root)?.with_extension("");
    Ok(Some(path.to_string_lossy().replace(['_', '/'], "-")))
}

/// The first source below a directory, or included there, that has the test.
fn find(directory: &Path, id: &str) -> Result<Option<PathBuf>> {
    for file in files(directory)? {
        if names(&tree::read(&file)?, id) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The sources below a directory, and sources of other programs that they include.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = tree::files(directory, &[".rs", ".c", ".cc"])?;
    for path in found.clone() {
        let (text, parent) = (tree::read(&path)?, path.parent().unwrap_or(directory));
        let included = text.lines().filter_map(|line| line.strip_prefix("#include \"../")?.split('"').next());
        found.extend(included.map(|name| parent.join("..").join(name)).filter(|file| file.is_file()));
    }
    Ok(found)
}

/// Whether a source has this id outside comments.
fn names(source: &str, id: &str) -> bool {
    let code =
        source.lines().filter(|line| !["//", "/*", "*"].iter().any(|it| line.trim_start().starts_with(it)));
    code.flat_map(|line| line.split(|it: char| !it.is_ascii_alphanumeric())).any(|word| word == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_machine::suites;

    fn with(id: &str) -> Vec<String> {
        let sources = Sources::find().unwrap();
        let mut all = suites::read(suites::TESTS).unwrap();
        all.extend(suites::read(suites::GUESTS).unwrap());
        all.retain(|suite| sources.report(suite, id).unwrap());
        all.into_iter().map(|suite| suite.name).collect()
    }

    #[test]
    fn tests_of_every_kind_are_found_by_their_ids() {
        assert_eq!(with("BOOT0090"), ["boot/processors-alone"]);
        assert_eq!(with("SHELL0012"), ["shell/programs"]);
        assert_eq!(with("CAPI0001"), ["x2/c", "x2/c-as-cxx"]);
        assert_eq!(with("MACH0001"), ["mach/native"]);
        assert_eq!(with("STB0001"), ["x2/string-boundaries"]);
        let fast = with("FST0006");
        assert!(fast.contains(&"x2/ipc".into()) && !fast.contains(&"x2/kip".into()), "{fast:?}");
        assert!(with("FST9999").is_empty());
    }

    #[test]
    fn comments_name_other_tests() {
        assert!(names("    FST0001 [7.1] \"words\" words;\n", "FST0001"));
        assert!(
            names("    check(\"RT0001\", ok);\n", "RT0001")
                && !names("    check(\"RT0001\", ok);\n", "RT000")
        );
        assert!(!names("// as FST0001\n/* FST0001 */\n * FST0001\n", "FST0001"));
    }

    #[test]
    fn a_command_line_chooses_chapters_or_tests() {
        assert!(chooses("x2-tests kip ipc leak-check", "ipc", "IPC0001"));
        assert!(
            chooses("x2-tests IPC0001", "ipc", "IPC0001") && chooses("x2-tests leak-check", "ipc", "IPC0001")
        );
        assert!(!chooses("x2-tests kip IPC0002", "ipc", "IPC0001"));
    }
}
