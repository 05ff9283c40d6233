//! Lists of regions in /proc: maps, smaps. A program decides how many regions there are, so a read
//! makes only the part of the text that it returns.

use alloc::string::String;
use alloc::sync::Weak;
use alloc::vec::Vec;
use mach::Machine;
use unix::memory::{PAGE, Region, RegionKind};
use unix::personality::Task;
use unix::process::ExactPid;
use unix::sync::give_turn;
use unix::thread::{System, SystemPage};
use unix::{Error, Result};

/// After this many regions, a list lets other tasks run.
const TURN: usize = 64;

/// The part of a text that a read asks for, as far as it has been made.
pub(super) struct Part {
    skip: u64,
    room: usize,
    pub(super) text: Vec<u8>,
}

impl Part {
    /// A part that begins at `offset` of the text and has at most `room` bytes.
    pub(super) fn new(offset: u64, room: usize) -> Part {
        Part { skip: offset, room, text: Vec::new() }
    }

    /// Appends the next bytes of the text; only those in the part are kept. `ENOMEM`.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let skipped = self.skip.min(bytes.len() as u64) as usize;
        self.skip -= skipped as u64;
        let wanted = &bytes[skipped..];
        let wanted = &wanted[..wanted.len().min(self.room)];
        self.text.try_reserve(wanted.len()).map_err(|_| Error::ENOMEM)?;
        self.text.extend_from_slice(wanted);
        self.room -= wanted.len();
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.room == 0
    }
}

/// The text of /proc/PID/maps. `ESRCH`, `ENOMEM`.
pub(super) async fn maps_text<M: Machine>(
    system: &System<M>,
    process: ExactPid,
    opened: &Weak<Task<M>>,
    part: &mut Part,
) -> Result<()> {
    let Some((thread, memory)) = system.opened_memory(process, opened)? else { return Ok(()) };
    let root = thread.directories().root();
    let mut next = 0;
    while !part.is_full() {
        let regions = memory.regions_from(next, TURN).await;
        let Some(last) = regions.last() else { break };
        next = last.range.end;
        for region in &regions {
            part.push(&region_line(region, &root).await)?;
        }
        give_turn().await;
    }
    for page in system.host().system_pages() {
        part.push(&system_line(page))?;
    }
    Ok(())
}

/// The text of /proc/PID/smaps, or with `sum` of smaps_rollup. `ESRCH`, `ENOMEM`.
pub(super) async fn region_usage_text<M: Machine>(
    system: &System<M>,
    process: ExactPid,
    opened: &Weak<Task<M>>,
    sum: bool,
    part: &mut Part,
) -> Result<()> {
    let Some((thread, memory)) = system.opened_memory(process, opened)? else { return Ok(()) };
    let root = thread.directories().root();
    let mut all = RegionUsage::default();
    let mut next = 0;
    while !part.is_full() {
        let regions = memory.regions_from(next, TURN).await;
        let Some(last) = regions.last() else { break };
        next = last.range.end;
        for region in &regions {
            let pages = memory.map().resident_pages(region.range.start, region.range.end).await;
            let swapped = memory.map().paged_out_pages(region.range.start, region.range.end).await;
            let [resident, swapped] = [pages, swapped].map(|pages| pages * (PAGE / 1024));
            let usage = RegionUsage { swapped, ..RegionUsage::of(region, resident) };
            if sum {
                all.add(&usage);
                continue;
            }
            part.push(&region_line(region, &root).await)?;
            part.push(alloc::format!("Size:           {:8} kB\n", region.length() / 1024).as_bytes())?;
            part.push(b"KernelPageSize:        4 kB\nMMUPageSize:           4 kB\n")?;
            part.push(usage.text().as_bytes())?;
        }
        give_turn().await;
    }
    for page in system.host().system_pages() {
        if !sum {
            part.push(&system_line(page))?;
            part.push(
                b"Size:                  4 kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n",
            )?;
            part.push(RegionUsage::default().text().as_bytes())?;
        }
    }
    if sum {
        let (low, high) = memory.map().bounds();
        let line = alloc::format!("{low:08x}-{high:x} ---p 00000000 00:00 0 {:26}[rollup]\n", "");
        part.push(line.as_bytes())?;
        part.push(all.text().as_bytes())?;
    }
    Ok(())
}

