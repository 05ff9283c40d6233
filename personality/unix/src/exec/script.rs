//! Scripts: files that begin with `#!` and the interpreter to run them with (execve(2),
//! "Interpreter scripts").

use crate::{Error, Result};

/// Bytes at the start of a file that are read to find a script's first line.
pub const LINE_LIMIT: usize = super::image::START_SIZE;
/// How many scripts may name each other as interpreters; one more is `ELOOP`.
pub const DEPTH_LIMIT: usize = 5;

/// What the first line of a script says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script<'a> {
    /// Path of the script's interpreter.
    pub interpreter: &'a [u8],
    /// The rest of the first line, as one argument for the interpreter.
    pub argument: Option<&'a [u8]>,
}

/// Parses `start`, the first [`LINE_LIMIT`] bytes of a file (or all, if it has fewer): `None` if
/// the file is no script. `ENOEXEC` if no interpreter is named before the line ends, or if its path
/// does not end within the limit. `EACCES` if the file ends, or has a zero byte, where the path
/// should be: an empty path means the working directory, which cannot be executed.
pub fn parse(start: &[u8]) -> Result<Option<Script<'_>>> {
    let Some(line) = start.strip_prefix(b"#!") else { return Ok(None) };
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line.iter().position(|byte| matches!(byte, b'\n' | 0));
    let is_cut = end.is_none() && start.len() >= LINE_LIMIT;
    let ends_line = end.is_some_and(|end| line[end] == b'\n');
    let line = trim(&line[..end.unwrap_or(line.len())]);
    let split = line.iter().position(is_blank);
    let (interpreter, rest) = line.split_at(split.unwrap_or(line.len()));
    let is_empty = interpreter.is_empty();
    if is_empty && !is_cut && !ends_line {
        return Err(Error::EACCES);
    }
    if is_empty || (is_cut && split.is_none()) {
        return Err(Error::ENOEXEC);
    }
    let rest = trim(rest);
    Ok(Some(Script { interpreter, argument: (!rest.is_empty()).then_some(rest) }))
}

fn trim(bytes: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = bytes.iter().position(is_text).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(is_text).map_or(start, |last| last + 1);
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script<'a>(interpreter: &'a [u8], argument: Option<&'a [u8]>) -> Result<Option<Script<'a>>> {
        Ok(Some(Script { interpreter, argument }))
    }

    #[test]
    fn interpreter_and_argument_are_split_and_bad_lines_refused() {
        assert_eq!(parse(b"\x7fELF"), Ok(None));
        assert_eq!(parse(b""), Ok(None));
        assert_eq!(parse(b"#!/bin/sh\necho"), script(b"/bin/sh", None));
        assert_eq!(parse(b"#! /bin/awk  -f  x \n"), script(b"/bin/awk", Some(b"-f  x")));
        assert_eq!(parse(b"#!/bin/sh"), script(b"/bin/sh", None));
        assert_eq!(parse(b"#!\n"), Err(Error::ENOEXEC));
        assert_eq!(parse(b"#! \t\n/bin/sh"), Err(Error::ENOEXEC));
        assert_eq!(parse(b"#!"), Err(Error::EACCES));
        assert_eq!(parse(b"#!   "), Err(Error::EACCES));
        assert_eq!(parse(b"#! \0/bin/sh\n"), Err(Error::EACCES));
        assert_eq!(parse(&[b"#!".as_slice(), &[b' '; 254]].concat()), Err(Error::ENOEXEC));
        let long = [b"#!/".as_slice(), &[b'a'; 253]].concat();
        assert_eq!(parse(&long), Err(Error::ENOEXEC));
        let cut = [b"#!/b ".as_slice(), &[b'a'; 251]].concat();
        assert_eq!(parse(&cut), script(b"/b", Some(&[b'a'; 251])));
    }
}
