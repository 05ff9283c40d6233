//! Turns addresses in console output into function, file and line.
//!
//! The kernel and the programs keep their line tables in `target/boot`; the machine prints bare
//! addresses.

use object::{Object, ObjectSegment};
use std::cell::Cell;
use std::ops::Range;
use std::path::Path;

/// The symbols of the programs that run in a machine.
pub struct Symboliser {
    images: Vec<Image>,
    /// Whether the last line was a part of a backtrace.
    in_backtrace: Cell<bool>,
}

struct Image {
    name: String,
    loader: addr2line::Loader,
    code: Vec<Segment>,
}

/// The part of an executable segment that is in the file.
struct Segment {
    addresses: Range<u64>,
    bytes: Vec<u8>,
}

impl Image {
    fn has_code_at(&self, address: u64) -> bool {
        self.code.iter().any(|segment| segment.addresses.contains(&address))
    }

    /// The function and the `file:line` of each frame there, the innermost inlined one first.
    fn frames(&self, address: u64) -> Vec<(Option<String>, Option<String>)> {
        let mut found = Vec::new();
        let Ok(mut frames) = self.loader.find_frames(address) else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let place = frame.location.map(|location| {
                format!("{}:{}", shorten(location.file.unwrap_or("?")), location.line.unwrap_or(0))
            });
            found.push((function.map(Into::into), place));
        }
        found
    }

    /// The symbol there.
    fn symbol(&self, address: u64) -> Option<String> {
        let symbol = self.loader.find_symbol(address)?;
        Some(addr2line::demangle_auto(symbol.into(), None).into_owned())
    }

    /// Whether the segment has this instruction at this address.
    fn has_instruction(&self, address: u64, instruction: &[u8]) -> bool {
        self.code.iter().any(|segment| {
            let offset = address.checked_sub(segment.addresses.start).and_then(|at| usize::try_from(at).ok());
            offset.and_then(|at| segment.bytes.get(at..)).is_some_and(|code| code.starts_with(instruction))
        })
    }
}

/// The place of an instruction in the programs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the program's file.
    pub image: String,
    /// The function that contains the instruction, then the functions inlined there, the innermost
    /// last.
    pub functions: Vec<String>,
}

impl Symboliser {
    /// Reads the symbols of these ELF files. Files without symbols are ignored.
    pub fn new<'a>(files: impl IntoIterator<Item = &'a Path>) -> Symboliser {
        let open = |path: &Path| {
            let code = executable_segments(&std::fs::read(path).ok()?);
            let loader = addr2line::Loader::new(path).ok()?;
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some(Image { name, loader, code })
        };
        Symboliser { images: files.into_iter().filter_map(open).collect(), in_backtrace: Cell::new(false) }
    }

    /// `function at file:line`, innermost inlined function first, for every program that has code
    /// at that address.
    fn locations(&self, address: u64) -> Vec<String> {
        let images: Vec<&Image> = self.images.iter().filter(|image| image.has_code_at(address)).collect();
        let mut found = Vec::new();
        for image in &images {
            let prefix = if images.len() > 1 { format!("{}: ", image.name) } else { String::new() };
            let frames = image.frames(address);
            let places = frames.iter().map(|(function, place)| {
                let (function, place) = (function.as_deref().unwrap_or("?"), place.as_deref().unwrap_or("?"));
                format!("{prefix}{function} at {place}")
            });
            found.extend(places);
            if frames.is_empty()
                && let Some(symbol) = image.symbol(address)
            {
                found.push(format!("{prefix}{symbol}"));
            }
        }
        found
    }

    /// The place of the instruction with these bytes; `None` if no program has it.
    pub fn place(&self, address: u64, instruction: &[u8]) -> Option<Place> {
        let image = self.images.iter().find(|image| image.has_instruction(address, instruction))?;
        let mut functions: Vec<String> =
            image.frames(address).into_iter().filter_map(|(function, _)| function).collect();
        if functions.is_empty() {
            functions.push(image.symbol(address).unwrap_or_else(|| "?".into()));
        }
        for function in &mut functions {
            *function = without_hash(function).to_string();
        }
        functions.reverse();
        Some(Place { image: image.name.clone(), functions })
    }

    /// Explains the code addresses in a line of the console that is a part of a backtrace or has an
    /// instruction pointer. Each address is explained by one line or, if functions were inlined,
    /// several. The result is empty for other lines, since not every number is an address. Lines
    /// must be passed in order.
    pub fn explain(&self, line: &str) -> Vec<String> {
        let lower = line.to_ascii_lowercase();
        let is_frame = is_frame(&lower);
        // All frames of a backtrace but the first are return addresses, which may already belong to
        // the next line or even to the next function. So the address of the call is looked up,
        // which is just before.
        let before = u64::from(self.in_backtrace.replace(is_frame) && is_frame);
        let is_pointer = ["rip", "ip ", "ip="].iter().any(|mark| lower.contains(mark));
        if !is_pointer && !lower.contains("at 0x") {
            return Vec::new();
        }
        let mut explained = Vec::new();
        for address in addresses(line) {
            // Addresses in the lower half belong to programs. They are explained only where they
            // certainly are addresses of code: that in "sigma0 at 0xf00000" is not.
            if !is_frame && !is_pointer && address < 1 << 63 {
                continue;
            }
            let mut lead = format!("{address:#x} =");
            let mut locations = self.locations(address.wrapping_sub(before));
            // A function is listed twice if code inlined in it has no name of its own.
            locations.dedup();
            for location in locations {
                explained.push(format!("{lead} {location}"));
                lead = "  inlined in".into();
            }
        }
        explained
    }
}

