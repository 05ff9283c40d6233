//! Modules that are not loaded: their files are the memory of the machine from an address above its
//! other memory on, privately, so that the machine's writes stay its own. QEMU's loader copies each
//! module and has 32-bit addresses for it; a mapped one costs neither time nor memory until it is
//! read, and may have any size.

use std::path::{Path, PathBuf};

/// Smaller modules are loaded: a slot of memory for each is not worth while, and tests of the
/// loader's own ways have small modules.
const LEAST: u64 = 16 << 20;
const PAGE: u64 = 4096;
const GIBIBYTE: u64 = 1 << 30;

/// A module in memory of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    name: String,
    file: PathBuf,
    start: u64,
    size: u64,
}

/// Takes the modules that can be mapped out of `modules`, which are files with their arguments, for
/// a machine with so much memory (as QEMU writes it). A module with arguments is loaded, and so is
/// a file that is not of whole pages, since its last page would be cut off.
pub(crate) fn take(modules: &mut Vec<(PathBuf, String)>, memory: &str) -> Vec<Mapped> {
    let Some(memory) = bytes(memory) else { return Vec::new() };
    let mut next = memory.saturating_add(4 * GIBIBYTE).next_multiple_of(GIBIBYTE);
    let place = |(file, arguments): &mut (PathBuf, String)| {
        let size = file.metadata().ok()?.len();
        let name =
            name(file).filter(|_| arguments.is_empty() && size >= LEAST && size.is_multiple_of(PAGE))?;
        let start = next;
        next += size.next_multiple_of(GIBIBYTE);
        Some(Mapped { name, file: file.clone(), start, size })
    };
    let mapped: Vec<Mapped> = modules.iter_mut().filter_map(place).collect();
    modules.retain(|(file, _)| mapped.iter().all(|module| module.file != *file));
    mapped
}

/// The file's name, if it can be part of a word of the kernel's command line.
fn name(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',').then(|| name.to_string())
}

impl Mapped {
    /// The word of the kernel's command line that says where the module is.
    pub(crate) fn option(&self) -> String {
        format!(" module={},{:#x},{}", self.name, self.start, self.size)
    }
}

/// The arguments by which QEMU maps the modules.
pub(crate) fn arguments(mapped: &[Mapped], memory: &str) -> anyhow::Result<Vec<String>> {
    let (Some(last), Some(memory)) = (mapped.last(), bytes(memory)) else { return Ok(Vec::new()) };
    // The window for memory beyond the ordinary one begins at an address of QEMU's choice, at most
    // a gibibyte below that of the first module.
    let end = last.start + last.size + memory + 2 * GIBIBYTE;
    let mut arguments = vec!["-m".to_string(), format!("slots={},maxmem={end}", mapped.len())];
    for (index, module) in mapped.iter().enumerate() {
        let file = crate::qemu::value(&module.file)?;
        arguments.push("-object".into());
        arguments.push(format!(
            "memory-backend-file,id=module{index},share=off,size={},mem-path={file}",
            module.size
        ));
        arguments.push("-device".into());
        arguments.push(format!("pc-dimm,memdev=module{index},addr={:#x}", module.start));
    }
    Ok(arguments)
}

/// A size as QEMU writes it: mebibytes, or with another unit. `None` if it is none.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "B" => 0,
        "K" => 10,
        "" | "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_modules_of_whole_pages_are_mapped_above_the_other_memory() {
        let scratch = mac_build::scratch::Scratch::new("mapped").unwrap();
        let directory = scratch.0.join("mapped, modules");
        std::fs::create_dir(&directory).unwrap();
        let file = |name: &str, size: u64| {
            let path = directory.join(name);
            std::fs::File::create(&path).unwrap().set_len(size).unwrap();
            path
        };
        let (small, odd, blank) = (file("root", 100), file("odd", LEAST + 1), file("a b", LEAST));
        let (image, other) = (file("image.cpio", 3 * GIBIBYTE + PAGE), file("other", LEAST));
        let mut modules: Vec<(PathBuf, String)> =
            [&small, &image, &odd, &blank, &other, &other].map(|file| (file.clone(), String::new())).to_vec();
        modules[5] = (small.clone(), " a=1".into());
        let mapped = take(&mut modules, "1536M");
        assert_eq!(modules.len(), 4);
        let options: String = mapped.iter().map(Mapped::option).collect();
        assert_eq!(options, " module=image.cpio,0x180000000,3221229568 module=other,0x280000000,16777216");
        let arguments = arguments(&mapped, "1536M").unwrap();
        assert!(arguments[3].contains(",size=3221229568,") && arguments[3].ends_with("/image.cpio"));
        assert!(arguments[3].contains("mapped,, modules"), "a comma in a path ends no option");
        assert_eq!(arguments[5], "pc-dimm,memdev=module0,addr=0x180000000");
        // The second one ends inside of the window, wherever that begins.
        assert_eq!(arguments[1], format!("slots=2,maxmem={}", (13_u64 << 30) + (512 << 20) + (16 << 20)));
    }

    #[test]
    fn without_such_modules_the_machine_is_the_usual_one() {
        let mut modules = vec![(PathBuf::from("/no/such/file"), String::new())];
        assert!(take(&mut modules, "512M").is_empty() && modules.len() == 1);
        assert!(take(&mut modules, "size=512M").is_empty() && modules.len() == 1);
        assert!(arguments(&[], "512M").unwrap().is_empty());
    }

    #[test]
    fn memory_is_in_mebibytes_unless_it_says_otherwise() {
        assert_eq!(
            ["512", "512M", "2g", "64K"].map(bytes),
            [512 << 20, 512 << 20, 2 << 30, 64 << 10].map(Some)
        );
        assert_eq!(["", "M", "1.5G", "1GM", "99999999T"].map(bytes), [None; 5]);
    }
}
