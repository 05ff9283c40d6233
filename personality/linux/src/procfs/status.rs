//! The texts in /proc about a process (proc(5)); the files are in [`super`].

use super::Sight;
use super::subject::Subject;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use mach::Machine;
use mach::machine::ExecutionContext;
use unix::credentials::Ids;
use unix::memory::{Memory, PAGE};
use unix::process::{ExactPid, Limit, Phase, Pid, Process, Resource};
use unix::signal::SignalSet;
use unix::thread::System;
use unix::{Error, Result};

/// The most bytes of arguments or of environment that are shown.
const STRINGS_LIMIT: u64 = 1 << 20;

/// The sizes of a process's memory that are shown.
#[derive(Default)]
struct MemoryUsage {
    /// Resident memory in KiB.
    resident: u64,
    /// KiB that only swap space has.
    swapped: u64,
    regions: unix::memory::Usage,
    code: (u64, u64),
    stack_start: u64,
    arguments: (u64, u64),
    environment: (u64, u64),
}

impl MemoryUsage {
    /// Replaces addresses by values that only show whether there is a program, as Linux does.
    fn hide_addresses(&mut self) {
        let is_there = u64::from(self.code != (0, 0));
        (self.code, self.stack_start) = ((is_there, is_there), 0);
        (self.arguments, self.environment) = ((0, 0), (0, 0));
    }
}

/// The real, effective, saved and file-system id, as they are shown.
fn shown_ids(ids: Ids, shown: impl Fn(u32) -> u32) -> String {
    let all = [ids.real, ids.effective, ids.saved, ids.file].map(|id| alloc::format!("{}", shown(id)));
    all.join("\t")
}

fn ticks(time: core::time::Duration) -> u64 {
    (time.as_millis() / 10) as u64
}

/// The bits of a mask as a list of ranges of their numbers: `0-3,6`.
fn list(mask: u64) -> String {
    let is_set = |bit: u32| bit < u64::BITS && mask & 1 << bit != 0;
    let mut text = String::new();
    let mut bit = 0;
    while bit < u64::BITS {
        let first = bit;
        while is_set(bit) {
            bit += 1;
        }
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match bit - first {
            0 => Ok(()),
            1 => write!(text, "{comma}{first}"),
            _ => write!(text, "{comma}{first}-{}", bit - 1),
        };
        bit += 1;
    }
    text
}

async fn memory_usage<M: Machine>(system: &System<M>, process: ExactPid) -> MemoryUsage {
    let Some(thread) = system.thread_of_exact(process) else { return MemoryUsage::default() };
    let memory = thread.memory();
    let details = memory.details();
    let (low, high) = memory.map().bounds();
    let resident = memory.map().resident_pages(low, high).await * (PAGE / 1024);
    system.processes().with(|table| table.note_resident(process.pid(), resident));
    let swapped = memory.map().paged_out_pages(low, high).await * (PAGE / 1024);
    MemoryUsage {
        resident,
        swapped,
        regions: memory.usage().await,
        code: (details.code.start, details.code.end),
        stack_start: details.stack_start,
        arguments: (details.arguments.start, details.arguments.end),
        environment: (details.environment.start, details.environment.end),
    }
}

