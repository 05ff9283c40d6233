//! The command line, as makefiles use it: options are words after one dash.

use crate::target::{Dialect, Target};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// What is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The client's functions over messages, in C.
    User,
    /// The server's side over messages, in C.
    Server,
    /// The header of the client's functions.
    Header,
    /// The header of the server's functions.
    ServerHeader,
    /// The header of the client's functions for the program's own files.
    InternalHeader,
    /// A header of ids.
    DefinitionsHeader,
    /// Names and ids.
    List,
    /// The layouts of all messages.
    Layout,
    /// A page for people.
    Page,
    /// Both sides over messages, in Rust.
    Rust,
    /// Both sides over direct L4 IPC, in Rust.
    DirectRust,
    /// Both sides over direct L4 IPC, in C.
    DirectC,
}

/// The options for outputs. Those of the last kind suppress the files that are written otherwise.
const OUTPUTS: [(&str, Output); 12] = [
    ("-user", Output::User),
    ("-server", Output::Server),
    ("-header", Output::Header),
    ("-sheader", Output::ServerHeader),
    ("-iheader", Output::InternalHeader),
    ("-dheader", Output::DefinitionsHeader),
    ("-list", Output::List),
    ("-layout", Output::Layout),
    ("-page", Output::Page),
    ("-rust", Output::Rust),
    ("-l4-rust", Output::DirectRust),
    ("-l4-c", Output::DirectC),
];

/// The command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// For which machine and dialect.
    pub target: Target,
    /// Definitions; none: the standard input, already preprocessed.
    pub files: Vec<PathBuf>,
    /// What is written where.
    pub outputs: Vec<(Output, PathBuf)>,
    /// Only the outputs that are named.
    pub only_named: bool,
    /// Only read and check.
    pub check: bool,
    /// A file for each of the client's functions: what the files' names begin with.
    pub separate: Option<String>,
    /// What the names of the client's functions begin with, before `userprefix`.
    pub prefix: String,
    /// A table of names in the server.
    pub symbols: bool,
    /// No warnings.
    pub quiet: bool,
    /// Say what is done.
    pub verbose: bool,
    /// Write a file of dependencies for make.
    pub dependencies: bool,
    /// The preprocessor, if it is not the usual one.
    pub preprocessor: Option<String>,
    /// Options of the preprocessor.
    pub preprocessor_options: Vec<String>,
}

/// What the command line asks for.
#[derive(Clone, Debug)]
pub enum Request {
    /// To compile.
    Compile(Box<Options>),
    /// To explain the options.
    Help,
    /// To say which version it is.
    Version,
}

/// The options, explained.
pub const HELP: &str = "\
usage: mig [option]... [file.defs]...

Writes the stubs of Mach interface definitions. Without a file the standard input is read, which
must be preprocessed already. Options that are not in this list go to the preprocessor.

messages, in C (default: NAMEUser.c, NAMEServer.c, NAME.h)
  -user FILE       the client's functions
  -server FILE     the server's side
  -header FILE     the header of the client's functions
  -sheader FILE    the header of the server's functions
  -iheader FILE    the header of the client's functions, with the files of iimport (untyped)
  -dheader FILE    a header of ids, with the files of dimport (untyped)
  -i PREFIX        a file PREFIXroutine.c for each of the client's functions instead of -user
  -n               write only the files that are named
  -prefix P        what the client's names begin with, before userprefix; also -subrprefix
  -s, -S           with (without) a table of names in the server
messages, in Rust; implies -n
  -rust FILE       clients and server
direct L4 IPC; these imply -n
  -l4-rust FILE    clients and server, in Rust
  -l4-c FILE       clients and server, in C (one header)
descriptions
  -list FILE       subsystem, base, name, place, id of request and reply (0: none)
  -layout FILE     every message: items, descriptors, sizes; implies -n
  -page FILE       a page for people, in Markdown; implies -n
  -check           only read; implies -n
