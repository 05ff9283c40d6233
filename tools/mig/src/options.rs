//! The command line, in the form that makefiles use: each option is a word after one dash.

use crate::target::{Dialect, Target};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// A file that the program can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The client's functions over messages, in C.
    User,
    /// The server's functions over messages, in C.
    Server,
    /// The header of the client's functions.
    Header,
    /// The header of the server's functions.
    ServerHeader,
    /// The header of the client's functions, for files of the program itself.
    InternalHeader,
    /// The header of ids, in C.
    DefinitionsHeader,
    /// A list of the names and ids of routines.
    List,
    /// The layouts of all messages.
    Layout,
    /// A page about the interface in Markdown.
    Page,
    /// Client and server over messages, in Rust.
    Rust,
    /// Client and server over messages, in Rust, with calls that are futures.
    AsyncRust,
    /// Client and server over direct L4 IPC, in Rust.
    DirectRust,
    /// Client and server over direct L4 IPC, in C.
    DirectC,
}

/// The options that name outputs. `-layout`, `-page`, `-rust`, `-async-rust`, `-l4-rust` and
/// `-l4-c` suppress the files that are written by default.
const OUTPUTS: [(&str, Output); 13] = [
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
    ("-async-rust", Output::AsyncRust),
    ("-l4-rust", Output::DirectRust),
    ("-l4-c", Output::DirectC),
];

/// The options and file names of a command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine and the dialect of the messages.
    pub target: Target,
    /// The definitions. If there are none, the standard input holds a preprocessed one.
    pub files: Vec<PathBuf>,
    /// The outputs that options name, each with its file.
    pub outputs: Vec<(Output, PathBuf)>,
    /// Whether only outputs that options name are written, and no default ones.
    pub only_named: bool,
    /// Whether definitions are only checked, without output.
    pub check: bool,
    /// The prefix of file names, if each of the client's functions is written to a file of its own.
    pub separate: Option<String>,
    /// The prefix of the names of the client's functions, in front of that of `userprefix`.
    pub prefix: String,
    /// Whether the server's file has a table of the names of its routines.
    pub symbols: bool,
    /// Whether warnings are suppressed.
    pub quiet: bool,
    /// Whether the program reports the files that it reads and writes.
    pub verbose: bool,
    /// Whether a file of dependencies for make is written.
    pub dependencies: bool,
    /// The preprocessor's command, if it is not the default one.
    pub preprocessor: Option<String>,
    /// Options that are passed to the preprocessor.
    pub preprocessor_options: Vec<String>,
}

/// The action that a command line requests.
#[derive(Clone, Debug)]
pub enum Request {
    /// Compile the definitions.
    Compile(Box<Options>),
    /// Print the explanation of the options.
    Help,
    /// Print the program's version.
    Version,
}

/// The explanation of the options.
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
messages, in Rust; these imply -n
  -rust FILE       clients and server
  -async-rust FILE the same, with calls that are futures
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
    /// Reads the words of a command line after the program's name.
    ///
    /// # Errors
    /// An option lacks its value, or has an invalid one.
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
            let ours = [
                Output::Layout,
                Output::Page,
                Output::Rust,
                Output::AsyncRust,
                Output::DirectRust,
                Output::DirectC,
            ];
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
            // Makefiles pass these options of the original `mig`. Here there is one back end, and
            // all buffers are on the stack, so that the values have no effect.
            "-migcom" | "-maxonstack" => drop(value()?),
            // `-split` has no effect: `-i` requests one file for each function.
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

    /// The file to which an output is written, or none. `default` is the file's name if no option
    /// names the output.
    pub fn path(&self, output: Output, default: Option<String>) -> Option<PathBuf> {
        let named = self.outputs.iter().find(|(other, _)| *other == output);
        match named {
            Some((_, path)) => Some(path.clone()),
            None => default.filter(|_| !self.only_named).map(PathBuf::from),
        }
    }
}
