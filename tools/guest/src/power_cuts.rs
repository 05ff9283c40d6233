//! Power cuts, made from the writes of a disk that QEMU has recorded (`blklogwrites`): what a disk
//! may hold after any of them has a sound file system with everything that was synchronized.
//!
//! The program `power-cuts` says in a page after the file system which files there are, and what it
//! changes next. A cut is somewhere in the record. The disk then has everything up to the last
//! flush before that, and of each write since then all, nothing, or some sectors. A write that was
//! answered before a flush was, and issued while the flush was under way, counts as flushed.

use super::disk::tool;
use anyhow::{Context, Result, bail, ensure};
use mac_build::scratch::Scratch;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;

const SECTOR: usize = 512;
/// How many bytes the file system has, and where the two pages are of which one is written at a
/// time.
const FILE_SYSTEM: usize = 40 << 20;
const PAGES: [usize; 2] = [44 << 20, (44 << 20) + PAGE];
const PAGE: usize = 4096;
/// The second sector of the superblock, which is kept or lost with the first: e2fsck opens no file
/// system whose superblock does not have its check sum, unless there is a copy.
const SUPERBLOCK_END: usize = 1536;
/// What a record begins with, and the flags of its entries (Linux' `dm-log-writes`).
const MAGIC: u64 = 0x006a_7366_7773_6872;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
/// How many cuts are tried side by side.
const WORKERS: usize = 2;
/// How many cuts that went wrong are described.
const SHOWN: usize = 3;
/// The seed of the cuts, so that the cut of a number is the same each time for the same record.
const SEED: u64 = 24;

/// Makes cuts of a record of a disk of so many bytes, and checks what is on the disk then.
///
/// # Errors
/// The record cannot be read, or has no such workload; or what a cut leaves is wrong.
pub(super) fn check(log: &Path, size: u64, cuts: u32) -> Result<()> {
    let log = fs::read(log).with_context(|| format!("reading {}", log.display()))?;
    let size = usize::try_from(size)?;
    let entries = entries(&log, size)?;
    let begun = entries.iter().position(|entry| entry.place == PAGES[0] && !entry.data.is_empty());
    let begun = begun.context("the workload has written no page")?;
    let mut random = Random(SEED);
    let mut places: Vec<usize> =
        (0..cuts).map(|_| begun + 1 + random.below(entries.len() - begun) as usize).collect();
    places.sort_unstable();
    let (wrong, lost) = (Mutex::new(Vec::new()), AtomicU32::new(0));
    let (sender, receiver) = sync_channel::<(usize, Vec<u8>)>(WORKERS);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = receiver.lock().map(|receiver| receiver.recv());
                    let Ok(Ok((number, disk))) = next else { return };
                    if let Err(error) = check_disk(&disk)
                        && let Ok(mut wrong) = wrong.lock()
                    {
                        wrong.push(format!("cut {number}: {error:#}"));
                    }
                }
            });
        }
        let (mut durable, mut at, mut since) = (vec![0; size], 0, Vec::new());
        for (number, &place) in places.iter().enumerate() {
            while at < place {
                let entry = &entries[at];
                at += 1;
                if !entry.is_flush {
                    since.push(entry);
                    continue;
                }
                since.drain(..).for_each(|entry: &Entry| entry.apply(&log, &mut durable, |_| true));
            }
            let mut disk = durable.clone();
            for entry in &since {
                let (fate, random, mut kept) = (random.below(3), &mut random, false);
                entry.apply(&log, &mut disk, |place| {
                    if place != SUPERBLOCK_END {
                        kept = entry.is_durable || fate == 0 || fate == 1 && random.below(2) == 0;
                    }
                    kept
                });
            }
            lost.fetch_add(u32::from(!since.is_empty()), Ordering::Relaxed);
            // The workers end with the last cut only.
            let _ = sender.send((number, disk));
        }
        drop(sender);
    });
    let wrong = wrong.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !wrong.is_empty() {
        bail!(
            "{} of {cuts} power cuts went wrong: {}",
            wrong.len(),
            wrong[..wrong.len().min(SHOWN)].join("; ")
        );
    }
    let lost = lost.into_inner();
    println!(
        "# {cuts} power cuts in {} writes, {lost} of them with writes under way: all right",
        entries.len()
    );
    // A record in which everything is flushed immediately would show little.
    ensure!(lost >= cuts / 10, "only {lost} of {cuts} power cuts had writes that were not flushed");
    Ok(())
}

/// An entry of the record.
#[derive(Debug)]
struct Entry {
    /// The first byte on the disk.
    place: usize,
    /// How many bytes are written, or discarded.
    length: usize,
    /// Where in the record the bytes are. Empty: they are discarded.
    data: Range<usize>,
    is_flush: bool,
    /// Whether the write was on stable storage when it was answered.
    is_durable: bool,
}