/// The text of /proc/PID/stat and /proc/PID/task/TID/stat. If the reader may not inspect the
/// process (`permitted` is false), it has no addresses. `ESRCH`.
pub(super) async fn stat_text<M: Machine>(
    system: &System<M>,
    subject: Subject,
    permitted: bool,
    sight: &Sight,
) -> Result<String> {
    let process = subject.process;
    let mut memory = memory_usage(system, process).await;
    if !permitted {
        memory.hide_addresses();
    }
    let session = system.processes().with(|table| table.exact_process(process).map(Process::session))?;
    let terminal = system.terminal_of_session(session);
    let foreground_number = |group| match Pid::new(group) {
        Some(group) => i64::from(system.processes().with(|table| table.number_in(&sight.processes, group))),
        None => -1,
    };
    let (terminal, foreground) = match &terminal {
        Some(terminal) => {
            let number = terminal.number();
            let device = (number.minor & 0xff) | number.major << 8 | (number.minor & !0xff) << 12;
            (device, terminal.foreground_group().map_or(-1, foreground_number))
        }
        None => (0, -1),
    };
    let processor = subject.find(system).map_or(0, |thread| thread.machine_thread().processor());
    system.processes().with(|table| {
        let (process, thread) = subject.records(table)?;
        let usage = subject.usage(table)?;
        let (letter, _) = subject.state(table)?;
        let actions = process.actions().lock();
        let (caught, ignored) = (actions.caught().bits(), actions.ignored().bits());
        let blocked = thread.map_or(0, |thread| thread.blocked().bits());
        let exit_code = match process.phase() {
            Phase::Zombie(status) if permitted => exit_code(status),
            _ => 0,
        };
        let children = &process.children_usage;
        let number = |id| table.number_in(&sight.processes, id);
        let mut text = String::new();
        let _ = write!(
            text,
            "{} ({}) {letter} {} {} {} {terminal} {foreground} 0 {} {} {} {} {} {} {} {} {} {} {} 0 {} {} {} {} ",
            number(subject.id()),
            String::from_utf8_lossy(subject.name(table)?),
            process.parent().map_or(0, number),
            number(process.group()),
            number(process.session()),
            usage.minor_faults,
            children.minor_faults,
            usage.major_faults,
            children.major_faults,
            ticks(usage.user_time),
            ticks(usage.system_time),
            ticks(children.user_time),
            ticks(children.system_time),
            20 + i32::from(process.nice),
            process.nice,
            process.thread_count(),
            ticks(process.started),
            memory.regions.total,
            memory.resident * 1024 / PAGE,
            process.limits.soft(Resource::Resident),
        );
        let (code, stack) = (memory.code, memory.stack_start);
        let _ = writeln!(
            text,
            "{} {} {stack} 0 0 {} {blocked} {ignored} {caught} 0 0 0 17 {processor} 0 0 0 0 0 0 0 0 {} {} {} {} {exit_code}",
            code.0,
            code.1,
            process.pending().set().bits(),
            memory.arguments.0,
            memory.arguments.1,
            memory.environment.0,
            memory.environment.1,
        );
        Ok(text)
    })
}

