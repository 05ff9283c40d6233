//! Text of a C file, line by line, with indentation.

use std::fmt::Write;

/// The text of a C file, to which lines are added.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// Adds a line. A line that begins with a line's end has an empty line in front; an empty line
    /// has no indentation.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        let line = match line.strip_prefix('\n') {
            Some(line) => {
                self.text.push('\n');
                line
            }
            None => line,
        };
        if !line.is_empty() && !line.starts_with('#') {
            self.text.extend(std::iter::repeat_n('\t', self.depth));
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds an opening line, the lines that `inside` adds one level deeper, and a line with `}`.
    pub(crate) fn block(&mut self, opening: impl AsRef<str>, inside: impl FnOnce(&mut Text)) {
        self.line(format!("{} {{", opening.as_ref()).trim_start());
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line("}");
    }

    /// Adds a line with one more level of indentation.
    pub(crate) fn deeper(&mut self, line: impl AsRef<str>) {
        self.depth += 1;
        self.line(line);
        self.depth -= 1;
    }

    /// Adds a check that a program can leave out by a definition of the C preprocessor.
    pub(crate) fn check(&mut self, condition: &str, failure: &str) {
        self.line("#if\tTypeCheck");
        self.line(format!("if (mig_unlikely ({condition}))"));
        self.deeper(failure);
        self.line("#endif\t/* TypeCheck */");
    }

    /// Adds lines without changing their indentation.
    pub(crate) fn raw(&mut self, lines: &str) {
        self.text.push_str(lines);
    }

    /// Adds a list in round brackets with a line for each element, then `after`.
    pub(crate) fn list(&mut self, elements: &[String], after: &str) {
        self.line("(");
        for (index, element) in elements.iter().enumerate() {
            let comma = if index + 1 < elements.len() { "," } else { "" };
            self.deeper(format!("{element}{comma}"));
        }
        let mut close = String::new();
        // Writing to a string cannot fail.
        let _ = write!(close, "){after}");
        self.line(close);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}
