//! The texts in /proc about the system as a whole.

use super::{SYSTEM_REQUEST, Sight};
use crate::layout::sysv as layout;
use crate::version::{RELEASE, VERSION};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;
use mach::Machine;
use unix::account::Setting;
use unix::load::Load;
use unix::process::Pid;
use unix::swap::AreaInformation;
use unix::sysv::{messages, semaphores, shared_memory};
use unix::thread::{System, Thread};
use unix::vfs::{DeviceNumber, MountFlags};

/// The paths of the system's files below /proc.
pub(super) const FILES: &[&str] = &[
    "bus/input/devices",
    "cmdline",
    "consoles",
    "cpuinfo",
    "devices",
    "diskstats",
    "filesystems",
    "interrupts",
    "irq/default_smp_affinity",
    "loadavg",
    "macadamia",
    "meminfo",
    "modules",
    "mounts",
    "net/arp",
    "net/dev",
    "net/icmp",
    "net/icmp6",
    "net/if_inet6",
    "net/netlink",
    "net/packet",
    "net/raw",
    "net/raw6",
    "net/route",
    "net/sockstat",
    "net/tcp",
    "net/tcp6",
    "net/udp",
    "net/udp6",
    "net/unix",
    "partitions",
    "stat",
    "swaps",
    "sys/fs/aio-max-nr",
    "sys/fs/epoll/max_user_watches",
    "sys/fs/file-max",
    "sys/fs/inotify/max_queued_events",
    "sys/fs/inotify/max_user_instances",
    "sys/fs/inotify/max_user_watches",
    "sys/fs/mqueue/msg_default",
    "sys/fs/mqueue/msg_max",
    "sys/fs/mqueue/msgsize_default",
    "sys/fs/mqueue/msgsize_max",
    "sys/fs/mqueue/queues_max",
    "sys/fs/nr_open",
    "sys/fs/pipe-max-size",
    "sys/fs/pipe-user-pages-hard",
    "sys/fs/pipe-user-pages-soft",
    "sys/fs/protected_hardlinks",
    "sys/fs/protected_symlinks",
    "sys/kernel/cap_last_cap",
    "sys/kernel/core_pattern",
    "sys/kernel/domainname",
    "sys/kernel/hostname",
    "sys/kernel/msgmax",
    "sys/kernel/msgmnb",
    "sys/kernel/msgmni",
    "sys/kernel/ngroups_max",
    "sys/kernel/osrelease",
    "sys/kernel/ostype",
    "sys/kernel/overflowgid",
    "sys/kernel/overflowuid",
    "sys/kernel/pid_max",
    "sys/kernel/random/boot_id",
    "sys/kernel/random/entropy_avail",
    "sys/kernel/random/poolsize",
    "sys/kernel/random/uuid",
    "sys/kernel/sem",
    "sys/kernel/shmall",
    "sys/kernel/shmmax",
    "sys/kernel/shmmni",
    "sys/kernel/unprivileged_userns_clone",
    "sys/kernel/version",
    "sys/net/core/netdev_max_backlog",
    "sys/net/core/optmem_max",
    "sys/net/core/rmem_default",
    "sys/net/core/rmem_max",
    "sys/net/core/somaxconn",
    "sys/net/core/wmem_default",
    "sys/net/core/wmem_max",
    "sys/net/ipv4/ip_default_ttl",
    "sys/net/ipv4/ip_forward",
    "sys/net/ipv4/ip_local_port_range",
    "sys/net/ipv4/ip_unprivileged_port_start",
    "sys/net/ipv4/ping_group_range",
    "sys/net/ipv4/tcp_available_congestion_control",
    "sys/net/ipv4/tcp_congestion_control",
    "sys/net/ipv4/tcp_fin_timeout",
    "sys/net/ipv4/tcp_keepalive_intvl",
    "sys/net/ipv4/tcp_keepalive_probes",
    "sys/net/ipv4/tcp_keepalive_time",
    "sys/net/ipv4/tcp_max_syn_backlog",
    "sys/net/ipv4/tcp_rmem",
    "sys/net/ipv4/tcp_syncookies",
    "sys/net/ipv4/tcp_wmem",
    "sys/net/ipv6/bindv6only",
    "sys/net/ipv6/conf/all/disable_ipv6",
    "sys/net/ipv6/conf/default/disable_ipv6",
    "sys/vm/max_map_count",
    "sys/vm/mmap_min_addr",
    "sys/vm/overcommit_memory",
    "sys/vm/swappiness",
    SYSTEM_REQUEST,
    "sysvipc/msg",
    "sysvipc/sem",
    "sysvipc/shm",
    "tty/drivers",
    "uptime",
    "version",
    "vmstat",
];

