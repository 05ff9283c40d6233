//! The texts of /proc that concern the system as a whole.

use super::System;
use crate::process::Pid;
use crate::vfs::MountFlags;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use mach::Machine;

/// The files, by their paths below /proc.
pub(super) const FILES: &[&str] = &[
    "cmdline",
    "cpuinfo",
    "filesystems",
    "loadavg",
    "meminfo",
    "mounts",
    "stat",
    "sys/fs/pipe-max-size",
    "sys/kernel/cap_last_cap",
    "sys/kernel/hostname",
    "sys/kernel/ngroups_max",
    "sys/kernel/osrelease",
    "sys/kernel/ostype",
    "sys/kernel/pid_max",
    "sys/kernel/random/boot_id",
    "sys/kernel/random/uuid",
    "sys/vm/overcommit_memory",
    "uptime",
    "version",
];

/// The release that programs are told.
pub const RELEASE: &str = "6.1.0-macadamia";

/// The text of the file with this path.
pub(super) fn file<M: Machine>(system: &System<M>, path: &str) -> Vec<u8> {
    match path {
        "cpuinfo" => processors(system).into(),
        "filesystems" => {
            let line = |name: &str| format!("nodev\t{name}\n");
            system.vfs.file_system_types().into_iter().map(line).collect::<String>().into()
        }
        "loadavg" => {
            let (threads, running) = system.processes.with(|table| table.thread_counts());
            let last = system.process_ids().into_iter().map(Pid::number).max().unwrap_or(0);
            format!("0.00 0.00 0.00 {running}/{threads} {last}\n").into()
        }
        "meminfo" => memory(system).into(),
        "mounts" => mounts(system, Pid::INIT),
        "stat" => statistics(system).into(),
        "sys/fs/pipe-max-size" => format!("{}\n", crate::pipe::CAPACITY_MAXIMUM).into(),
        "sys/kernel/cap_last_cap" => b"40\n".to_vec(),
        "sys/kernel/hostname" => [&system.names.lock().0[..], b"\n"].concat(),
        "sys/kernel/ngroups_max" => format!("{}\n", crate::credentials::Credentials::MAX_GROUPS).into(),
        "sys/kernel/osrelease" => format!("{RELEASE}\n").into(),
        "sys/kernel/ostype" => b"Linux\n".to_vec(),
        "sys/kernel/pid_max" => format!("{}\n", Pid::LIMIT).into(),
        "sys/kernel/random/boot_id" | "sys/kernel/random/uuid" => {
            identifier(system, path.ends_with("uuid")).into()
        }
        "sys/vm/overcommit_memory" => b"0\n".to_vec(),
        "uptime" => {
            let up = system.environment.monotonic();
            format!("{}.{:02} 0.00\n", up.as_secs(), up.subsec_millis() / 10).into()
        }
        "version" => format!("Linux version {RELEASE} (Macadamia) #1 SMP\n").into(),
        _ => b"\n".to_vec(),
    }
}

/// /proc/PID/mounts: the mounts as the process sees them.
pub(super) fn mounts<M: Machine>(system: &System<M>, pid: Pid) -> Vec<u8> {
    const FLAGS: [(MountFlags, &str); 4] = [
        (MountFlags::NO_SET_ID, ",nosuid"),
        (MountFlags::NO_DEVICES, ",nodev"),
        (MountFlags::NO_EXECUTE, ",noexec"),
        (MountFlags::NO_ACCESS_TIME, ",noatime"),
    ];
    let Some(thread) = system.thread_of_process(pid) else { return Vec::new() };
    let root = thread.directories().root();
    let mut text = Vec::new();
    for mount in system.vfs.tree.mounts() {
        let Ok(path) = mount.root().path(&root) else { continue };
        let (file_system, flags) = (mount.file_system(), mount.flags());
        text.extend_from_slice(mount.source().as_bytes());
        text.push(b' ');
        text.extend_from_slice(&path);
        let access = if flags.contains(MountFlags::READ_ONLY) { "ro" } else { "rw" };
        let mut line = format!(" {} {access}", file_system.status().kind);
        FLAGS.iter().filter(|(flag, _)| flags.contains(*flag)).for_each(|(_, name)| line.push_str(name));
        line.push_str(&file_system.options());
        line.push_str(" 0 0\n");
        text.extend_from_slice(line.as_bytes());
    }
    text
}

fn processors<M: Machine>(system: &System<M>) -> String {
    let mut text = String::new();
    for index in 0..system.host.processors() {
        let _ = writeln!(text, "processor\t: {index}\nmodel name\t: x86-64\nflags\t\t: fpu sse sse2\n");
    }
    text
}

fn memory<M: Machine>(system: &System<M>) -> String {
    let pages = system.vm.statistics();
    let kib = |pages: u32| u64::from(pages) * 4;
    let total = kib(pages.free) + kib(pages.active) + kib(pages.inactive) + kib(pages.wired);
    let mut text = String::new();
    let rows = [
        ("MemTotal", total),
        ("MemFree", kib(pages.free)),
        ("MemAvailable", kib(pages.free) + kib(pages.inactive)),
        ("Buffers", 0),
        ("Cached", 0),
        ("SwapCached", 0),
        ("Active", kib(pages.active)),
        ("Inactive", kib(pages.inactive)),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Shmem", 0),
        ("Slab", 0),
        ("SReclaimable", 0),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{:<16}{value:>8} kB", format!("{name}:"));
    }
    text
}

fn statistics<M: Machine>(system: &System<M>) -> String {
    let mut user = core::time::Duration::ZERO;
    let mut kernel = user;
    let (forks, running) = system.processes.with(|table| {
        for process in table.processes() {
            let usage = table.usage(process);
            user += usage.user_time;
            kernel += usage.system_time;
        }
        (table.forks(), table.thread_counts().1)
    });
    let ticks = |time: core::time::Duration| time.as_millis() / 10;
    let (up, count) = (system.environment.monotonic(), system.host.processors());
    let idle = (ticks(up) * count as u128).saturating_sub(ticks(user) + ticks(kernel));
    let line = format!("{} 0 {} {idle} 0 0 0 0 0 0", ticks(user), ticks(kernel));
    let mut text = format!("cpu  {line}\n");
    for index in 0..count {
        let share = |value: u128| value / count as u128;
        let (user, kernel) = (share(ticks(user)), share(ticks(kernel)));
        let _ = writeln!(text, "cpu{index} {user} 0 {kernel} {} 0 0 0 0 0 0", share(idle));
    }
    let started = system.environment.realtime().seconds - up.as_secs() as i64;
    let _ = writeln!(
        text,
        "ctxt 0\nbtime {started}\nprocesses {forks}\nprocs_running {running}\nprocs_blocked 0"
    );
    text
}

/// A random identifier, or the one of this start.
fn identifier<M: Machine>(system: &System<M>, fresh: bool) -> String {
    let mut bytes = [0; 16];
    match fresh {
        true => system.environment.fill_random(&mut bytes),
        // One that lasts as long as the address spaces of this start are numbered.
        false => {
            let boot =
                system.environment.realtime().seconds - system.environment.monotonic().as_secs() as i64;
            bytes[..8].copy_from_slice(&boot.to_le_bytes());
        }
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex[from..to].concat();
    format!("{}-{}-{}-{}-{}\n", part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 16))
}