impl Entry {
    /// Writes the sectors of which `kept` says that they were to a disk. It gets the place of each.
    fn apply(&self, log: &[u8], disk: &mut [u8], mut kept: impl FnMut(usize) -> bool) {
        for at in (0..self.length).step_by(SECTOR).filter(|&at| kept(self.place + at)) {
            let to = &mut disk[self.place + at..self.place + at + SECTOR];
            match self.data.is_empty() {
                true => to.fill(0),
                false => to.copy_from_slice(&log[self.data.start + at..self.data.start + at + SECTOR]),
            }
        }
    }
}

/// The entries of a record.
fn entries(log: &[u8], size: usize) -> Result<Vec<Entry>> {
    let word = |at: usize| -> Result<u64> {
        let bytes = log.get(at..at + 8).context("the record is cut off")?;
        Ok(u64::from_le_bytes(bytes.try_into()?))
    };
    ensure!(word(0)? == MAGIC && word(24)? as u32 as usize == SECTOR, "that is no record of a disk's writes");
    let (mut entries, mut at) = (Vec::new(), SECTOR);
    for _ in 0..word(16)? {
        let [sector, count, flags] = [word(at)?, word(at + 8)?, word(at + 16)?];
        let (place, length) = (usize::try_from(sector)? * SECTOR, usize::try_from(count)? * SECTOR);
        at += SECTOR;
        let data = if flags & DISCARD == 0 { at..at + length } else { at..at };
        at = data.end;
        ensure!(
            place + length <= size && at <= log.len(),
            "a write beyond the disk, or a record that is cut off"
        );
        let is_flush = flags & FLUSH != 0;
        entries.push(Entry { place, length, data, is_flush, is_durable: flags & FUA != 0 });
    }
    Ok(entries)
}

/// What the program has said before a change.
#[derive(Debug, Default)]
struct Told {
    step: u32,
    /// The version and the size of each file.
    files: BTreeMap<String, (u32, usize)>,
    change: String,
    /// The file that is changed, and what it becomes.
    name: String,
    version: u32,
    size: usize,
}

/// What a page says, if it was written as a whole.
fn told(page: &[u8]) -> Option<Told> {
    let text = str::from_utf8(page).ok()?.trim_end_matches('\0');
    let mut told = Told::default();
    let mut lines = text.lines();
    told.step = lines.next()?.strip_prefix("step ")?.parse().ok()?;
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["file", name, version, size] => {
                told.files.insert(name.into(), (version.parse().ok()?, size.parse().ok()?));
            }
            ["next", change, name, version, size] => {
                (told.change, told.name) = (change.into(), name.into());
                (told.version, told.size) = (version.parse().ok()?, size.parse().ok()?);
            }
            ["end", step] => return (step.parse() == Ok(told.step)).then_some(told),
            _ => return None,
        }
    }
    None
}

/// Checks what is on a disk after a power cut.
fn check_disk(disk: &[u8]) -> Result<()> {
    let said = PAGES.iter().filter_map(|&at| told(&disk[at..at + PAGE])).max_by_key(|told| told.step);
    let told = said.context("there is no page that says which files there are")?;
    let scratch = Scratch::new("power-cut")?;
    let image = scratch.0.join("disk.img");
    write_sparse(&image, &disk[..FILE_SYSTEM])?;
    let mut e2fsck = tool("e2fsck")?;
    let found = e2fsck.args(["-f", "-p"]).arg(&image).output().context("starting e2fsck")?;
    let words = String::from_utf8_lossy(&found.stdout);
    let name = image.display().to_string();
    let is_usual = |line: &str| {
        let said = line.strip_prefix(&name).unwrap_or(line).trim_start_matches(':').trim();
        ["recovering journal", "Clearing orphaned inode", "Truncating orphaned inode"]
            .iter()
            .any(|usual| said.starts_with(usual))
            || said.contains(" files (")
            || said.is_empty()
    };
    if !matches!(found.status.code(), Some(0 | 1)) || !words.lines().all(is_usual) {
        bail!("step {}: e2fsck: {}", told.step, words.trim());
    }
    let files = scratch.0.join("files");
    fs::create_dir(&files)?;
    let mut debugfs = tool("debugfs")?;
    let dumped = debugfs.arg("-R").arg(format!("rdump / {}", files.display())).arg(&image).output()?;
    ensure!(dumped.status.success(), "debugfs: {}", String::from_utf8_lossy(&dumped.stderr));
    let mut there = BTreeMap::new();
    for entry in fs::read_dir(&files)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "lost+found" {
            ensure!(fs::read_dir(entry.path())?.next().is_none(), "files were lost and found");
            continue;
        }
        there.insert(name, fs::read(entry.path())?);
    }
    check_files(&told, &there)
        .with_context(|| format!("step {}, which was to {} {}", told.step, told.change, told.name))
}