const DEVICES: &str = "Character devices:\n  1 mem\n  4 /dev/vc/0\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n\
    136 pts\n\nBlock devices:\n";

/// The text of /proc/tty/drivers, where `ps` finds the names of terminals: name, path, major
/// number, minor numbers, kind.
const TERMINAL_DRIVERS: &str = "/dev/tty             /dev/tty        5       0 system:/dev/tty\n\
    /dev/console         /dev/console    5       1 system:console\n\
    /dev/ptmx            /dev/ptmx       5       2 system\n\
    serial               /dev/ttyS       4   64-95 serial\n\
    unknown              /dev/tty        4    1-63 console\n\
    pty_slave            /dev/pts      136 0-1048575 pty:slave\n";

/// The setting that the file with this path shows; `None` if it shows none.
pub(super) fn setting(path: &str) -> Option<Setting> {
    Some(match path {
        "sys/fs/epoll/max_user_watches" => Setting::PolledFiles,
        "sys/fs/inotify/max_queued_events" => Setting::QueuedChanges,
        "sys/fs/inotify/max_user_instances" => Setting::ChangeQueues,
        "sys/fs/inotify/max_user_watches" => Setting::ObservedFiles,
        "sys/fs/mqueue/msg_default" => Setting::QueueLengthDefault,
        "sys/fs/mqueue/msg_max" => Setting::QueueLength,
        "sys/fs/mqueue/msgsize_default" => Setting::QueueMessageSizeDefault,
        "sys/fs/mqueue/msgsize_max" => Setting::QueueMessageSize,
        "sys/fs/mqueue/queues_max" => Setting::MessageQueues,
        "sys/fs/pipe-max-size" => Setting::PipeSize,
        "sys/fs/pipe-user-pages-hard" => Setting::PipePagesHard,
        "sys/fs/pipe-user-pages-soft" => Setting::PipePagesSoft,
        "sys/fs/protected_hardlinks" => Setting::ProtectedHardLinks,
        "sys/fs/protected_symlinks" => Setting::ProtectedSymbolicLinks,
        _ => return None,
    })
}

/// The text of /proc/partitions: the disks and their partitions.
fn partitions<M: Machine>(system: &System<M>) -> String {
    let line = |device: unix::disk::Device| {
        let unix::vfs::DeviceNumber { major, minor } = device.number();
        format!("{major:4}  {minor:7} {:10} {}\n", device.size() / 1024, device.name())
    };
    let lines = system.vfs().disks.devices().into_iter().map(line);
    format!("major minor  #blocks  name\n\n{}", lines.collect::<String>())
}

/// The text of /proc/devices: character devices, then block devices.
fn devices<M: Machine>(system: &System<M>) -> String {
    let disk = system.vfs().disks.all().into_iter().next();
    let line = disk.map(|disk| format!("{:3} virtblk\n", disk.number.major));
    format!("{DEVICES}{}", line.unwrap_or_default())
}

