//! The program's main work: compiles the definitions of a command line and writes the files.

use crate::c::{self, CStyle};
use crate::diagnostic::{Diagnostic, Severity};
use crate::direct;
use crate::interface::Interface;
use crate::options::{Options, Output};
use crate::output::Files;
use crate::preprocess::{self, Preprocessed};
use crate::target::Dialect;
use crate::{Compiled, compile, list, message, page};
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Compiles the files that the options name and writes the outputs that they ask for.
///
/// # Errors
/// A definition has errors, which are reported on the standard error, or a file could not be read:
/// then nothing has been written. Or a file could not be written.
pub fn run(options: &Options) -> Result<()> {
    let mut files = Files::default();
    if options.files.is_empty() {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read the standard input")?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        one(options, Path::new("<stdin>"), &Preprocessed { text, dependencies: None }, &mut files)?;
    }
    for file in &options.files {
        if options.verbose {
            eprintln!("mig: reading {}", file.display());
        }
        one(options, file, &preprocess::run(file, options)?, &mut files)?;
    }
    if options.verbose {
        files.paths().for_each(|path| eprintln!("mig: writing {}", path.display()));
    }
    files.write()
}

fn one(options: &Options, file: &Path, text: &Preprocessed, files: &mut Files) -> Result<()> {
    let compiled = compile(options.target, &file.to_string_lossy(), &text.text);
    let interface = checked(options, file, &compiled)?;
    if options.check {
        return Ok(());
    }
    if !interface.has_subsystem {
        bail!("{}: no `subsystem`: there is nothing to write; -check only reads", file.display());
    }
    let first = files.paths().count();
    write(options, &compiled, interface, files)?;
    if let Some(dependencies) = &text.dependencies {
        let targets: Vec<String> = files.paths().skip(first).map(|path| path.display().to_string()).collect();
        let sources = dependencies.split_once(':').map_or("", |(_, sources)| sources);
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        files.add(PathBuf::from(format!("{stem}-mig.d")), format!("{}:{sources}", targets.join(" ")));
    }
    Ok(())
}

/// Prints the diagnostics on the standard error. Returns the interface if none of them is an error.
fn checked<'a>(options: &Options, file: &Path, compiled: &'a Compiled) -> Result<&'a Interface> {
    for found in &compiled.diagnostics {
        if found.severity == Severity::Error || !options.quiet {
            eprintln!("{}", found.render(&compiled.source));
        }
    }
    let count = compiled.diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
    match &compiled.interface {
        Some(interface) => Ok(interface),
        None => {
            let errors = if count == 1 { "error" } else { "errors" };
            bail!("{}: {count} {errors}", file.display())
        }
    }
}

/// A back end that writes stubs; it fails for interfaces that its language cannot express.
type Module = fn(&Interface) -> std::result::Result<String, Diagnostic>;

fn write(options: &Options, compiled: &Compiled, interface: &Interface, files: &mut Files) -> Result<()> {
    messages(options, interface, files)?;
    for (output, way, module) in [
        (Output::Rust, "have stubs in Rust", message::module as Module),
        (Output::AsyncRust, "have stubs in Rust", message::async_module),
        (Output::DirectRust, "go by direct IPC", direct::module),
        (Output::DirectC, "go by direct IPC", direct::header),
    ] {
        if let Some(path) = options.path(output, None) {
            match module(interface) {
                Ok(text) => files.add(path, text),
                Err(found) => {
                    eprintln!("{}", found.render(&compiled.source));
                    bail!("{} cannot {way}", interface.name);
                }
            }
        }
    }
    if let Some(path) = options.path(Output::List, None) {
        files.add(path, list::names(interface));
    }
    if let Some(path) = options.path(Output::Page, None) {
        files.add(path, page::page(interface));
    }
    if let Some(path) = options.path(Output::Layout, None) {
        files.add(path, list::layouts(interface));
    }
    Ok(())
}

/// Adds the C files of stubs over Mach messages to `files`.
fn messages(options: &Options, interface: &Interface, files: &mut Files) -> Result<()> {
    let named = |suffix: &str| Some(format!("{}{suffix}", interface.name));
    let header = options.path(Output::Header, named(".h"));
    let server_header = options.path(Output::ServerHeader, None);
    let user = options.path(Output::User, named("User.c"));
    let server = options.path(Output::Server, named("Server.c"));
    let (internal, definitions) =
        (options.path(Output::InternalHeader, None), options.path(Output::DefinitionsHeader, None));
    if interface.target.dialect == Dialect::Typed && (internal.is_some() || definitions.is_some()) {
        bail!("-iheader and -dheader: the typed dialect has no such headers; -dialect untyped has them");
    }
    let style = CStyle {
        prefix: options.prefix.clone(),
        symbols: options.symbols,
        header: header.as_ref().map_or_else(String::new, |path| path.display().to_string()),
    };
    if let Some(path) = header {
        files.add(path, c::header(interface, &style));
    }
    if let Some(path) = server_header {
        files.add(path, c::server_header(interface));
    }
    if let Some(path) = internal {
        files.add(path, c::internal_header(interface, &style));
    }
    if let Some(path) = definitions {
        files.add(path, c::definitions_header(interface));
    }
    match &options.separate {
        Some(prefix) => {
            for (name, text) in c::separate_users(interface, &style) {
                files.add(PathBuf::from(format!("{prefix}{name}.c")), text);
            }
        }
        None => {
            if let Some(path) = user {
                files.add(path, c::user(interface, &style));
            }
        }
    }
    if let Some(path) = server {
        files.add(path, c::server(interface, &style));
    }
    Ok(())
}
