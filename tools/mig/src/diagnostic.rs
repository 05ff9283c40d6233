//! Errors and warnings about places in the source.

use crate::source::{Source, Span};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// An error: the definition yields no output.
    Error,
    /// A warning: there is output, which may not do what the definition's author meant.
    Warning,
}

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The place in the source that the message is about.
    pub span: Span,
    /// The description of what is wrong.
    pub message: String,
    /// A remark about the place, such as what was expected there; may be empty.
    pub label: String,
    /// Advice on how to correct the definition.
    pub help: Option<String>,
    /// A line of the original file, such as a preprocessor directive, that is not in the
    /// preprocessed text.
    quoted: Option<String>,
}

impl Diagnostic {
    /// An error about a place in the source.
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

    /// A warning about a place in the source.
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// Adds a remark about the place.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds advice on how to correct the definition.
    #[must_use]
    pub fn helped(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn quoting(mut self, line: &str) -> Diagnostic {
        self.quoted = Some(line.to_owned());
        self
    }

    /// Formats the diagnostic for a terminal: message, file, line and column, and the line with the
    /// place marked.
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
