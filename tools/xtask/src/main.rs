//! Everything that `./mac` does: it builds, boots, tests and measures Macadamia.
//!
//! There is one module for each subject; `main` only reads the command line and calls the module.
//! Every verb returns an error that says what is wrong and what to do; `main` prints it and exits
//! with status 1.
#![forbid(unsafe_code)]

mod book;
mod check;
mod documentation;
#[cfg(test)]
mod front_door;
mod host_tests;
mod ids;
mod mutations;
mod requests;
mod rules;
mod run;
mod stress;
mod test;
mod words;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "mac", bin_name = "./mac", about = "Builds, boots, tests and measures Macadamia")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Build the kernel and every native program
    Build(mac_build::build::Options),
    /// Check formatting, lints (for host code and for code of the bare machine), the book's links
    /// and commands, words
    Check,
    /// Run every test: on the host, in booted machines, and the lints
    Test(test::Options),
    /// Boot suites about races again and again, with other random delays each time
    Stress(stress::Options),
    /// Measure: boot the benchmarks, count instructions, print a table
    Bench(mac_lab::bench::Options),
    /// Boot in QEMU with the console in this terminal (Ctrl-] X leaves)
    Run(run::RunOptions),
    /// Boot what `run` boots, stopped, waiting for gdb
    Debug(run::DebugOptions),
    /// Write an ISO image that boots under BIOS and UEFI, from CD or USB
    Image(run::ImageOptions),
    /// Render the book into target/book, with search
    Book(book::Options),
    /// Render the documentation of the libraries into target/doc
    Doc,
    /// Lower the counts of words that comments and prose should not use
    Words,
    /// Show what guest images consist of, or take the newest packages
    Packages(mac_guest::PackagesOptions),
    /// Record what the guest tests print under Debian's own kernel
    Record(mac_guest::RecordOptions),
    /// Run the interactive sessions of tests/interactive at a shell of Linux programs
    Interact(mac_guest::InteractOptions),
    /// Show that the tests notice what they are there for: try each patch of tests/mutations
    Mutations(mutations::Options),
    /// Write which tests show which rule of the interface into the book
    Rules,
    /// Measure an interactive session at the shell in instructions, compared with Debian's own
    /// kernel
    Measure(mac_lab::measure::Options),
    /// Make a table of a trace that the kernel debugger dumped
    Trace(mac_lab::trace::Options),
}

/// Whether a panic says only that the reader of the output has ended, as `head` does after some
/// lines.
fn has_no_reader(panic: &str) -> bool {
    panic.starts_with("failed printing to stdout") && panic.contains("Broken pipe")
}

fn main() -> ExitCode {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match panic.payload_as_str() {
        Some(text) if has_no_reader(text) => {}
        _ => hook(panic),
    }));
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match Arguments::parse().verb {
        Verb::Build(options) => done(mac_build::build::run(&options)),
        Verb::Check => done(check::run()),
        Verb::Test(options) => done(test::run(&options)),
        Verb::Stress(options) => done(stress::run(&options)),
        Verb::Bench(options) => done(mac_lab::bench::run(&options)),
        Verb::Run(options) => run::run(&options),
        Verb::Debug(options) => run::debug(&options),
        Verb::Image(options) => done(run::image(&options)),
        Verb::Book(options) => done(book::run(&options)),
        Verb::Doc => done(documentation::run()),
        Verb::Words => done(words::lower()),
        Verb::Packages(options) => done(mac_guest::packages(&options)),
        Verb::Record(options) => done(mac_guest::record(&options)),
        Verb::Interact(options) => done(mac_guest::interact(&options)),
        Verb::Rules => done(rules::update()),
        Verb::Mutations(options) => done(mutations::run(&options)),
        Verb::Measure(options) => done(mac_lab::measure::run(&options)),
        Verb::Trace(options) => done(mac_lab::trace::run(&options)),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mac: {error:#}");
            ExitCode::FAILURE
        }
    }
}
