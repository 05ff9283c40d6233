//! The command lines of boot modules, as GNU Mach's boot scripts have them.
//!
//! A line is the module's name and words. `${host-port}` and `${device-port}` stand for the names
//! of send rights that the task gets; `$(task-create)` and `$(task-resume)` say that there is a
//! task and that it runs, and are no arguments of the program. All other words are arguments.

use alloc::string::String;
use alloc::vec::Vec;

/// An argument of a boot module's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The text itself.
    Text(String),
    /// The name of a right to the host's control port, in decimal.
    HostPort,
    /// The name of a right to the master device port, in decimal.
    DevicePort,
}

/// A boot module and the arguments of its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The name of the module, which is also the program's first argument.
    pub module: String,
    /// The program's further arguments.
    pub arguments: Vec<Argument>,
    /// Whether the task runs, and does not stay suspended.
    pub runs: bool,
}

/// Why a command line is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// The line has no word.
    Empty,
    /// The line makes no task.
    NoTask,
    /// The script's language has this word not, or not here.
    Word(String),
}

impl core::fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Empty => formatter.write_str("the line is empty"),
            Self::NoTask => formatter.write_str("the line has no $(task-create)"),
            Self::Word(word) => write!(formatter, "{word} has no meaning here"),
        }
    }
}

impl core::error::Error for ScriptError {}

/// The boot modules that a system starts with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The command lines of the modules, in the order in which their tasks are made.
    pub lines: Vec<Line>,
}

impl Script {
    /// Reads a text of command lines, each after a word `--`.
    ///
    /// # Errors
    /// The reason why a line is refused; a text without a line is refused as empty.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut parts = words.split(|word| *word == "--");
        match parts.next() {
            Some([word, ..]) => return Err(ScriptError::Word((*word).into())),
            _ if words.is_empty() => return Err(ScriptError::Empty),
            _ => {}
        }
        let lines = parts.map(|words| Line::parse(words.iter().copied())).collect::<Result<_, _>>()?;
        Ok(Self { lines })
    }
}

impl Line {
    /// Reads a command line.
    ///
    /// # Errors
    /// The reason why the line is refused.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, ScriptError> {
        let mut words = words.into_iter();
        let module = String::from(words.next().ok_or(ScriptError::Empty)?);
        let (mut arguments, mut creates, mut runs) = (Vec::new(), false, false);
        for word in words {
            match word {
                "${host-port}" => arguments.push(Argument::HostPort),
                "${device-port}" => arguments.push(Argument::DevicePort),
                "$(task-create)" if !creates => creates = true,
                "$(task-resume)" if creates && !runs => runs = true,
                word if word.starts_with("${") || word.starts_with("$(") => {
                    return Err(ScriptError::Word(word.into()));
                }
                word => arguments.push(Argument::Text(word.into())),
            }
        }
        if creates { Ok(Self { module, arguments, runs }) } else { Err(ScriptError::NoTask) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Line, ScriptError> {
        Line::parse(line.split_whitespace())
    }

    #[test]
    fn a_line_names_a_module_and_its_arguments() {
        let line = parse("module-a ${host-port} ${device-port} -v $(task-create) $(task-resume)").unwrap();
        assert_eq!((line.module.as_str(), line.runs), ("module-a", true));
        assert_eq!(line.arguments, [Argument::HostPort, Argument::DevicePort, Argument::Text("-v".into())]);
        assert!(!parse("a $(task-create)").unwrap().runs);
    }

    #[test]
    fn a_script_has_a_line_for_each_module() {
        let script = Script::parse("-- a x $(task-create) -- b $(task-create) $(task-resume)").unwrap();
        let modules: Vec<_> = script.lines.iter().map(|line| line.module.as_str()).collect();
        assert_eq!(modules, ["a", "b"]);
        assert_eq!(Script::parse("--"), Err(ScriptError::Empty));
        assert_eq!(Script::parse(""), Err(ScriptError::Empty));
        assert_eq!(Script::parse("verbose -- a"), Err(ScriptError::Word("verbose".into())));
    }

    #[test]
    fn what_has_no_meaning_is_named() {
        assert_eq!(parse(" "), Err(ScriptError::Empty));
        assert_eq!(parse("a b"), Err(ScriptError::NoTask));
        for word in ["${root}", "$(task-resume)", "$(prompt)"] {
            assert_eq!(
                parse(&alloc::format!("a {word} $(task-create)")),
                Err(ScriptError::Word(word.into()))
            );
        }
        let twice = parse("a $(task-create) $(task-create)");
        assert_eq!(twice, Err(ScriptError::Word("$(task-create)".into())));
    }
}