/// The text of the file with this path as `reader` sees it, unless it shows a setting.
pub(super) fn file<M: Machine>(
    system: &System<M>,
    reader: Option<Arc<Thread<M>>>,
    sight: &Sight,
    path: &str,
) -> Vec<u8> {
    if let Some(text) = super::network::file(&system.vfs().network, path) {
        return text.into();
    }
    if let Some(text) = super::sockets::file(system, path) {
        return text.into();
    }
    let namespaces = reader.as_ref().map(|thread| thread.namespaces()).unwrap_or_default();
    let names = || namespaces.names.get();
    let number = |id| {
        let id = Pid::new(id);
        id.map_or(0, |id| system.processes().with(|table| table.number_in(&sight.processes, id)))
    };
    let objects = &namespaces.objects.system_v;
    let owners = layout::Sight { users: &sight.users, number: &number };
    match path {
        "cpuinfo" => processors(system).into(),
        "filesystems" => {
            let on_devices = system.vfs().types_on_devices();
            let line = |name: &str| match on_devices.contains(&name) {
                true => format!("\t{name}\n"),
                false => format!("nodev\t{name}\n"),
            };
            system.vfs().file_system_types().into_iter().map(line).collect::<String>().into()
        }
        "consoles" => consoles(system).into(),
        "devices" => devices(system).into(),
        // Programs have no devices for input: the server of the screen has them.
        "bus/input/devices" | "diskstats" | "modules" | SYSTEM_REQUEST => Vec::new(),
        "interrupts" => {
            let names = (0..system.host().processors()).map(|index| format!("       CPU{index}"));
            format!("     {}\n", names.collect::<String>()).into()
        }
        "irq/default_smp_affinity" => {
            let processors = system.host().processors().clamp(1, 64);
            format!("{:x}\n", u64::MAX >> (64 - processors)).into()
        }
        "loadavg" => {
            let (threads, running) = system.processes().with(|table| table.thread_counts());
            let last = system.process_ids().into_iter().map(Pid::number).max().unwrap_or(0);
            let loads = system.with_load(Load::hundredths).map(|(whole, part)| format!("{whole}.{part:02} "));
            format!("{}{running}/{threads} {last}\n", loads.concat()).into()
        }
        "macadamia" => system.host().description().into(),
        "meminfo" => memory(system).into(),
        "mounts" => mounts(reader),
        "partitions" => partitions(system).into(),
        "stat" => statistics(system).into(),
        "swaps" => swap_areas(&system.vfs().swap.areas()),
        "sys/fs/aio-max-nr" => format!("{}\n", crate::aio::OPERATIONS_MAXIMUM).into(),
        "sys/fs/file-max" => b"9223372036854775807\n".to_vec(),
        "sys/fs/nr_open" => b"1048576\n".to_vec(),
        "sys/kernel/core_pattern" => b"core\n".to_vec(),
        "sys/kernel/msgmax" => format!("{}\n", messages::SIZE_LIMIT).into(),
        "sys/kernel/msgmnb" => format!("{}\n", messages::BYTES_LIMIT).into(),
        "sys/kernel/msgmni" => format!("{}\n", messages::QUEUES_LIMIT).into(),
        "sys/kernel/sem" => {
            let (size, sets) = (semaphores::SIZE_LIMIT, semaphores::SETS_LIMIT);
            let all = size as u64 * u64::from(sets);
            format!("{size}\t{all}\t{}\t{sets}\n", semaphores::OPERATIONS_LIMIT).into()
        }
        "sys/kernel/shmall" | "sys/kernel/shmmax" => format!("{}\n", shared_memory::SIZE_LIMIT).into(),
        "sys/kernel/shmmni" => format!("{}\n", shared_memory::SEGMENTS_LIMIT).into(),
        "sysvipc/msg" => layout::queues_text(objects, &owners).into(),
        "sysvipc/sem" => layout::sets_text(objects, &owners).into(),
        "sysvipc/shm" => layout::segments_text(objects, &owners).into(),
        "sys/kernel/cap_last_cap" => b"40\n".to_vec(),
        "sys/kernel/domainname" => [&names().1[..], b"\n"].concat(),
        "sys/kernel/hostname" => [&names().0[..], b"\n"].concat(),
        "sys/kernel/ngroups_max" => format!("{}\n", unix::credentials::Credentials::MAX_GROUPS).into(),
        "sys/kernel/osrelease" => format!("{RELEASE}\n").into(),
        "sys/kernel/ostype" => b"Linux\n".to_vec(),
        "sys/kernel/pid_max" => format!("{}\n", Pid::LIMIT).into(),
        "sys/kernel/random/boot_id" | "sys/kernel/random/uuid" => {
            identifier(system, path.ends_with("uuid")).into()
        }
        "sys/kernel/overflowgid" | "sys/kernel/overflowuid" => {
            format!("{}\n", unix::namespace::UserNamespace::OVERFLOW).into()
        }
        "sys/kernel/unprivileged_userns_clone" => b"1\n".to_vec(),
        // The random source never runs out.
        "sys/kernel/random/entropy_avail" | "sys/kernel/random/poolsize" => b"256\n".to_vec(),
        "sys/kernel/version" => format!("{VERSION}\n").into(),
        "sys/vm/max_map_count" => b"2147483647\n".to_vec(),
        "sys/vm/mmap_min_addr" => format!("{}\n", system.layout().low).into(),
        "sys/vm/overcommit_memory" | "sys/vm/swappiness" => b"0\n".to_vec(),
        "tty/drivers" => TERMINAL_DRIVERS.into(),
        "uptime" => {
            let up = system.environment().monotonic();
            let idle: Duration = times(system).into_iter().map(|used| idle(up, used)).sum();
            let text = |time: Duration| format!("{}.{:02}", time.as_secs(), time.subsec_millis() / 10);
            format!("{} {}\n", text(up), text(idle)).into()
        }
        "version" => format!("Linux version {RELEASE} (Macadamia) {VERSION}\n").into(),
        "vmstat" => memory_statistics(system).into(),
        _ => b"\n".to_vec(),
    }
}

