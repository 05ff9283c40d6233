//! The text of an interface definition after the C preprocessor, with the origin of each line.

use crate::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::Arc;

/// A range of bytes of a [`Source`]'s text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

impl Span {
    /// The range from the beginning of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: self.end.max(self.start).max(other.end) }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Span {
        Span { start: range.start, end: range.end }
    }
}

/// A line of the preprocessed text: its offset, and the file and line of its origin.
#[derive(Clone, Debug)]
struct Line {
    start: usize,
    file: Arc<str>,
    number: usize,
}

/// A preprocessed interface definition.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    lines: Vec<Line>,
}

/// The origin of a byte of the preprocessed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name, as the preprocessor gives it.
    pub file: Arc<str>,
    /// The line in the file, from 1.
    pub line: usize,
    /// The column in the preprocessed line in characters, from 1.
    pub column: usize,
}

impl Source {
    /// Reads the output of a preprocessor. `file` is the name of the lines before the first marker.
    ///
    /// Markers (`# 12 "file"`, `#line 12 "file"`) give the origin of the lines after them.
    /// `#pragma`, `#define` and `#undef`, which a preprocessor may leave, are ignored.
    ///
    /// # Errors
    /// A line begins with another directive, which shows that the text was not preprocessed.
    pub fn new(file: &str, text: &str) -> (Source, Vec<Diagnostic>) {
        let mut source = Source { text: String::with_capacity(text.len()), lines: Vec::new() };
        let mut errors = Vec::new();
        let (mut file, mut number): (Arc<str>, usize) = (file.into(), 1);
        for line in text.split_inclusive('\n') {
            let start = source.text.len();
            source.lines.push(Line { start, file: Arc::clone(&file), number });
            number = number.saturating_add(1);
            let Some(directive) = line.trim_start().strip_prefix('#') else {
                source.text.push_str(line);
                continue;
            };
            // The characters of a directive become blanks, so that an error about the line has the
            // right column.
            source.text.extend(line.chars().map(|c| if c == '\n' { c } else { ' ' }));
            match marker(directive) {
                Some((line, name)) => {
                    number = line;
                    file = name.map_or(file, Into::into);
                }
                None if is_harmless(directive) => {}
                None => {
                    let span = Span { start, end: start + line.trim_end().len().max(1) };
                    let shown = directive.trim();
                    errors.push(
                        Diagnostic::error(span, format!("preprocessor directive `#{shown}`"))
                            .labelled("expected a preprocessed file: only line markers begin with #")
                            .quoting(line.trim_end()),
                    );
                }
            }
        }
        (source, errors)
    }

    /// The preprocessed text, with blanks in the place of directives.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    fn line_at(&self, at: usize) -> Option<usize> {
        self.lines.partition_point(|line| line.start <= at).checked_sub(1)
    }

    /// The origin of the byte at an offset.
    pub fn place(&self, at: usize) -> Place {
        let Some(line) = self.line_at(at.min(self.text.len())) else {
            return Place { file: "".into(), line: 1, column: 1 };
        };
        let line = &self.lines[line];
        let before = self.text.get(line.start..at).unwrap_or_default();
        Place { file: Arc::clone(&line.file), line: line.number, column: before.chars().count() + 1 }
    }

    /// The line that holds the byte at an offset, without the line's end, after the line's own
    /// offset.
    pub(crate) fn line_text(&self, at: usize) -> (usize, &str) {
        let Some(line) = self.line_at(at) else { return (0, "") };
        let start = self.lines[line].start;
        let end = self.lines.get(line + 1).map_or(self.text.len(), |next| next.start);
        (start, self.text[start..end].trim_end_matches(['\n', '\r']))
    }
}

/// The line number and the file of a line marker. `directive` is the text after `#`.
fn marker(directive: &str) -> Option<(usize, Option<String>)> {
    let rest = directive.trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let line = rest[..digits].parse().ok()?;
    let rest = rest[digits..].trim_start();
    let name = rest.strip_prefix('"').and_then(|rest| Some(rest[..rest.find('"')?].to_owned()));
    Some((line, name))
}

fn is_harmless(directive: &str) -> bool {
    let word = directive.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next();
    directive.trim().is_empty() || matches!(word, Some("pragma" | "define" | "undef" | "ident"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_markers_say_where_text_came_from() {
        let (source, errors) = Source::new("-", "a\n# 10 \"x.defs\" 1\nb c\n#pragma pack(4)\nd\n#line 3\ne");
        assert!(errors.is_empty());
        let at = |word: &str| {
            let place = source.place(source.text().find(word).unwrap());
            (place.file.to_string(), place.line, place.column)
        };
        assert_eq!(at("a"), ("-".to_owned(), 1, 1));
        assert_eq!(at("c"), ("x.defs".to_owned(), 10, 3));
        assert_eq!(at("d"), ("x.defs".to_owned(), 12, 1));
        assert_eq!(at("e"), ("x.defs".to_owned(), 3, 1));
    }

    #[test]
    fn other_directives_are_errors() {
        let (_, errors) = Source::new("-", "#include <a>\n# \n");
        assert_eq!(errors.len(), 1);
    }
}
