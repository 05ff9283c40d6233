//! Core files: the memory and the registers of a process that a signal ends, in the file `core` of
//! its working directory.

use crate::layout::core::{self as layout, Range, head};
use crate::layout::registers::{to_extended, to_registers};
use crate::layout::signal::to_information;
use crate::linux::Linux;
use crate::procfs::{argument_bytes, auxiliary_bytes};
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::file::OpenFile;
use unix::memory::{Region, RegionKind};
use unix::process::{Dump, Resource};
use unix::sync::give_turn;
use unix::thread::{CallContext, Thread};
use unix::vfs::{At, FileType, Mode, OpenFlags};
use unix::{Bytes, Error, Result};

const PAGE: u64 = 4096;
/// How many bytes of memory are written at a time.
const PIECE: u64 = 64 * PAGE;

impl<M: Machine> Linux<M> {
    /// What a thread does for the core file of its ending process: it leaves its registers; the
    /// thread that took the signal waits for all others to do that, and writes the file.
    pub(crate) async fn dump(&self, thread: &Thread<M>) {
        let (tid, processes) = (thread.tid(), thread.system().processes());
        let Ok(registers) = thread.registers() else { return };
        let extended = thread.extended_state().unwrap_or_default();
        if !processes.with(|table| table.add_to_dump(tid, registers, extended)) {
            return;
        }
        processes.be_alone(tid).await;
        let Some(dump) = processes.with(|table| table.take_dump(tid)) else { return };
        if self.write_core(thread, dump).await.is_ok() {
            processes.with(|table| table.dumped(tid));
        }
    }

    async fn write_core(&self, thread: &Thread<M>, dump: Dump) -> Result<()> {
        let limit = thread.soft_limit(Resource::Core);
        let context = thread.context();
        let file = open(&context).await?;
        let (regions, ranges) = ranges(thread).await;
        let (process, threads) = self.description(thread, dump).await?;
        let (head, places) = head(&process, &threads, &ranges);
        let end = places.last().zip(ranges.last()).map_or(head.len() as u64, |(at, range)| at + range.kept);
        write(&file, &context, 0, &head, limit).await?;
        for ((region, range), place) in regions.iter().zip(&ranges).zip(&places) {
            for at in (0..range.kept).step_by(PIECE as usize) {
                if thread.system().processes().with(|table| table.gives_memory(thread.tid())) {
                    return Err(Error::ENOMEM);
                }
                let length = PIECE.min(range.kept - at);
                // Memory that was never used is a hole in the file.
                let (start, is_file) = (range.start + at, matches!(region.kind, RegionKind::File { .. }));
                if is_file || thread.memory().map().resident_pages(start, start + length).await > 0 {
                    let mut bytes = alloc::vec![0; length as usize];
                    if let Ok(count) = thread.memory().peek(start, &mut bytes).await {
                        write(&file, &context, place + at, &bytes[..count], limit).await?;
                    }
                }
                give_turn().await;
            }
        }
        file.truncate(&context.caller(), end.min(limit)).await
    }

    async fn description(
        &self,
        thread: &Thread<M>,
        dump: Dump,
    ) -> Result<(layout::Process, Vec<layout::Thread>)> {
        let (pid, memory) = (thread.pid(), thread.memory());
        let size = self.processor.extended_size;
        let threads = dump.threads.into_iter().map(|of| layout::Thread {
            tid: of.tid.number(),
            registers: to_registers(&of.registers, None),
            extended: to_extended(of.extended, size),
            signals: [of.pending.bits(), of.blocked.bits()],
            times: [of.usage.user_time, of.usage.system_time],
        });
        let threads = threads.collect();
        let arguments = argument_bytes(memory).await;
        thread.system().processes().with(|table| {
            let process = table.process(pid)?;
            let (user, group) = (process.credentials().user.real, process.credentials().group.real);
            let parent = process.parent().map_or(0, |parent| parent.number());
            let process = layout::Process {
                ids: [pid.number(), parent, process.group().number(), process.session().number()],
                user: [user, group],
                nice: process.nice,
                name: process.name().to_vec(),
                arguments,
                auxiliary: auxiliary_bytes(memory),
                information: to_information(&dump.information),
                signal: dump.information.signal.number(),
            };
            Ok((process, threads))
        })
    }
}

/// Opens the core file. `EACCES` if there is another file of that name which is not a regular file
/// of the process's user with this one name.
async fn open<M: Machine>(context: &CallContext<M>) -> Result<Arc<OpenFile>> {
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::NO_FOLLOW;
    let caller = context.caller();
    let file = caller.open(&At::Current, b"core", flags, Mode::new(0o600)).await?;
    let metadata = file.metadata();
    let is_own = metadata.user == caller.identity.user && metadata.links == 1;
    if metadata.file_type != FileType::Regular || !is_own {
        return Err(Error::EACCES);
    }
    file.truncate(&caller, 0).await?;
    Ok(file)
}

/// Writes all bytes below `limit`.
async fn write<M: Machine>(
    file: &OpenFile,
    context: &CallContext<M>,
    at: u64,
    bytes: &[u8],
    limit: u64,
) -> Result<()> {
    let count = limit.saturating_sub(at).min(bytes.len() as u64) as usize;
    if count == 0 {
        return Ok(());
    }
    file.write_at(&context.caller(), at, &mut Bytes::of(&bytes[..count])).await.map(drop)
}

/// The regions of the process, and what of them is in the file: private memory that may have been
/// written, shared memory without a file, and the first page of programs and libraries.
async fn ranges<M: Machine>(thread: &Thread<M>) -> (Vec<Region>, Vec<Range>) {
    const TURN: usize = 64;
    let root = thread.directories().root();
    let (mut all, mut ranges, mut next) = (Vec::new(), Vec::new(), 0);
    loop {
        let regions = thread.memory().regions_from(next, TURN).await;
        let Some(last) = regions.last() else { return (all, ranges) };
        next = last.range.end;
        for region in regions {
            let bit = |is_set, bit| if is_set { bit } else { 0 };
            let rights = region.rights;
            let file = match &region.kind {
                RegionKind::File { file, offset } => Some((file.path(&root).await, *offset)),
                _ => None,
            };
            let kept = match &region.kind {
                RegionKind::File { .. } if region.shared => 0,
                RegionKind::File { .. } if rights.write => region.length(),
                RegionKind::File { offset: 0, .. } => PAGE,
                RegionKind::File { .. } => 0,
                _ => region.length(),
            };
            ranges.push(Range {
                start: region.range.start,
                length: region.length(),
                kept,
                rights: bit(rights.read, 4) | bit(rights.write, 2) | bit(rights.execute, 1),
                file,
            });
            all.push(region);
        }
        give_turn().await;
    }
}