/// The sizes that smaps shows for regions, in KiB.
#[derive(Default)]
struct RegionUsage {
    resident: u64,
    shared: u64,
    anonymous: u64,
    locked: u64,
    swapped: u64,
}

impl RegionUsage {
    fn of(region: &Region, resident: u64) -> RegionUsage {
        let has_file = matches!(region.kind, RegionKind::File { .. });
        RegionUsage {
            resident,
            shared: if region.shared || (has_file && !region.rights.write) { resident } else { 0 },
            anonymous: if has_file || region.shared { 0 } else { resident },
            locked: if region.locked { region.length() / 1024 } else { 0 },
            swapped: 0,
        }
    }

    fn add(&mut self, other: &RegionUsage) {
        self.resident += other.resident;
        self.shared += other.shared;
        self.anonymous += other.anonymous;
        self.locked += other.locked;
        self.swapped += other.swapped;
    }

    fn text(&self) -> String {
        let rows = [
            ("Rss", self.resident),
            ("Pss", self.resident),
            ("Shared_Clean", self.shared),
            ("Shared_Dirty", 0),
            ("Private_Clean", 0),
            ("Private_Dirty", self.resident - self.shared),
            ("Referenced", self.resident),
            ("Anonymous", self.anonymous),
            ("Swap", self.swapped),
            ("SwapPss", self.swapped),
            ("Locked", self.locked),
        ];
        rows.iter()
            .map(|(name, value)| alloc::format!("{:<16}{value:>8} kB\n", alloc::format!("{name}:")))
            .collect()
    }
}

/// The line of a page that every program finds in its memory.
fn system_line(page: &SystemPage) -> Vec<u8> {
    let end = page.address + PAGE;
    let execute = if page.execute { 'x' } else { '-' };
    let line = alloc::format!("{:x}-{end:x} r-{execute}p 00000000 00:00 0", page.address);
    alloc::format!("{line:<72} {}\n", page.name).into_bytes()
}

async fn region_line(region: &Region, root: &unix::vfs::Location) -> Vec<u8> {
    let letter = |on: bool, letter: char| if on { letter } else { '-' };
    let (mut offset, mut device, mut number) = (0, (0, 0), 0);
    let mut name = Vec::new();
    match &region.kind {
        RegionKind::File { file, offset: at } => {
            let metadata = file.metadata();
            (offset, number) = (*at, metadata.number);
            device = (metadata.device.major, metadata.device.minor);
            name = file.path(root).await;
        }
        RegionKind::Heap => name.extend_from_slice(b"[heap]"),
        RegionKind::Stack => name.extend_from_slice(b"[stack]"),
        RegionKind::SharedZeros => name.extend_from_slice(b"/dev/zero (deleted)"),
        RegionKind::Zeros => {}
    }
    let mut line = alloc::format!(
        "{:x}-{:x} {}{}{}{} {offset:08x} {:02x}:{:02x} {number}",
        region.range.start,
        region.range.end,
        letter(region.rights.read, 'r'),
        letter(region.rights.write, 'w'),
        letter(region.rights.execute, 'x'),
        if region.shared { 's' } else { 'p' },
        device.0,
        device.1,
    )
    .into_bytes();
    if !name.is_empty() {
        // Names begin in column 73 of a line.
        line.resize(line.len().max(72), b' ');
        line.push(b' ');
        line.extend_from_slice(&name);
    } else {
        line.push(b' ');
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_does_not_depend_on_how_the_text_is_appended() {
        let whole: Vec<u8> = (0..100).collect();
        for (offset, room) in [(0, 100), (0, 7), (13, 20), (95, 50), (100, 5), (300, 5), (50, 0)] {
            for piece in [1, 3, 100] {
                let mut part = Part::new(offset, room);
                for bytes in whole.chunks(piece) {
                    part.push(bytes).unwrap();
                }
                let start = (offset as usize).min(100);
                assert_eq!(part.text, whole[start..(start + room).min(100)], "{offset} {room} {piece}");
            }
        }
    }
}
