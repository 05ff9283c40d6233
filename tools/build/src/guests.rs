//! Builds Linux programs from the tree's sources: statically, by the host's compilers, without code
//! of Macadamia. Some are booted as modules, the others are part of guest images.

use crate::programs_c::make;
use crate::{command, tree};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// A Linux program that is built from one source file.
struct Program {
    name: &'static str,
    /// The path of the source from the root of the tree.
    source: &'static str,
    compiler: &'static str,
}

const fn program(name: &'static str, source: &'static str, compiler: &'static str) -> Program {
    Program { name, source, compiler }
}

/// The programs that tests boot as modules.
const MODULES: [Program; 3] = [
    program("hello-musl", "tests/guests/hello.c", "musl-gcc"),
    program("hello-glibc", "tests/guests/hello.c", "gcc"),
    program("attack", "tests/guests/attack.c", "musl-gcc"),
];

/// The programs in the images of guest tests, below /tests/bin.
const TESTS: [Program; 23] = [
    program("attack", "tests/guests/attack.c", "musl-gcc"),
    program("clocks", "tests/guests/clocks.c", "gcc"),
    program("file-signals", "tests/guests/file_signals.c", "gcc"),
    program("generations", "tests/guests/generations.c", "musl-gcc"),
    program("kernel-memory", "tests/guests/kernel_memory.c", "musl-gcc"),
    program("limits", "tests/guests/limits.c", "gcc"),
    program("load-modules", "tests/guests/load_modules.c", "musl-gcc"),
    program("memory", "tests/guests/memory.c", "musl-gcc"),
    program("power-cuts", "tests/guests/power_cuts.c", "musl-gcc"),
    program("threads-musl", "tests/guests/threads.c", "musl-gcc"),
    program("threads-glibc", "tests/guests/threads.c", "gcc"),
    program("processes", "tests/guests/processes.c", "musl-gcc"),
    program("fuzz", "tests/guests/fuzz.c", "musl-gcc"),
    program("hammer", "tests/guests/hammer.c", "gcc"),
    program("processors", "tests/guests/processors.c", "gcc"),
    program("extremes", "tests/guests/extremes.c", "musl-gcc"),
    program("killed", "tests/guests/killed.c", "musl-gcc"),
    program("inspect", "tests/guests/inspect.c", "musl-gcc"),
    program("rights", "tests/guests/rights.c", "musl-gcc"),
    program("shares", "tests/guests/shares.c", "musl-gcc"),
    program("swap", "tests/guests/swap.c", "gcc"),
    program("users", "tests/guests/users.c", "musl-gcc"),
    program("watched", "tests/guests/watched.c", "musl-gcc"),
];

/// The programs that measure, in the images of benchmarks.
const BENCHMARKS: [Program; 9] = [
    program("calls", "bench/guests/calls.c", "musl-gcc"),
    program("file-calls", "bench/guests/file-calls.c", "musl-gcc"),
    program("process-calls", "bench/guests/process-calls.c", "musl-gcc"),
    program("lmbench", "bench/guests/lmbench.c", "musl-gcc"),
    program("network", "bench/guests/network.c", "musl-gcc"),
    program("device", "bench/guests/device.c", "musl-gcc"),
    program("disk", "bench/guests/disk.c", "musl-gcc"),
    program("servers", "bench/guests/servers.c", "musl-gcc"),
    program("speedup", "bench/guests/speedup.c", "musl-gcc"),
];

/// The program that is the first process of every image.
const INIT: Program = program("init", "guests/programs/init.c", "musl-gcc");

/// Builds the modules whose sources have changed. Returns all modules.
pub fn build(verbose: bool) -> Result<Vec<PathBuf>> {
    MODULES.iter().map(|program| program.build(verbose)).collect()
}

/// Builds the programs of guest tests. Returns the name and the file of each.
pub fn tests() -> Result<Vec<(String, PathBuf)>> {
    TESTS.iter().map(|program| Ok((program.name.to_string(), program.build(false)?))).collect()
}

/// Builds the programs of guest benchmarks. Returns the name and the file of each, and of the
/// scripts that they run.
pub fn benchmarks() -> Result<Vec<(String, PathBuf)>> {
    let scripts = ["files.sh", "work.sh"]
        .map(|script| Ok((script.to_string(), tree::root().join("bench/guests").join(script))));
    let programs = BENCHMARKS.iter().map(|program| Ok((program.name.to_string(), program.build(false)?)));
    programs.chain(scripts).collect()
}

/// Builds the program that is the first process of guests.
pub fn init() -> Result<PathBuf> {
    INIT.build(false)
}

/// Builds the program that measures interactive sessions.
pub fn stopwatch() -> Result<PathBuf> {
    program("stopwatch", "bench/guests/stopwatch.c", "musl-gcc").build(false)
}

impl Program {
    fn build(&self, verbose: bool) -> Result<PathBuf> {
        let program = tree::target().join("guests").join(self.name);
        make(&program, &inputs(&tree::root().join(self.source))?, verbose, || {
            let mut compile = command::clean(self.compiler);
            compile.args(["-static", "-no-pie", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"]);
            compile.arg(&program).arg(self.source);
            compile
        })?;
        Ok(program)
    }
}

/// The source and the headers near it.
fn inputs(source: &Path) -> Result<Vec<PathBuf>> {
    let headers = tree::files(source.parent().unwrap_or(Path::new(".")), &[".h"])?;
    Ok(headers.into_iter().chain([source.to_path_buf()]).collect())
}