/// Whether a line, in small letters, is a frame of a backtrace: `at 0x...`, perhaps after the level
/// of the message.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    let text = line.split_once(": ").filter(|(level, _)| !level.contains(' ')).map_or(line, |(_, text)| text);
    text.trim_start().starts_with("at 0x")
}

/// The numbers in a line that may be addresses: hexadecimal with 0x, or 16 bare hexadecimal digits.
fn addresses(line: &str) -> Vec<u64> {
    let mut found = Vec::new();
    for word in line.split(|c: char| !c.is_ascii_alphanumeric()) {
        let digits = match word.strip_prefix("0x") {
            Some(digits) if digits.len() >= 5 => digits,
            None if word.len() == 16 => word,
            _ => continue,
        };
        if let Ok(address) = u64::from_str_radix(digits, 16)
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// The name of a function without the hash that the compiler has added.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => name,
    }
}

/// A path relative to the tree, if the tree has that file. The tree may have been moved since the
/// file was compiled.
fn shorten(file: &str) -> String {
    let mut rest = Path::new(file).components();
    while rest.next().is_some() {
        if mac_build::tree::root().join(rest.as_path()).is_file() {
            return rest.as_path().display().to_string();
        }
    }
    file.into()
}

/// The executable segments of an ELF file; none for other files.
fn executable_segments(elf: &[u8]) -> Vec<Segment> {
    let Ok(file) = object::File::parse(elf) else { return Vec::new() };
    let code = file.segments().filter(|segment| segment.permissions().executable());
    let read = |segment: object::Segment<'_, '_>| {
        let addresses = segment.address()..segment.address().checked_add(segment.size())?;
        Some(Segment { addresses, bytes: segment.data().ok()?.to_vec() })
    };
    code.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_long_hexadecimal_numbers() {
        assert_eq!(
            addresses("rip 0xffffffff80801234, ffff800000001000 0x10 beef"),
            [0xffff_ffff_8080_1234, 0xffff_8000_0000_1000]
        );
        assert_eq!(addresses("0x1000000 0x1000000"), [0x100_0000]);
    }

    #[test]
    fn our_own_function_is_found_by_address() {
        // The test program is position-independent, so its symbols' addresses are offsets from its
        // load address. The test takes one from the symbol table, not from a pointer.
        let own = std::env::current_exe().unwrap();
        let symboliser = Symboliser::new([own.as_path()]);
        let image = &symboliser.images[0];
        let code = image.code.iter().find(|segment| !segment.addresses.is_empty()).unwrap();
        let text = code.addresses.clone();
        let found = text.clone().step_by(64).find_map(|address| {
            let bytes = &code.bytes[(address - text.start) as usize..][..4];
            let place = symboliser.place(address, bytes)?;
            place.functions.iter().any(|name| name.contains("symbolise")).then_some(place)
        });
        assert!(found.is_some_and(|place| !place.image.is_empty()));
        let other = !code.bytes[0];
        assert_eq!(symboliser.place(text.start, &[other]), None);
        let explained = text.step_by(64).find_map(|address| {
            let lines = symboliser.explain(&format!("  at {address:#018x}"));
            lines.into_iter().find(|line| line.contains("symbolise.rs:"))
        });
        assert!(explained.is_some_and(|line| line.contains("tools/machine/src/symbolise.rs:")));
    }

    #[test]
    fn frames_are_told_from_other_places() {
        assert!(is_frame("error:   at 0xffffffff80801234"));
        assert!(is_frame("  at 0x1000123"));
        assert!(!is_frame("sigma0 at 0xf00000, root task at 0x1000000"));
        assert!(!is_frame("warn: interrupt at 0xffffffff80801234"));
    }

    #[test]
    fn a_file_of_the_tree_is_named_from_its_root_wherever_it_was_compiled() {
        let inside = "tools/machine/src/symbolise.rs";
        for place in [mac_build::tree::root().to_str().unwrap(), "/another, place"] {
            assert_eq!(shorten(&format!("{place}/{inside}")), inside);
        }
        for outside in ["/rustc/0123/library/core/src/panicking.rs", "unknown.rs", ""] {
            assert_eq!(shorten(outside), outside);
        }
    }

    #[test]
    fn damaged_files_have_no_code() {
        assert!(executable_segments(b"").is_empty());
        assert!(executable_segments(b"\x7fELF\x02 and nothing more").is_empty());
        let mut header = vec![0xff_u8; 64];
        header[..5].copy_from_slice(b"\x7fELF\x02");
        assert!(executable_segments(&header).is_empty());
    }
}
