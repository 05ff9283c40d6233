//! Errors and warnings, with the place in the source that they are about.

use crate::source::{Source, Span};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// There is no output.
    Error,
    /// There is output, which may not do what was meant.
    Warning,
}

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The place.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What was expected at the place; may be empty.
    pub label: String,
    /// What could be done about it.
    pub help: Option<String>,
    /// The line, if it is not as in the source.
    quoted: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            span,
            message: message.into(),
            label: String::new(),
            help: None,
            quoted: None,
        }
    }

    /// A warning at a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// With a word about the place itself.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// With advice.
    #[must_use]
    pub fn helped(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn quoting(mut self, line: &str) -> Diagnostic {
        self.quoted = Some(line.to_owned());
        self
    }

    /// The text for people: message, file, line and column, the line itself with the place marked.
    pub fn render(&self, source: &Source) -> String {
        let place = source.place(self.span.start);
        let (start, line) = source.line_text(self.span.start);
        let line = self.quoted.as_deref().unwrap_or(line);
        let clamp = |at: usize| {
            let mut at = at.saturating_sub(start).min(line.len());
            while !line.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let begin = clamp(self.span.start);
        let span = begin..clamp(self.span.end.max(self.span.start + 1)).max(begin);
        let annotation = AnnotationKind::Primary.span(span);
        let annotation =
            if self.label.is_empty() { annotation } else { annotation.label(self.label.as_str()) };
        let snippet = Snippet::source(line).path(&*place.file).line_start(place.line).annotation(annotation);
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let report = level.primary_title(self.message.as_str()).element(snippet);
        let report = match &self.help {
            Some(help) => report.element(Level::HELP.message(help.as_str())),
            None => report,
        };
        Renderer::plain().render(&[report])
    }
}
