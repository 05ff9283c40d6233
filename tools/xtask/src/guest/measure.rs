//! `./mac measure`: what a person's work at the shell costs, in instructions, on Macadamia and under Debian's own kernel.

use super::session::{Kernel, Mode, Start};
use super::{Request, make};
use crate::systems::Hardware;
use crate::{build, guests, tree};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::Path;

/// Options of `./mac measure`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Put the table into the book
    #[arg(long)]
    publish: bool,
}

/// KiB of memory of the machine.
const MEMORY: u64 = 512 << 10;
/// Where the table stands.
const CHAPTER: &str = "docs/src/results.md";
const BEGIN: &str = "<!-- measured at the shell -->\n";
const END: &str = "<!-- end -->";
/// What the shell does instead of asking for its first command.
const AT_THE_PROMPT: &str = "PROMPT_COMMAND='/bench/stopwatch now \"power-on to the prompt\"; \
     sed -n \"s/^MemFree: */free at the prompt\\t/p\" /proc/meminfo >&2; exit 0'\n";

/// Boots both systems twice, prints the table, and publishes it if that is wanted.
pub(crate) fn run(options: &Options) -> Result<()> {
    build::everything(&build::Options::default())?;
    let ours = measure(Kernel::Macadamia)?;
    let linux = measure(Kernel::Linux)?;
    let profile = build::profile()?;
    let table = format!("Built with the profile `{profile}`.\n\n{}", table(&ours, &linux)?);
    print!("{table}");
    if options.publish {
        let path = tree::root().join(CHAPTER);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {CHAPTER}"))?;
        build::write_if_changed(&path, renewed(&text, &table)?.as_bytes())?;
    }
    Ok(())
}

/// A name and what was measured.
type Figures = Vec<(String, u64)>;

/// What one system takes for everything.
fn measure(kernel: Kernel) -> Result<Figures> {
    let mut request = Request { name: "shell".into(), ..Request::default() };
    request.files.push(("bench/stopwatch".into(), guests::stopwatch()?));
    request.files.push(("bench/shell.sh".into(), tree::root().join("bench/guests/shell.sh")));
    let profile = tree::target().join("guests/measure.bash_profile");
    build::write_if_changed(&profile, AT_THE_PROMPT.as_bytes())?;
    request.files.push(("root/.bash_profile".into(), profile));
    let image = make(&request)?;
    let size = std::fs::metadata(&image.path).context("the image's size")?.len();
    let mut figures = vec![("image".to_string(), size >> 10)];
    for command in [Vec::new(), vec!["/bench/shell.sh".to_string()]] {
        figures.extend(boot(kernel, &image.path, command)?);
    }
    Ok(figures)
}

/// Boots with instructions counted; returns what the stopwatch has reported.
fn boot(kernel: Kernel, image: &Path, command: Vec<String>) -> Result<Figures> {
    let mut machine = Hardware::plain().machine();
    machine.icount = true;
    machine.arguments = "exit".into();
    let environment = [("TERM", "xterm-256color"), ("ROWS", "24"), ("COLUMNS", "80")];
    let environment = environment.map(|(name, value)| (name.to_string(), value.to_string())).to_vec();
    let image = image.to_path_buf();
    let start = Start { kernel, mode: Mode::Exception, image, command, greet: true, environment, machine };
    Ok(figures(&start.output("measure")?))
}

/// The lines of a name, a tabulator and a number.
fn figures(shown: &str) -> Figures {
    let line = |line: &str| {
        let (name, number) = line.trim_end().split_once('\t')?;
        let number = number.split(' ').next()?.parse().ok()?;
        Some((name.to_string(), number))
    };
    shown.lines().filter_map(line).collect()
}

/// The table of the book.
fn table(ours: &Figures, linux: &Figures) -> Result<String> {
    let mut text = String::from("| | Macadamia | Linux | ratio |\n|---|---|---|---|\n");
    for (name, our) in ours {
        let found = linux.iter().find(|(other, _)| other == name);
        let (_, theirs) = found.with_context(|| format!("{name} was not measured under Linux"))?;
        let (name, our, theirs, unit) = match name.as_str() {
            "image" => ("image of the root file system", *our, *theirs, "KiB"),
            "free at the prompt" => ("memory in use at the prompt", MEMORY - our, MEMORY - theirs, "KiB"),
            name => (name, *our, *theirs, "instructions"),
        };
        let ratio = our as f64 / theirs as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {name}, {unit} | {} | {} | {ratio:.1} |", grouped(our), grouped(theirs));
    }
    Ok(text)
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// The chapter with this table in its place.
fn renewed(text: &str, table: &str) -> Result<String> {
    let (before, behind) =
        text.split_once(BEGIN).with_context(|| format!("{CHAPTER} has no place for it"))?;
    let (_, after) = behind.split_once(END).with_context(|| format!("{CHAPTER}: the table has no end"))?;
    Ok(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_a_table_and_the_table_a_part_of_the_chapter() {
        let ours = figures("noise\r\nimage\t10\r\nfree at the prompt\t524000 kB\r\na thing\t1234567\r\n");
        let linux = figures("image\t10\nfree at the prompt\t523288\na thing\t617283\n");
        let table = table(&ours, &linux).unwrap();
        assert!(table.contains("| a thing, instructions | 1 234 567 | 617 283 | 2.0 |"), "{table}");
        assert!(table.contains("| memory in use at the prompt, KiB | 288 | 1 000 | 0.3 |"), "{table}");
        let chapter = format!("x\n{BEGIN}old\n{END}\ny\n");
        assert_eq!(renewed(&chapter, "new\n").unwrap(), format!("x\n{BEGIN}\nnew\n\n{END}\ny\n"));
    }
}
