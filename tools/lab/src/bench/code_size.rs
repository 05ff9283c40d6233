//! Measures how many bytes of code functions of a benchmark's program have, by the sizes of their
//! symbols.

use super::Measurement;
use anyhow::{Context, Result, bail};
use mac_build::tree;
use object::{Object, ObjectSymbol};
use std::fs;

/// The unit of code sizes.
pub(super) const COUNTER: &str = "bytes of code";

/// The sizes of the functions `names` of the program `program`. Each has the name `code-of-NAME`,
/// with hyphens.
pub(super) fn measure(program: &str, names: &[String]) -> Result<Vec<Measurement>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let path = tree::boot().join(program);
    let elf = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let file = object::File::parse(elf.as_slice()).with_context(|| path.display().to_string())?;
    names.iter().map(|name| size(&file, name)).collect()
}

fn size(program: &object::File<'_>, name: &str) -> Result<Measurement> {
    let is_meant = |symbol: &object::Symbol<'_, '_>| symbol.size() > 0 && symbol.name() == Ok(name);
    let mut found = program.symbols().filter(is_meant);
    let (Some(symbol), None) = (found.next(), found.next()) else {
        bail!("the program has not one function {name}, whose size is to be measured");
    };
    let test = format!("code-of-{}", name.replace('_', "-"));
    Ok(Measurement::single(test, COUNTER, symbol.size() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_build::scratch::Scratch;
    use std::process::Command;

    #[test]
    fn a_function_is_found_by_its_name() {
        let scratch = Scratch::new("code-size").unwrap();
        let run = |arguments: &[&str]| {
            let done = Command::new("cc").args(arguments).current_dir(&scratch.0).status();
            assert!(done.unwrap().success(), "{arguments:?}");
        };
        let function = |name: &str, bytes: u32| {
            format!(".type {name}, @function\n{name}: .fill {bytes}\n.size {name}, {bytes}\n")
        };
        let one = function("call", 7) + &function("call_by_name", 300) + &function("twice", 1);
        fs::write(scratch.0.join("one.s"), one).unwrap();
        fs::write(scratch.0.join("two.s"), function("twice", 1)).unwrap();
        run(&["-r", "-nostdlib", "-o", "both.o", "one.s", "two.s"]);
        let elf = fs::read(scratch.0.join("both.o")).unwrap();
        let program = object::File::parse(elf.as_slice()).unwrap();
        let measured = size(&program, "call_by_name").unwrap();
        assert_eq!((measured.test.as_str(), measured.value), ("code-of-call-by-name", 300.0));
        for missing in ["by_name", "twice", ""] {
            assert!(size(&program, missing).is_err(), "{missing}");
        }
    }
}
