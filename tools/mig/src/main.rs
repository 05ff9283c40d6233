//! `mig`: see `mig -help`.
#![forbid(unsafe_code)]

use mig::options::{HELP, Options, Request};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Ok(Request::Help) => print!("{HELP}"),
        Ok(Request::Version) => println!("mig {}", env!("CARGO_PKG_VERSION")),
        Ok(Request::Compile(options)) => {
            if let Err(error) = mig::driver::run(&options) {
                eprintln!("mig: {error:#}");
                return ExitCode::FAILURE;
            }
        }
        Err(error) => {
            eprintln!("mig: {error:#}; mig -help explains the options");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
