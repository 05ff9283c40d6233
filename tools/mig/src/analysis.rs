//! Turns parsed statements into an [`Interface`]: resolves names, computes sizes, and refuses
//! statements that the target's dialect does not have.

mod routine;
mod type_table;

use crate::ast::{ImportKind, Name, Statement, StatementKind};
use crate::diagnostic::{Diagnostic, Severity};
use crate::interface::{Consume, Import, Interface, Wait};
use crate::source::Span;
use crate::target::{Dialect, Target};
use type_table::TypeTable;

/// The interface found so far, with the state that later statements depend on.
pub(crate) struct Analysis {
    pub(crate) target: Target,
    pub(crate) interface: Interface,
    pub(crate) types: TypeTable,
    pub(crate) diagnostics: Vec<Diagnostic>,
    has_subsystem: bool,
    /// Names of the routines found so far, to refuse a second routine of the same name.
    routines: Vec<Name>,
}

/// Analyses a definition. The interface is usable only if no diagnostic is an error.
pub fn analyse(target: Target, statements: &[Statement]) -> (Interface, Vec<Diagnostic>) {
    let mut analysis = Analysis {
        target,
        interface: Interface::new(target),
        types: TypeTable::new(&target),
        diagnostics: Vec::new(),
        has_subsystem: false,
        routines: Vec::new(),
    };
    for statement in statements {
        analysis.statement(statement);
    }
    analysis.finish()
}

impl Analysis {
    pub(crate) fn error(&mut self, error: Diagnostic) {
        self.diagnostics.push(error);
    }

    /// Reports an error at `span` unless the target's dialect is `dialect`: the other dialect lacks
    /// `what`.
    pub(crate) fn only_in(&mut self, dialect: Dialect, what: &str, span: Span) {
        if self.target.dialect != dialect {
            let (here, there) = (self.target.dialect.keyword(), dialect.keyword());
            self.error(
                Diagnostic::error(span, format!("the {here} dialect has no {what}"))
                    .labelled(format!("only in the {there} dialect"))
                    .helped(format!("-dialect {there} takes it")),
            );
        }
    }

    fn statement(&mut self, statement: &Statement) {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Subsystem { kernel_user, kernel_server, name, base } => {
                if self.has_subsystem {
                    self.error(
                        Diagnostic::error(span, "a second subsystem")
                            .labelled("a definition has one subsystem"),
                    );
                    return;
                }
                self.has_subsystem = true;
                if i32::try_from(base.value).is_err() {
                    self.error(
                        Diagnostic::error(base.span, "message ids have 31 bits")
                            .labelled("expected a number below 2147483648"),
                    );
                }
                self.interface.name.clone_from(&name.text);
                self.interface.base = base.value;
                self.interface.kernel_user = *kernel_user;
                self.interface.kernel_server = *kernel_server;
                self.interface.comment.clone_from(&statement.comment);
                if *kernel_user || *kernel_server {
                    self.target.port = self.target.kernel_port;
                    self.interface.target = self.target;
                }
            }
            StatementKind::Type { name, expression } => self.define_type(name, expression),
            StatementKind::Routine { simple, name, arguments } => {
                let double = self.routines.iter().any(|other| other.text == name.text);
                if double {
                    self.error(
                        Diagnostic::error(name.span, format!("a second routine `{}`", name.text))
                            .labelled("expected another name"),
                    );
                }
                self.routines.push(name.clone());
                self.routine(*simple, name, arguments, &statement.comment);
            }
            StatementKind::Skip(count) => {
                if *count != 1 {
                    self.only_in(Dialect::Typed, "`skip` with a number", span);
                }
                self.skip(*count, span);
            }
            StatementKind::Import(kind, file) => {
                if matches!(kind, ImportKind::Definitions | ImportKind::Internal) {
                    self.only_in(Dialect::Untyped, "`dimport` and `iimport`", span);
                }
                self.interface.imports.push(Import { kind: *kind, file: file.text.clone() });
            }
            StatementKind::RcsId(text) => self.interface.rcs_id = Some(text.text.clone()),
            StatementKind::ServerPrefix(prefix) => {
                self.interface.server_prefix.clone_from(&prefix.text);
            }
            StatementKind::UserPrefix(prefix) => self.interface.user_prefix.clone_from(&prefix.text),
            StatementKind::ServerDemux(name) => self.interface.demux.clone_from(&name.text),
            StatementKind::MessageOption(option) => {
                self.interface.current.option.clone_from(&option.text);
            }
            StatementKind::WaitTime(time) => {
                self.interface.current.wait =
                    time.as_ref().map_or(Wait::Forever, |time| Wait::Fixed(time.text.clone()));
            }
            StatementKind::SendTime(time) => {
                self.only_in(Dialect::Untyped, "`sendtime`", span);
                self.interface.current.send =
                    time.as_ref().map_or(Wait::Forever, |time| Wait::Fixed(time.text.clone()));
            }
            // `error` has no effect: the stubs of neither dialect call a function for errors.
            StatementKind::Error(_) => {}
            StatementKind::UserTypeLimit(_) => self.only_in(Dialect::Untyped, "`UserTypeLimit`", span),
            StatementKind::OnStackLimit(_) => self.only_in(Dialect::Untyped, "`OnStackLimit`", span),
            StatementKind::UseSpecialReplyPort(special) => {
                self.only_in(Dialect::Untyped, "`UseSpecialReplyPort`", span);
                self.interface.current.special_reply_port = *special;
            }
            StatementKind::ConsumeOnSendError(when) => {
                self.only_in(Dialect::Untyped, "`ConsumeOnSendError`", span);
                self.interface.current.consume = match when.text.to_ascii_lowercase().as_str() {
                    "timeout" => Consume::Timeout,
                    "any" => Consume::Any,
                    _ => Consume::Never,
                };
            }
        }
    }

    /// Leaves `count` ids without a routine.
    fn skip(&mut self, count: u64, span: Span) {
        let most = 100_000;
        if self.interface.routines.len() as u64 + count > most {
            self.error(
                Diagnostic::error(span, format!("`skip` over {count} ids"))
                    .labelled(format!("a subsystem has at most {most} ids")),
            );
            return;
        }
        self.interface.routines.extend((0..count).map(|_| None));
    }

    fn finish(mut self) -> (Interface, Vec<Diagnostic>) {
        let first = self.interface.routines.iter().flatten().next().map(|routine| routine.span);
        if let Some(span) = first.filter(|_| !self.has_subsystem) {
            self.error(
                Diagnostic::error(span, "a routine without a subsystem")
                    .labelled("expected `subsystem name number;` before it"),
            );
        }
        if self.interface.demux.is_empty() {
            self.interface.demux = format!("{}_server", self.interface.name);
        }
        self.interface.has_subsystem = self.has_subsystem;
        self.interface.types = self.types.in_order();
        if self.diagnostics.iter().all(|found| found.severity == Severity::Warning) {
            self.interface.lay_out();
        }
        (self.interface, self.diagnostics)
    }
}