/// The text of /proc/PID/status. `ESRCH`.
pub(super) async fn status_text<M: Machine>(
    system: &System<M>,
    subject: Subject,
    sight: &Sight,
) -> Result<String> {
    let (pid, id) = (subject.process.pid(), subject.id());
    let memory = memory_usage(system, subject.process).await;
    let (memory, resident, swapped) = (memory.regions, memory.resident, memory.swapped);
    let found = subject.find(system);
    let umask = found.as_ref().map_or(0o022, |thread| thread.directories().umask().bits());
    let affinity = found.as_ref().map_or(0, |thread| thread.machine_thread().affinity());
    let room = found.as_ref().map_or(0, |thread| thread.descriptors().room());
    system.processes().with(|table| {
        let (process, thread) = subject.records(table)?;
        let (letter, word) = subject.state(table)?;
        let credentials = thread.map_or(process.credentials(), |thread| thread.credentials());
        let (user, group) = (
            shown_ids(credentials.user, |id| sight.users.shown_user(id)),
            shown_ids(credentials.group, |id| sight.users.shown_group(id)),
        );
        let number = |id| table.number_in(&sight.processes, id);
        let own = thread.map_or(SignalSet::EMPTY, |thread| thread.pending().set());
        let blocked = thread.map_or(SignalSet::EMPTY, |thread| thread.blocked());
        let actions = process.actions().lock();
        let usage = subject.usage(table)?;
        let mut text = String::new();
        let mut line = |name: &str, value: core::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{name}:\t{value}");
        };
        line("Name", format_args!("{}", String::from_utf8_lossy(subject.name(table)?)));
        line("Umask", format_args!("{umask:04o}"));
        line("State", format_args!("{letter} ({word})"));
        line("Tgid", format_args!("{}", number(pid)));
        line("Ngid", format_args!("0"));
        line("Pid", format_args!("{}", number(id)));
        line("PPid", format_args!("{}", process.parent().map_or(0, number)));
        let tracer = table.tracing(id).map_or(0, |tracing| number(tracing.tracer_process()));
        line("TracerPid", format_args!("{tracer}"));
        line("Uid", format_args!("{user}"));
        line("Gid", format_args!("{group}"));
        line("FDSize", format_args!("{room}"));
        let groups: Vec<String> =
            credentials.groups.iter().map(|id| alloc::format!("{} ", sight.users.shown_group(*id))).collect();
        line("Groups", format_args!("{}", groups.concat()));
        for (name, id) in
            [("NStgid", pid), ("NSpid", id), ("NSpgid", process.group()), ("NSsid", process.session())]
        {
            let numbers = table.numbers_from(&sight.processes, id);
            let numbers: Vec<String> = numbers.iter().map(|number| alloc::format!("{number}")).collect();
            line(name, format_args!("{}", numbers.join("\t")));
        }
        if !process.is_zombie() {
            let kib = |bytes: u64| bytes / 1024;
            line("VmPeak", format_args!("{:8} kB", kib(memory.total)));
            line("VmSize", format_args!("{:8} kB", kib(memory.total)));
            line("VmLck", format_args!("{:8} kB", kib(memory.locked)));
            line("VmHWM", format_args!("{:8} kB", usage.max_resident));
            line("VmRSS", format_args!("{resident:8} kB"));
            line("VmData", format_args!("{:8} kB", kib(memory.data)));
            line("VmStk", format_args!("{:8} kB", kib(memory.stack)));
            line("VmExe", format_args!("{:8} kB", kib(memory.code)));
            line("VmSwap", format_args!("{swapped:8} kB"));
        }
        line("Threads", format_args!("{}", process.thread_count()));
        let limit = process.limits.soft(Resource::PendingSignals);
        line("SigQ", format_args!("{}/{limit}", process.pending().len()));
        line("SigPnd", format_args!("{:016x}", own.bits()));
        line("ShdPnd", format_args!("{:016x}", process.pending().set().bits()));
        line("SigBlk", format_args!("{:016x}", blocked.bits()));
        line("SigIgn", format_args!("{:016x}", actions.ignored().bits()));
        line("SigCgt", format_args!("{:016x}", actions.caught().bits()));
        let sets = credentials.privileges;
        for (name, set) in [
            ("CapInh", sets.inheritable),
            ("CapPrm", sets.permitted),
            ("CapEff", sets.effective),
            ("CapBnd", sets.bounding),
            ("CapAmb", sets.ambient),
        ] {
            line(name, format_args!("{:016x}", set.bits()));
        }
        line("NoNewPrivs", format_args!("{}", u8::from(credentials.no_new_privileges)));
        line("Seccomp", format_args!("{}", if table.filter(id).is_some() { 2 } else { 0 }));
        line("Cpus_allowed", format_args!("{:08x},{:08x}", affinity >> 32, affinity as u32));
        line("Cpus_allowed_list", format_args!("{}", list(affinity)));
        line("voluntary_ctxt_switches", format_args!("{}", usage.voluntary_switches));
        line("nonvoluntary_ctxt_switches", format_args!("{}", usage.involuntary_switches));
        Ok(text)
    })
}

/// The text of /proc/PID/statm, in pages: size, resident, shared, text, 0, data, 0. `ESRCH`.
pub(crate) async fn statm_text<M: Machine>(system: &System<M>, process: ExactPid) -> Result<String> {
    system.processes().with(|table| table.exact_process(process).map(drop))?;
    let memory = memory_usage(system, process).await;
    let (usage, resident) = (memory.regions, memory.resident);
    let pages = |bytes: u64| bytes / PAGE;
    Ok(alloc::format!(
        "{} {} {} {} 0 {} 0\n",
        pages(usage.total),
        pages(resident * 1024),
        pages(usage.shared),
        pages(usage.code),
        pages(usage.data + usage.stack)
    ))
}

/// The text of /proc/PID/io, with the numbers that are counted. `ESRCH`.
pub(super) fn transfer_text<M: Machine>(system: &System<M>, subject: Subject) -> Result<String> {
    let usage = system.processes().with(|table| subject.usage(table))?;
    Ok(alloc::format!(
        "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: {}\nwrite_bytes: {}\n\
         cancelled_write_bytes: 0\n",
        usage.blocks_in * 512,
        usage.blocks_out * 512
    ))
}

/// The text of /proc/PID/schedstat: nanoseconds of processor time, nanoseconds of waiting (not
/// counted), and timeslices. `ESRCH`.
pub(super) fn schedule_text<M: Machine>(system: &System<M>, subject: Subject) -> Result<String> {
    let usage = system.processes().with(|table| subject.usage(table))?;
    let time = (usage.user_time + usage.system_time).as_nanos();
    Ok(alloc::format!("{time} 0 {}\n", usage.voluntary_switches + usage.involuntary_switches))
}

/// The text of /proc/PID/comm. `ESRCH`.
pub(super) fn name_text<M: Machine>(system: &System<M>, subject: Subject) -> Result<Vec<u8>> {
    system.processes().with(|table| Ok([subject.name(table)?, b"\n"].concat()))
}