/// The text of /proc/consoles: the console, its operations and flags, and its device number.
fn consoles<M: Machine>(system: &System<M>) -> String {
    let Some(terminals) = system.terminals() else { return String::new() };
    let Some(console) = &terminals.console else { return String::new() };
    let is_virtual = terminals.virtual_consoles.as_ref().is_some_and(|all| all.number_of(console).is_some());
    // A virtual console has the name of all of them there, and can be blanked.
    let (name, operations, flags) =
        if is_virtual { ("tty0".into(), "-WU", "EC p  ") } else { (console.name(), "-W-", "EC p a") };
    let DeviceNumber { major, minor } = console.number();
    format!("{name:<20} {operations} ({flags}) {major:>4}:{minor}\n")
}

/// The flags of a mount as lists show them.
fn flag_text(flags: MountFlags) -> String {
    const FLAGS: [(MountFlags, &str); 5] = [
        (MountFlags::NO_SET_ID, ",nosuid"),
        (MountFlags::NO_DEVICES, ",nodev"),
        (MountFlags::NO_EXECUTE, ",noexec"),
        (MountFlags::NO_ACCESS_TIME, ",noatime"),
        (MountFlags::NO_DIRECTORY_ACCESS_TIME, ",nodiratime"),
    ];
    let mut text = String::from(if flags.contains(MountFlags::READ_ONLY) { "ro" } else { "rw" });
    FLAGS.iter().filter(|(flag, _)| flags.contains(*flag)).for_each(|(_, name)| text.push_str(name));
    if !flags.intersects(MountFlags::NO_ACCESS_TIME | MountFlags::STRICT_ACCESS_TIME) {
        text.push_str(",relatime");
    }
    text
}

