//! Runs the C preprocessor on definitions.

use crate::options::Options;
use anyhow::{Context, Result, bail};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A preprocessed definition, and a rule for make with the files that the preprocessor read.
pub struct Preprocessed {
    /// The preprocessed text.
    pub text: String,
    /// The rule for make, if the options ask for dependencies.
    pub dependencies: Option<String>,
}

/// Runs the preprocessor on a file. The preprocessor's own messages go to the standard error.
///
/// # Errors
/// The preprocessor could not be run, or it failed.
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
    // `-C` keeps comments, which become the text of reference pages.
    process.args(words).arg("-C").args(&options.preprocessor_options);
    if let Some(record) = &record {
        process.arg("-MD").arg("-MF").arg(record);
    }
    process.arg(file).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = process.output().with_context(|| format!("cannot run the preprocessor `{program}`"))?;
    let dependencies = record.and_then(|record| {
        let text = std::fs::read_to_string(&record);
        // The file of dependencies is missing if the preprocessor has failed.
        let _ = std::fs::remove_file(&record);
        text.ok()
    });
    if !output.status.success() {
        bail!("{}: the preprocessor failed", file.display());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Preprocessed { text, dependencies })
}
