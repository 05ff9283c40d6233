//! Everything behind `./mac`: builds, boots, tests and measures Macadamia.
//!
//! One module per concern; `main` only reads the command line and dispatches. Every verb returns an error that says
//! what is wrong and what to do; `main` prints it and exits with status 1.
#![forbid(unsafe_code)]

mod build;
mod command;
mod packages;
mod programs_c;
mod toolchain;
mod tree;

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
    Build(build::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Build(options) => build::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mac: {error:#}");
            ExitCode::FAILURE
        }
    }
}
