//! Checks the commands that the book names. Each `./mac ...` in code must be a command line that
//! the tool accepts; blocks that begin with ```` ```sh,run ```` are run, from the root of the tree,
//! and must end with status 0.

use super::{Code, prose};
use anyhow::{Result, bail};
use clap::Parser;
use clap::error::ErrorKind;
use mac_build::tree::read;
use mac_build::{packages, toolchain, tree};
use std::process::Command;

/// How many seconds a block of commands may take: it boots one machine at most.
const LIMIT: &str = "600";

/// Checks that every `./mac ...` in code of the book is a command line that the tool understands,
/// that `cargo ... -p` names packages of the tree, and that back quotes match: otherwise these
/// checks would take prose for code.
pub(crate) fn check() -> Result<()> {
    let packages = packages::all(&toolchain::host_cargo())?;
    let mut wrong = Vec::new();
    for file in prose()? {
        let code = Code::of(&read(&file)?);
        let file = tree::name(&file);
        for line in named(&code, "./mac ") {
            if let Some(error) = misunderstood(&line) {
                wrong.push(format!("{file}: {line}: {error}"));
            }
        }
        for line in named(&code, "cargo ") {
            let mut words = line.split(' ').skip_while(|word| *word != "-p").skip(1);
            if let Some(name) = words.next()
                && packages.iter().all(|package| package.name != name)
            {
                wrong.push(format!("{file}: {line}: there is no such package"));
            }
        }
        wrong.extend(code.unmatched.iter().map(|text| format!("{file}: a back quote alone: {text}")));
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
}

/// Runs the blocks that are marked to be run, one after the other. Returns how many there are.
pub(crate) fn run() -> Result<usize> {
    let mut count = 0;
    for file in prose()? {
        for block in blocks(&read(&file)?) {
            println!("# {}:\n{}", tree::name(&file), block.trim_end());
            let mut shell = Command::new("timeout");
            shell.args([LIMIT, "sh", "-euc", &block]).current_dir(tree::root());
            let output = shell.stdin(std::process::Stdio::null()).output()?;
            if !output.status.success() {
                let said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
                bail!("{block}ended with {}:\n{}", output.status, said.concat());
            }
            count += 1;
        }
    }
    Ok(count)
}

/// The blocks that are to be run.
fn blocks(text: &str) -> Vec<String> {
    let blocks = Code::of(text).blocks.into_iter();
    blocks.filter(|(words, _)| words == "sh,run").map(|(_, content)| content).collect()
}

/// The command lines in code that begin so.
fn named(code: &Code, begin: &str) -> Vec<String> {
    code.lines().filter_map(|line| command(line, begin)).collect()
}

/// The command in a line of code that begins with `begin`, up to a shell operator or an
/// explanation.
fn command(code: &str, begin: &str) -> Option<String> {
    let at = code.find(begin)?;
    let before = code[..at].trim();
    // Only a prompt or variables may stand before a command. Otherwise the text is prose.
    if !before.split(' ').all(|word| word.is_empty() || word == "$" || word.contains('=')) {
        return None;
    }
    let ends = ["  ", " # ", " | ", " > ", " 2> ", " && ", ": "];
    let command = &code[at..];
    let end = ends.iter().filter_map(|end| command.find(end)).min().unwrap_or(command.len());
    Some(command[..end].to_string())
}

/// Returns why the tool does not accept a command line, if it does not. Words in capitals are
/// placeholders.
fn misunderstood(line: &str) -> Option<String> {
    if line.contains("VERB") || line.contains("...") {
        return None;
    }
    let words = words(line);
    let Err(error) = crate::Arguments::try_parse_from(words) else { return None };
    let is_placeholder = error.get(clap::error::ContextKind::InvalidValue).is_some_and(|value| {
        value.to_string().chars().all(|it| it.is_ascii_uppercase() || it.is_ascii_punctuation())
    });
    match error.kind() {
        // Prose may name a verb without its arguments.
        ErrorKind::DisplayHelp | ErrorKind::MissingRequiredArgument => None,
        ErrorKind::ValueValidation | ErrorKind::InvalidValue if is_placeholder => None,
        _ => Some(error.to_string().lines().next().unwrap_or_default().into()),
    }
}

/// The words of a command line. Text between quotation marks is one word.
fn words(line: &str) -> Vec<&str> {
    let pieces = line.split(['"', '\'']).enumerate();
    let words = pieces.flat_map(|(place, piece)| match place % 2 {
        0 => piece.split_whitespace().map(|word| word.trim_matches(['[', ']', '…'])).collect(),
        _ => vec![piece],
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_code_of_every_kind() {
        let text = "`./mac help` and ./mac nothing and `MAC_PROFILE=quick ./mac test X`\n\n    $ ./mac run -- ls | head\n\
                    ```sh\n./mac check   # all of it\n```\n`see ./mac there`";
        let lines = ["./mac help", "./mac test X", "./mac run -- ls", "./mac check"];
        assert_eq!(named(&Code::of(text), "./mac "), lines);
        assert_eq!(named(&Code::of("`cargo test -p x | head`, cargo run"), "cargo "), ["cargo test -p x"]);
    }

    #[test]
    fn a_verb_or_an_option_that_is_not_there_is_found() {
        for line in [
            "./mac run --arguments 'a b'",
            "./mac test FST0006",
            "./mac stress SUITE… --seeds FROM..TO",
            "./mac build --help",
        ] {
            assert_eq!(misunderstood(line), None, "{line}");
        }
        for line in ["./mac tset", "./mac run --cpu 4", "./mac run --cpus many", "./mac check x"] {
            assert!(misunderstood(line).is_some(), "{line}");
        }
    }

    #[test]
    fn only_marked_blocks_are_run() {
        let text = "```sh\none\n```\n```sh,run\ntwo\nthree\n```\n```sh,run\nfour\n```\n";
        assert_eq!(blocks(text), ["two\nthree\n", "four\n"]);
    }
}