/// The text of /proc/PID/mountinfo.
pub(super) fn mount_information<M: Machine>(thread: Option<Arc<Thread<M>>>) -> Vec<u8> {
    let Some(thread) = thread else { return Vec::new() };
    let directories = thread.directories();
    let mut text = Vec::new();
    for mount in directories.tree().list(&directories.root()) {
        let (file_system, flags) = (mount.root.file_system(), mount.flags);
        let device = mount.root.metadata().device;
        // The root mount has no parent. It gets 1 here, a number that no mount in the list has.
        let above = mount.above.unwrap_or(1);
        text.extend_from_slice(format!("{} {above} {}:{} ", mount.id, device.major, device.minor).as_bytes());
        text.extend_from_slice(&mount.root_path());
        text.push(b' ');
        text.extend_from_slice(&mount.path);
        let access = if flags.contains(MountFlags::READ_ONLY) { "ro" } else { "rw" };
        let (kind, source) = (file_system.status().kind, &mount.source);
        let options = file_system.options();
        let sharing = mount.sharing;
        let mut propagation = String::new();
        let _ = sharing.peers.map(|group| write!(propagation, "shared:{group} "));
        let _ = sharing.master.map(|group| write!(propagation, "master:{group} "));
        if sharing.unbindable {
            propagation.push_str("unbindable ");
        }
        let line = format!(" {} {propagation}- {kind} {source} {access}{options}\n", flag_text(flags));
        text.extend_from_slice(line.as_bytes());
    }
    text
}

/// The text of /proc/PID/mounts: the mounts as the process sees them.
pub(super) fn mounts<M: Machine>(thread: Option<Arc<Thread<M>>>) -> Vec<u8> {
    let Some(thread) = thread else { return Vec::new() };
    let directories = thread.directories();
    let mut text = Vec::new();
    for mount in directories.tree().list(&directories.root()) {
        let (file_system, flags) = (mount.root.file_system(), mount.flags);
        text.extend_from_slice(mount.source.as_bytes());
        text.push(b' ');
        text.extend_from_slice(&mount.path);
        let mut line = format!(" {} {}", file_system.status().kind, flag_text(flags));
        line.push_str(&file_system.options());
        line.push_str(" 0 0\n");
        text.extend_from_slice(line.as_bytes());
    }
    text
}

fn processors<M: Machine>(system: &System<M>) -> String {
    let mut text = String::new();
    let count = system.host().processors();
    for index in 0..count {
        let _ = writeln!(
            text,
            "processor\t: {index}\nmodel name\t: x86-64\nphysical id\t: 0\nsiblings\t: {count}\ncore id\t\t: {index}\n\
             cpu cores\t: {count}\napicid\t\t: {index}\nflags\t\t: fpu sse sse2\n"
        );
    }
    text
}

fn memory<M: Machine>(system: &System<M>) -> String {
    let (pages, unwritten) = (system.memory_use(), system.vfs().unwritten_pages());
    let kib = |pages: u64| pages * 4;
    let mut text = String::new();
    let rows = [
        ("MemTotal", kib(pages.total())),
        ("MemFree", kib(pages.free)),
        ("MemAvailable", kib(pages.free + pages.files + pages.disks)),
        ("Buffers", kib(pages.disks)),
        ("Cached", kib(pages.files + pages.memory_files)),
        ("SwapCached", kib(pages.swap_cached)),
        ("Active", kib(pages.active)),
        ("Inactive", kib(pages.inactive)),
        ("SwapTotal", kib(pages.swap.total)),
        ("SwapFree", kib(pages.swap.free)),
        ("Dirty", kib(unwritten.dirty)),
        ("Writeback", kib(unwritten.in_writing)),
        ("Shmem", kib(pages.memory_files)),
        ("Slab", kib(pages.server)),
        ("SReclaimable", 0),
        ("SUnreclaim", kib(pages.server)),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{:<16}{value:>8} kB", format!("{name}:"));
    }
    text
}

/// The text of /proc/swaps.
fn swap_areas(areas: &[AreaInformation]) -> Vec<u8> {
    let mut text = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".to_vec();
    for area in areas {
        let start = text.len();
        for &byte in &area.path {
            match byte {
                b' ' | b'\t' | b'\n' | b'\\' => text.extend(format!("\\{byte:03o}").into_bytes()),
                byte => text.push(byte),
            }
        }
        // The columns are Linux'.
        let width = 40usize.saturating_sub(text.len() - start).max(1);
        let kind = if area.is_file { "file\t" } else { "partition" };
        let [size, used] = [area.pages, area.used].map(|pages| pages * 4);
        let tabs = |kib: u64| if kib < 10_000_000 { "\t\t" } else { "\t" };
        let (after_size, after_used) = (tabs(size), tabs(used));
        let line = format!("{:width$}{kind}\t{size}{after_size}{used}{after_used}{}\n", "", area.priority);
        text.extend(line.into_bytes());
    }
    text
}

