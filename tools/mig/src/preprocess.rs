//! Running the C preprocessor.

use crate::options::Options;
use anyhow::{Context, Result, bail};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A preprocessed definition and the files that it was made of, in make's words.
pub struct Preprocessed {
    /// The text.
    pub text: String,
    /// The dependencies, if they were asked for.
    pub dependencies: Option<String>,
}

/// Runs the preprocessor on a file. Its own messages go to the standard error.
///
/// # Errors
/// It could not be run, or it failed.
pub fn run(file: &Path, options: &Options) -> Result<Preprocessed> {
    let command = options.preprocessor.clone().or_else(|| env::var("CPP").ok());
    let command = command.unwrap_or_else(|| {
        format!("{} -E -x c -undef -ansi", env::var("CC").unwrap_or_else(|_| "gcc".to_owned()))
    });
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else { bail!("the name of the preprocessor is empty") };
    if !file.is_file() {
        bail!("{}: there is no such file", file.display());
    }
    let record = options.dependencies.then(|| PathBuf::from(format!("{}.mig-deps", file.display())));
    let mut process = Command::new(program);
    // Comments become the text of pages.
    process.args(words).arg("-C").args(&options.preprocessor_options);
    if let Some(record) = &record {
        process.arg("-MD").arg("-MF").arg(record);
    }
    process.arg(file).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = process.output().with_context(|| format!("cannot run the preprocessor `{program}`"))?;
    let dependencies = record.and_then(|record| {
        let text = std::fs::read_to_string(&record);
        // The record is there only if the preprocessor has written it.
        let _ = std::fs::remove_file(&record);
        text.ok()
    });
    if !output.status.success() {
        bail!("{}: the preprocessor failed", file.display());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Preprocessed { text, dependencies })
}