/// Checks that the files are those that the program has told of.
fn check_files(told: &Told, there: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let new_name = format!("{}.new", told.name);
    for (name, content) in there {
        let may_have_blocks = |name: &str, versions: &[u32], least: usize| {
            content.chunks(SECTOR).enumerate().all(|(number, block)| {
                let is_zero = block.iter().all(|&byte| byte == 0) && number * SECTOR + block.len() > least;
                is_zero
                    || versions.iter().any(|&version| block == &stamp(name, version, number)[..block.len()])
            })
        };
        let is_whole = |version: u32, size: usize| {
            content.len() == size && may_have_blocks(name, &[version], usize::MAX)
        };
        let old = told.files.get(name).copied();
        let is_right = match old {
            _ if name == "noise" => may_have_blocks(name, &[1], 0),
            None if *name == new_name => may_have_blocks(&told.name, &[told.version], 0),
            _ if *name != told.name => old.is_some_and(|(version, size)| is_whole(version, size)),
            // What is changed may have been changed in part.
            Some((version, size)) => match told.change.as_str() {
                "replace" => is_whole(version, size) || is_whole(told.version, told.size),
                "delete" => is_whole(version, size),
                "overwrite" | "map" => {
                    content.len() == size && may_have_blocks(name, &[version, told.version], size)
                }
                "append" => content.len() >= size && may_have_blocks(name, &[version], size),
                "cut" => {
                    let sizes = told.size..=size;
                    sizes.contains(&content.len()) && is_cut(name, version, told.size, content)
                }
                _ => may_have_blocks(name, &[version, told.version], 0),
            },
            None => match told.change.as_str() {
                "replace" => is_whole(told.version, told.size),
                _ => may_have_blocks(name, &[told.version], 0),
            },
        };
        if !is_right {
            let old = old.unwrap_or_default();
            let other = |at: &usize| content[*at] != stamp(name, old.0, at / SECTOR)[at % SECTOR];
            bail!(
                "{name} is not as it was synchronized, with version {} and {} bytes: it has {} bytes, and others from \
                 byte {:?} to {:?}, which {} zeros; the change is to version {} and {} bytes",
                old.0,
                old.1,
                content.len(),
                (0..content.len()).find(other),
                (0..content.len()).rfind(other),
                if (0..content.len()).filter(other).all(|at| content[at] == 0) { "are" } else { "are not" },
                told.version,
                told.size,
            );
        }
    }
    let is_missing =
        |name: &&String| !(there.contains_key(*name) || **name == told.name && told.change == "delete");
    match told.files.keys().find(is_missing) {
        Some(name) => bail!("{name} is missing"),
        None => Ok(()),
    }
}

/// Whether a file has what it had before it was cut, but for zeros after its new end in the page of
/// that: they are written before the file's size is, as on Linux.
fn is_cut(name: &str, version: u32, end: usize, content: &[u8]) -> bool {
    content.chunks(SECTOR).enumerate().all(|(number, block)| {
        let stamp = stamp(name, version, number);
        block.iter().zip(&stamp).zip(number * SECTOR..).all(|((byte, old), at)| {
            let is_cleared = *byte == 0 && (end..end.next_multiple_of(PAGE)).contains(&at);
            byte == old || is_cleared
        })
    })
}

/// What a block of a file says.
fn stamp(name: &str, version: u32, block: usize) -> [u8; SECTOR] {
    let text = format!("{name} {version} {block}\n");
    let mut bytes = text.bytes().cycle();
    std::array::from_fn(|_| bytes.next().unwrap_or_default())
}

/// Writes a file without its zeros.
fn write_sparse(path: &Path, content: &[u8]) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(path)?;
    file.set_len(content.len() as u64)?;
    for (number, chunk) in content.chunks(1 << 16).enumerate() {
        if chunk.iter().any(|&byte| byte != 0) {
            file.write_all_at(chunk, (number << 16) as u64)?;
        }
    }
    Ok(())
}