/// The text of /proc/vmstat, with the numbers that are counted.
fn memory_statistics<M: Machine>(system: &System<M>) -> String {
    let (pages, unwritten) = (system.memory_use(), system.vfs().unwritten_pages());
    let faults = system.processes().with(|table| {
        let faults = |process| table.usage(process).minor_faults;
        table.processes().map(faults).sum::<u64>()
    });
    let rows = [
        ("nr_free_pages", pages.free),
        ("nr_inactive_anon", pages.inactive),
        ("nr_active_anon", pages.active),
        ("nr_mlock", pages.wired),
        ("nr_file_pages", pages.files + pages.disks + pages.memory_files),
        ("nr_dirty", unwritten.dirty),
        ("nr_writeback", unwritten.in_writing),
        ("nr_shmem", pages.memory_files),
        ("nr_slab_unreclaimable", pages.server),
        ("pgpgin", 0),
        ("pgpgout", 0),
        ("pswpin", pages.swap.read),
        ("pswpout", pages.swap.written),
        ("pgfault", faults),
        ("pgmajfault", 0),
    ];
    rows.iter().map(|(name, value): &(&str, u64)| format!("{name} {value}\n")).collect()
}

/// For each processor, how long programs have used it, and how long the system has used it for
/// them.
fn times<M: Machine>(system: &System<M>) -> Vec<(Duration, Duration)> {
    let all = || {
        let usage = system.processes().with(|table| table.usage_of_all());
        (usage.user_time, usage.system_time)
    };
    let of = |index| {
        let known = system.host().processor_times(index);
        known.unwrap_or_else(|| if index == 0 { all() } else { Default::default() })
    };
    (0..system.host().processors()).map(of).collect()
}

/// How long a processor has been idle of the time `up` since boot.
fn idle(up: Duration, (user, kernel): (Duration, Duration)) -> Duration {
    up.saturating_sub(user + kernel)
}

fn statistics<M: Machine>(system: &System<M>) -> String {
    let (forks, running) = system.processes().with(|table| (table.forks(), table.thread_counts().1));
    let (up, times) = (system.environment().monotonic(), times(system));
    // The first line is the sum of the other lines even though these are rounded.
    let ticks = |time: Duration| time.as_millis() / 10;
    let rows = times.iter().map(|&used| [ticks(used.0), ticks(used.1), ticks(idle(up, used))]);
    let rows: Vec<[u128; 3]> = rows.collect();
    let all = rows.iter().fold([0; 3], |all, row| core::array::from_fn(|column| all[column] + row[column]));
    let mut text = String::new();
    let names = core::iter::once(String::from(" ")).chain((0..rows.len()).map(|index| format!("{index}")));
    for (name, [user, kernel, idle]) in names.zip(core::iter::once(all).chain(rows)) {
        let _ = writeln!(text, "cpu{name} {user} 0 {kernel} {idle} 0 0 0 0 0 0");
    }
    let started = system.environment().realtime().seconds - up.as_secs() as i64;
    let _ = writeln!(
        text,
        "ctxt 0\nbtime {started}\nprocesses {forks}\nprocs_running {running}\nprocs_blocked 0"
    );
    text
}

/// A new random identifier (`fresh`), or the one of this boot.
fn identifier<M: Machine>(system: &System<M>, fresh: bool) -> String {
    let mut bytes = [0; 16];
    match fresh {
        true => system.environment().fill_random(&mut bytes),
        // The identifier of this boot is made from the time of boot, so it is always the same.
        false => {
            let boot =
                system.environment().realtime().seconds - system.environment().monotonic().as_secs() as i64;
            bytes[..8].copy_from_slice(&boot.to_le_bytes());
        }
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex[from..to].concat();
    format!("{}-{}-{}-{}-{}\n", part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 16))
}
