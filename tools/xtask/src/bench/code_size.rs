//! How many bytes of code functions of a benchmark's program have: the sizes of their symbols, next
//! to what the program measures.

use super::Measurement;
use crate::tree;
use anyhow::{Context, Result, bail};
use std::fs;

/// The unit of these measurements.
pub(super) const COUNTER: &str = "bytes of code";

/// The sizes of the functions `names` of the program `program`. Each has the name `code-of-NAME`,
/// with hyphens.
pub(super) fn measure(program: &str, names: &[String]) -> Result<Vec<Measurement>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let path = tree::target().join("boot").join(program);
    let elf = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let symbols = symbols(&elf).with_context(|| format!("{} has no symbols", path.display()))?;
    names.iter().map(|name| size(&symbols, name)).collect()
}

fn size(symbols: &[Symbol], name: &str) -> Result<Measurement> {
    let mut found = symbols.iter().filter(|symbol| symbol.size > 0 && symbol.name == name);
    let (Some(symbol), None) = (found.next(), found.next()) else {
        bail!("the program has not one function {name}, whose size is to be measured");
    };
    let test = format!("code-of-{}", name.replace('_', "-"));
    Ok(Measurement { test, parameter: 0.0, counter: COUNTER.into(), value: symbol.size as f64 })
}

struct Symbol {
    name: String,
    size: u64,
}

/// The symbol table of a 64-bit little-endian ELF file.
fn symbols(elf: &[u8]) -> Option<Vec<Symbol>> {
    const SYMBOL_TABLE: u64 = 2;
    let number = |offset: u64, size: usize| -> Option<u64> {
        let offset = usize::try_from(offset).ok()?;
        let bytes = elf.get(offset..offset.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    if elf.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let (table, entry_size, count) = (number(40, 8)?, number(58, 2)?, number(60, 2)?);
    let section = |index: u64| table.checked_add(index.checked_mul(entry_size)?);
    let header = (0..count)
        .filter_map(section)
        .find(|&header| header.checked_add(4).and_then(|kind| number(kind, 4)) == Some(SYMBOL_TABLE))?;
    let (at, size, strings) = (number(header + 24, 8)?, number(header + 32, 8)?, number(header + 40, 4)?);
    let strings = number(section(strings)?.checked_add(24)?, 8)?;
    let symbol = |index: u64| {
        let at = at.checked_add(index * 24)?;
        let name = usize::try_from(strings.checked_add(number(at, 4)?)?).ok()?;
        let name = elf.get(name..)?.split(|&byte| byte == 0).next()?;
        Some(Symbol {
            name: String::from_utf8_lossy(name).into_owned(),
            size: number(at.checked_add(16)?, 8)?,
        })
    };
    (0..size / 24).map(symbol).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one symbol table, whose symbols are these.
    fn elf(symbols: &[(&str, u64)]) -> Vec<u8> {
        let (mut entries, mut strings) = (vec![0; 24], vec![0]);
        for (name, size) in symbols {
            let mut entry = [0; 24];
            entry[..4].copy_from_slice(&(strings.len() as u32).to_le_bytes());
            entry[16..].copy_from_slice(&size.to_le_bytes());
            entries.extend(entry);
            strings.extend(name.bytes().chain([0]));
        }
        let mut file = vec![0; 64 + 3 * 64];
        file[..5].copy_from_slice(b"\x7fELF\x02");
        (file[40], file[58], file[60]) = (64, 64, 3);
        let (symbols_at, strings_at) = (file.len() as u64, (file.len() + entries.len()) as u64);
        let mut section = |index: usize, kind: u8, at: u64, size: usize| {
            let header = 64 + index * 64;
            file[header + 4] = kind;
            file[header + 24..header + 32].copy_from_slice(&at.to_le_bytes());
            file[header + 32..header + 40].copy_from_slice(&(size as u64).to_le_bytes());
            file[header + 40] = 2;
        };
        section(1, 2, symbols_at, entries.len());
        section(2, 3, strings_at, strings.len());
        file.extend(entries);
        file.extend(strings);
        file
    }

    #[test]
    fn a_function_is_found_by_its_name() {
        let symbols =
            symbols(&elf(&[("call", 7), ("call_by_name", 300), ("twice", 1), ("twice", 1)])).unwrap();
        let measured = size(&symbols, "call_by_name").unwrap();
        assert_eq!((measured.test.as_str(), measured.value), ("code-of-call-by-name", 300.0));
        for missing in ["by_name", "twice", ""] {
            assert!(size(&symbols, missing).is_err(), "{missing}");
        }
    }

    #[test]
    fn what_is_no_elf_file_has_no_symbols() {
        let whole = elf(&[("call", 7)]);
        assert!(symbols(b"").is_none() && symbols(&[0; 100]).is_none());
        for end in 0..whole.len() {
            let _ = symbols(&whole[..end]);
        }
    }
}