/// A sequence of numbers that a seed determines (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % bound.max(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(name: &str, version: u32, size: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            (0..size.div_ceil(SECTOR)).flat_map(|block| stamp(name, version, block)).collect();
        bytes.truncate(size);
        bytes
    }

    fn page(change: &str) -> Told {
        let next = if change == "delete" { "0 0" } else { "9 3000" };
        let text = format!("step 8\nfile f1 3 2000\nfile f2 7 1000\nnext {change} f1 {next}\nend 8\n");
        let mut page = [0; PAGE];
        page[..text.len()].copy_from_slice(text.as_bytes());
        assert!(told(&page[..text.len() - 3]).is_none() && told(&[0; PAGE]).is_none());
        told(&page).unwrap()
    }

    #[test]
    fn what_was_synchronized_must_be_there_and_nothing_else() {
        let right = |change: &str, files: &[(&str, Vec<u8>)]| {
            let files = files.iter().map(|(name, content)| (name.to_string(), content.clone())).collect();
            check_files(&page(change), &files).is_ok()
        };
        let (one, two) = (("f1", content("f1", 3, 2000)), ("f2", content("f2", 7, 1000)));
        let (new, foreign) = (("f1", content("f1", 9, 3000)), ("f1", content("f2", 7, 2000)));
        let mut torn = one.clone();
        torn.1[..SECTOR].copy_from_slice(&stamp("f1", 9, 0));
        let zeros = ("f1", vec![0; 2000]);
        for change in ["rewrite", "overwrite", "map", "append", "cut", "replace", "delete"] {
            assert!(right(change, &[one.clone(), two.clone()]) == (change != "cut"), "{change}");
            assert!(!right(change, &[foreign.clone(), two.clone()]), "{change}");
            assert!(!right(change, std::slice::from_ref(&one)), "{change}: f2 is missing");
            assert!(
                !right(change, &[one.clone(), ("f2", content("f2", 6, 1000))]),
                "{change}: an old version"
            );
            assert!(!right(change, &[one.clone(), ("f2", content("f2", 7, 999))]), "{change}: cut off");
            assert!(!right(change, &[one.clone(), two.clone(), ("f3", Vec::new())]), "{change}: too many");
            assert_eq!(right(change, std::slice::from_ref(&two)), change == "delete", "{change}");
            assert_eq!(
                right(change, &[torn.clone(), two.clone()]),
                ["rewrite", "overwrite", "map"].contains(&change)
            );
            assert_eq!(right(change, &[new.clone(), two.clone()]), ["rewrite", "replace"].contains(&change));
            assert_eq!(right(change, &[zeros.clone(), two.clone()]), change == "rewrite");
        }
        let mut cleared = content("f1", 3, 9000);
        cleared[5000..8192].fill(0);
        assert!(is_cut("f1", 3, 5000, &cleared) && !is_cut("f1", 3, 5001, &cleared));
        cleared[8192] = 0;
        assert!(!is_cut("f1", 3, 5000, &cleared), "the next page");
        let noise = |bytes: Vec<u8>| right("rewrite", &[one.clone(), two.clone(), ("noise", bytes)]);
        assert!(noise(content("noise", 1, 700)) && noise(vec![0; 700]) && !noise(content("f1", 3, 700)));
        let made = |bytes: Vec<u8>| right("replace", &[one.clone(), two.clone(), ("f1.new", bytes)]);
        assert!(made(content("f1", 9, 700)) && !made(content("f1", 3, 700)) && !made(content("f2", 7, 700)));
    }

    #[test]
    fn a_record_is_read_and_a_damaged_one_is_refused() {
        let mut log = vec![0; SECTOR];
        log[..8].copy_from_slice(&MAGIC.to_le_bytes());
        log[16..24].copy_from_slice(&3_u64.to_le_bytes());
        log[24..28].copy_from_slice(&512_u32.to_le_bytes());
        let mut add = |words: [u64; 3], data: usize| {
            let at = log.len();
            log.resize(at + SECTOR, 0);
            for (number, word) in words.iter().enumerate() {
                log[at + 8 * number..at + 8 * number + 8].copy_from_slice(&word.to_le_bytes());
            }
            log.resize(log.len() + data, 7);
        };
        add([2, 2, 0], 1024);
        add([0, 0, FLUSH], 0);
        add([0, 8, DISCARD], 0);
        let found = entries(&log, 4096).unwrap();
        assert_eq!((found[0].place, found[0].length, found[0].data.clone()), (1024, 1024, 1024..2048));
        assert!(found[1].is_flush && found[2].data.is_empty() && found[2].length == 4096);
        let mut disk = vec![1; 4096];
        found[0].apply(&log, &mut disk, |place| place == 1536);
        assert_eq!((disk[1024], disk[1536], disk[2048]), (1, 7, 1));
        found[2].apply(&log, &mut disk, |place| place == 0);
        assert_eq!((disk[0], disk[512]), (0, 1));
        assert!(
            entries(&log, 2000).is_err()
                && entries(&log[..1600], 4096).is_err()
                && entries(&[0; 512], 4096).is_err()
        );
    }
}