reading
  -dialect D       typed (default), untyped
  -target T        mach64 (default), mach64-2022 (Debian 12), mach32, untyped64, untyped32
  -cc COMMAND      the preprocessor (default: $CPP, or ${CC:-gcc} -E -x c -undef -ansi)
  -MD              write FILE-mig.d, dependencies for make
  -q, -Q           without (with) warnings
  -v, -V           say (do not say) what is done
  -help, -version

Errors end with status 1, and then nothing has been written.
";

impl Options {
    /// Reads a command line, without the program's name.
    ///
    /// # Errors
    /// An option lacks its value, or a value is not one that it can have.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request> {
        let mut options = Options {
            target: Target::of(Dialect::Typed),
            files: Vec::new(),
            outputs: Vec::new(),
            only_named: false,
            check: false,
            separate: None,
            prefix: String::new(),
            symbols: false,
            quiet: false,
            verbose: false,
            dependencies: false,
            preprocessor: None,
            preprocessor_options: Vec::new(),
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "-help" | "--help" | "-h" => return Ok(Request::Help),
                "-version" | "--version" => return Ok(Request::Version),
                _ => {}
            }
            options.take(argument, &mut arguments)?;
        }
        Ok(Request::Compile(Box::new(options)))
    }

    fn take(&mut self, argument: String, rest: &mut impl Iterator<Item = String>) -> Result<()> {
        let mut value = || match rest.next() {
            Some(value) => Ok(value),
            None => bail!("{argument} needs a value"),
        };
        if let Some(&(_, output)) = OUTPUTS.iter().find(|(name, _)| *name == argument) {
            let ours = [Output::Layout, Output::Page, Output::Rust, Output::DirectRust, Output::DirectC];
            self.only_named |= ours.contains(&output);
            let path = PathBuf::from(value()?);
            self.outputs.retain(|(other, _)| *other != output);
            self.outputs.push((output, path));
            return Ok(());
        }
        match argument.as_str() {
            "-q" => self.quiet = true,
            "-Q" => self.quiet = false,
            "-v" => self.verbose = true,
            "-V" => self.verbose = false,
            "-s" => self.symbols = true,
            "-S" => self.symbols = false,
            "-n" => self.only_named = true,
            "-check" => (self.check, self.only_named) = (true, true),
            "-r" | "-R" | "-t" | "-T" | "-k" | "-K" | "-l" | "-L" | "-x" | "-X" => {}
            "-i" => self.separate = Some(value()?),
            "-prefix" | "-subrprefix" => self.prefix = value()?,
            "-dialect" => {
                let name = value()?;
                let Some(dialect) = Dialect::from_keyword(&name) else {
                    bail!("there is no dialect `{name}`: it is typed or untyped");
                };
                self.target = Target::of(dialect);
            }
            "-target" => {
                let name = value()?;
                let Some(target) = Target::by_name(&name) else {
                    let names: Vec<&str> = Target::ALL.iter().map(|target| target.name).collect();
                    bail!("there is no target `{name}`: it is one of {}", names.join(", "));
                };
                self.target = target;
            }
            "-cc" => self.preprocessor = Some(value()?),
            // Which back end the original's script runs: there is one. Above which size buffers are
            // not on the stack: all are.
            "-migcom" | "-maxonstack" => drop(value()?),
            // Functions in files of their own are asked for by -i.
            "-split" => {}
            "-MD" => self.dependencies = true,
            "-I" | "-D" | "-U" | "-include" | "-imacros" | "-isystem" | "-idirafter" | "-iquote"
            | "-isysroot" | "-arch" => {
                let value = value()?;
                self.preprocessor_options.extend([argument, value]);
            }
            "-" => {}
            option if option.starts_with('-') => self.preprocessor_options.push(argument),
            _ => self.files.push(PathBuf::from(argument)),
        }
        Ok(())
    }

    /// Where an output is written, if it is; `default` is the name that it has by itself.
    pub fn path(&self, output: Output, default: Option<String>) -> Option<PathBuf> {
        let named = self.outputs.iter().find(|(other, _)| *other == output);
        match named {
            Some((_, path)) => Some(path.clone()),
            None => default.filter(|_| !self.only_named).map(PathBuf::from),
        }
    }
}
