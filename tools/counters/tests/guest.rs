//! Tests the plugin in a real QEMU, with a guest of which every instruction is known.

use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> std::process::Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    eprintln!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// The plugin that cargo has built for this test: it lies next to the test's own executable.
fn plugin() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    executable.with_file_name("liblab_counters.so")
}

/// Boots the guest with the plugin. Returns the lines that the plugin has written.
fn count(name: &str, arguments: &str) -> Vec<String> {
    let directory = std::env::temp_dir().join(format!("counters-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (object, guest, out) =
        (directory.join("guest.o"), directory.join("guest.elf"), directory.join("counts.jsonl"));
    // cargo starts a test in the directory of its package.
    let source = "tests/guest.s";
    assert!(run(Command::new("as").args(["--32", source, "-o"]).arg(&object)).status.success());
    let link = ["-m", "elf_i386", "-nostdlib", "-Ttext=0x100000", "-o"];
    assert!(run(Command::new("ld").args(link).arg(&guest).arg(&object)).status.success());
    let output = run(Command::new("qemu-system-x86_64")
        .args(["-accel", "tcg", "-icount", "shift=0", "-m", "64", "-display", "none", "-no-reboot"])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=1", "-kernel"])
        .arg(&guest)
        .arg("-plugin")
        .arg(format!("{},out={}{arguments}", option(&plugin()), option(&out))));
    assert_eq!(output.status.code(), Some(1));
    let lines = std::fs::read_to_string(out).unwrap().lines().map(str::to_string).collect();
    std::fs::remove_dir_all(directory).unwrap();
    lines
}

/// A path as a value in QEMU's options, in which a comma is doubled.
fn option(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn field(line: &str, name: &str) -> u64 {
    let at = line.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {line}"));
    let digits = &line[at + name.len() + 3..];
    digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[test]
fn every_instruction_access_and_line_is_counted_exactly() {
    let lines = count("exact", "");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let first = &lines[0];
    assert_eq!((field(first, "region"), field(first, "processor")), (1, 0));
    assert_eq!(field(first, "instructions"), 41);
    assert_eq!(field(first, "locked"), 10);
    assert_eq!((field(first, "loads"), field(first, "stores")), (20, 10));
    assert_eq!((field(first, "data_lines"), field(first, "l1d_misses")), (2, 2));
    let second = &lines[1];
    assert_eq!((field(second, "cr3_load"), field(second, "port_io")), (1, 1));
    assert_eq!(field(second, "bulk_bytes"), 4096);
    assert_eq!(field(second, "data_lines"), 128);
    assert_eq!(field(second, "l1d_misses"), 128);
}

#[test]
fn what_is_copied_is_counted_with_the_work() {
    let lines = count("copied", ",work=on,bulk=on");
    let line = lines.iter().find(|line| field(line, "region") == 2).unwrap();
    assert_eq!(field(line, "bulk_bytes"), 4096);
}

#[test]
fn the_same_run_gives_the_same_counts() {
    assert_eq!(count("once", ""), count("again", ""));
}

#[test]
fn a_smaller_cache_misses_more() {
    // The cache has a single line, so the two lines of the loop of region 1 replace each other.
    let lines = count("small", ",l1d=64/1");
    assert_eq!(field(&lines[0], "l1d_misses"), 20);
}
