//! Lines of C.

use std::fmt::Write;

/// A C file under construction.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// A line, after an empty one if it begins with a line's end. An empty one has no indentation.
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

    /// Lines that are one level deeper than this one and end with `}`.
    pub(crate) fn block(&mut self, opening: impl AsRef<str>, inside: impl FnOnce(&mut Text)) {
        self.line(format!("{} {{", opening.as_ref()).trim_start());
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line("}");
    }

    /// A line that is one level deeper.
    pub(crate) fn deeper(&mut self, line: impl AsRef<str>) {
        self.depth += 1;
        self.line(line);
        self.depth -= 1;
    }

    /// A check that programs can leave out.
    pub(crate) fn check(&mut self, condition: &str, failure: &str) {
        self.line("#if\tTypeCheck");
        self.line(format!("if (mig_unlikely ({condition}))"));
        self.deeper(failure);
        self.line("#endif\t/* TypeCheck */");
    }

    /// Lines as they are.
    pub(crate) fn raw(&mut self, lines: &str) {
        self.text.push_str(lines);
    }

    /// A list in round brackets, a line for each element, after `before`.
    pub(crate) fn list(&mut self, elements: &[String], after: &str) {
        self.line("(");
        for (index, element) in elements.iter().enumerate() {
            let comma = if index + 1 < elements.len() { "," } else { "" };
            self.deeper(format!("{element}{comma}"));
        }
        let mut close = String::new();
        // A string takes whatever is written to it.
        let _ = write!(close, "){after}");
        self.line(close);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}
