//! The Mach interface generator: reads interface definitions and writes the stubs by which clients
//! and servers talk.
//!
//! ```text
//! .defs -> preprocessor -> source -> parser -> ast -> analysis -> interface, with layouts
//!                                                                   |-> list, page
//!                                                                   |-> stubs over messages
//!                                                                   `-> stubs over direct IPC
//! ```
//!
//! | module | subject |
//! |---|---|
//! | [`source`], [`diagnostic`] | where text came from, errors that point at it |
//! | [`lexer`], [`parser`], [`ast`] | the language |
//! | [`types`], [`interface`], [`analysis`] | what a definition means |
//! | [`layout`] | messages as data |
//! | [`list`], [`page`], [`c`], [`message`], [`direct`] | what is written |
//! | [`options`], [`preprocess`], [`output`], [`driver`] | the program |
//!
//! No function panics, whatever the definition's text is: the text comes from outside.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod ast;
pub mod c;
pub mod diagnostic;
pub mod direct;
pub mod driver;
pub mod interface;
pub mod ipc_type;
pub mod layout;
pub mod lexer;
pub mod list;
pub mod message;
pub mod options;
pub mod output;
pub mod page;
pub mod parser;
mod parser_types;
pub mod preprocess;
mod rust;
pub mod source;
pub mod target;
pub mod types;

use diagnostic::{Diagnostic, Severity};
use interface::Interface;
use source::Source;
use target::Target;

/// The result of compiling a definition.
#[derive(Debug)]
pub struct Compiled {
    /// The preprocessed text of the definition.
    pub source: Source,
    /// The interface, unless there is an error.
    pub interface: Option<Interface>,
    /// Errors and warnings, in the order of their places in the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles a preprocessed definition. `file` is the name of the text before its first line marker.
pub fn compile(target: Target, file: &str, text: &str) -> Compiled {
    let (source, mut diagnostics) = Source::new(file, text);
    let (statements, errors) = parser::parse(&source);
    // Statements with a syntax error define nothing, so that analysis would report what they lack
    // as further errors.
    let readable = errors.is_empty();
    diagnostics.extend(errors);
    let (interface, found) = analysis::analyse(target, if readable { &statements } else { &[] });
    diagnostics.extend(found);
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    let failed = diagnostics.iter().any(|found| found.severity == Severity::Error);
    Compiled { source, interface: (!failed).then_some(interface), diagnostics }
}

impl Compiled {
    /// The errors and warnings as text.
    pub fn report(&self) -> String {
        let rendered = self.diagnostics.iter().map(|found| found.render(&self.source) + "\n");
        rendered.collect()
    }
}