/// The text of /proc/PID/limits. `ESRCH`.
pub(crate) fn limits_text<M: Machine>(system: &System<M>, process: ExactPid) -> Result<String> {
    const ROWS: [(&str, Resource, &str); 16] = [
        ("Max cpu time", Resource::ProcessorTime, "seconds"),
        ("Max file size", Resource::FileSize, "bytes"),
        ("Max data size", Resource::Data, "bytes"),
        ("Max stack size", Resource::Stack, "bytes"),
        ("Max core file size", Resource::Core, "bytes"),
        ("Max resident set", Resource::Resident, "bytes"),
        ("Max processes", Resource::Processes, "processes"),
        ("Max open files", Resource::Files, "files"),
        ("Max locked memory", Resource::LockedMemory, "bytes"),
        ("Max address space", Resource::AddressSpace, "bytes"),
        ("Max file locks", Resource::Locks, "locks"),
        ("Max pending signals", Resource::PendingSignals, "signals"),
        ("Max msgqueue size", Resource::MessageQueues, "bytes"),
        ("Max nice priority", Resource::Nice, ""),
        ("Max realtime priority", Resource::RealTimePriority, ""),
        ("Max realtime timeout", Resource::RealTimeTime, "us"),
    ];
    let limits =
        system.processes().with(|table| Ok::<_, Error>(table.exact_process(process)?.limits.clone()))?;
    let mut text = String::new();
    let _ = writeln!(text, "{:<26}{:<21}{:<21}{:<10}", "Limit", "Soft Limit", "Hard Limit", "Units");
    let show = |value: u64| match value {
        Limit::INFINITE => String::from("unlimited"),
        value => alloc::format!("{value}"),
    };
    for (name, resource, unit) in ROWS {
        let limit = limits.get(resource);
        let _ = writeln!(text, "{name:<26}{:<21}{:<21}{unit:<10}", show(limit.soft), show(limit.hard));
    }
    Ok(text)
}

/// The text of /proc/PID/cmdline: the arguments, each with its zero byte; empty for zombies.
/// `ESRCH`.
pub(crate) async fn arguments_text<M: Machine>(system: &System<M>, process: ExactPid) -> Result<Vec<u8>> {
    system.processes().with(|table| table.exact_process(process).map(drop))?;
    let Some(thread) = system.thread_of_exact(process) else { return Ok(Vec::new()) };
    Ok(argument_bytes(thread.memory()).await)
}

/// The arguments of a program, each with its zero byte.
pub(crate) async fn argument_bytes<M: Machine>(memory: &Memory<M>) -> Vec<u8> {
    strings(memory, memory.details().arguments).await
}

/// The text of /proc/PID/auxv: the auxiliary vector as the program got it.
pub(crate) fn auxiliary_bytes<M: Machine>(memory: &Memory<M>) -> Vec<u8> {
    let pairs = memory.details().auxiliary;
    let words = pairs.into_iter().chain([(0, 0)]).flat_map(|(kind, value)| [kind, value]);
    words.flat_map(u64::to_le_bytes).collect()
}

/// The text of /proc/PID/environ: the strings of the environment, each with its zero byte.
pub(super) async fn environment_text<M: Machine>(memory: &Memory<M>) -> Vec<u8> {
    strings(memory, memory.details().environment).await
}

async fn strings<M: Machine>(memory: &Memory<M>, range: core::ops::Range<u64>) -> Vec<u8> {
    let length = (range.end - range.start).min(STRINGS_LIMIT) as usize;
    memory.read_bytes(range.start, length).await.unwrap_or_default()
}

/// An exit status as the field `exit_code` of /proc/PID/stat has it.
fn exit_code(status: unix::process::ExitStatus) -> u32 {
    match status {
        unix::process::ExitStatus::Exited(status) => u32::from(status) << 8,
        unix::process::ExitStatus::Killed(signal) => signal.number().into(),
        unix::process::ExitStatus::Dumped(signal) => u32::from(signal.number()) | 0x80,
    }
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn a_mask_is_shown_as_a_list_of_ranges() {
        assert_eq!([0, 1, 0b1111, 0b100_1011].map(list), ["", "0", "0-3", "0-1,3,6"]);
        assert_eq!([1 << 63, u64::MAX].map(list), ["63", "0-63"]);
    }
}
