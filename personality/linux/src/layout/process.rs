//! Layouts of rusage, rlimit, utsname, sysinfo and tms, and the numbers of resources.

use super::time::{ticks, to_timeval};
use super::{Fields, Writer};
use unix::process::{Limit, Resource, Usage};
use unix::{Error, Result};

/// The resource with this number; `EINVAL` if there is none.
pub fn resource(number: u64) -> Result<Resource> {
    Ok(match number {
        0 => Resource::ProcessorTime,
        1 => Resource::FileSize,
        2 => Resource::Data,
        3 => Resource::Stack,
        4 => Resource::Core,
        5 => Resource::Resident,
        6 => Resource::Processes,
        7 => Resource::Files,
        8 => Resource::LockedMemory,
        9 => Resource::AddressSpace,
        10 => Resource::Locks,
        11 => Resource::PendingSignals,
        12 => Resource::MessageQueues,
        13 => Resource::Nice,
        14 => Resource::RealTimePriority,
        15 => Resource::RealTimeTime,
        _ => return Err(Error::EINVAL),
    })
}

/// Reads a struct rlimit. `EINVAL` if it is damaged.
pub fn limit(bytes: &[u8; 16]) -> Result<Limit> {
    Ok(Limit { soft: bytes.u64_at(0)?, hard: bytes.u64_at(8)? })
}

/// Writes the limit as a struct rlimit.
pub fn to_limit(limit: Limit) -> [u8; 16] {
    Writer::new().u64(0, limit.soft).u64(8, limit.hard).done()
}

/// Writes the usage as a struct rusage.
pub fn to_rusage(usage: &Usage) -> [u8; 144] {
    Writer::new()
        .bytes(0, &to_timeval(usage.user_time))
        .bytes(16, &to_timeval(usage.system_time))
        .u64(32, usage.max_resident)
        .u64(64, usage.minor_faults)
        .u64(72, usage.major_faults)
        .u64(88, usage.blocks_in)
        .u64(96, usage.blocks_out)
        .u64(128, usage.voluntary_switches)
        .u64(136, usage.involuntary_switches)
        .done()
}

/// Writes the times as a struct tms.
pub fn to_tms(own: &Usage, children: &Usage) -> [u8; 32] {
    Writer::new()
        .u64(0, ticks(own.user_time))
        .u64(8, ticks(own.system_time))
        .u64(16, ticks(children.user_time))
        .u64(24, ticks(children.system_time))
        .done()
}

/// Writes a struct utsname: system, node, release, version, machine and domain, 65 bytes each.
pub fn to_utsname(fields: [&[u8]; 6]) -> [u8; 390] {
    let mut writer = Writer::new();
    for (index, field) in fields.into_iter().enumerate() {
        writer.put(65 * index, &field[..field.len().min(64)]);
    }
    writer.done()
}

/// The values that sysinfo(2) returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemInformation {
    /// Seconds since boot.
    pub uptime: u64,
    /// Load average over 1, 5 and 15 minutes, times 65536.
    pub loads: [u64; 3],
    /// Bytes of memory in all.
    pub total: u64,
    /// Bytes of memory that is not used.
    pub free: u64,
    /// Bytes of memory files and of memory that programs share.
    pub shared: u64,
    /// Bytes of the pages of disks.
    pub disks: u64,
    /// Bytes of swap space.
    pub swap_total: u64,
    /// Bytes of swap space that is not used.
    pub swap_free: u64,
    /// How many processes there are.
    pub processes: u16,
}

/// Writes the values as a struct sysinfo.
pub fn to_sysinfo(information: &SystemInformation) -> [u8; 112] {
    Writer::new()
        .u64(0, information.uptime)
        .u64(8, information.loads[0])
        .u64(16, information.loads[1])
        .u64(24, information.loads[2])
        .u64(32, information.total)
        .u64(40, information.free)
        .u64(48, information.shared)
        .u64(56, information.disks)
        .u64(64, information.swap_total)
        .u64(72, information.swap_free)
        .u16(80, information.processes)
        .u32(104, 1)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn fields_are_at_linux_offsets() {
        let usage = Usage { user_time: Duration::from_millis(1500), minor_faults: 7, ..Usage::default() };
        let bytes = to_rusage(&usage);
        assert_eq!((bytes.u64_at(0), bytes.u64_at(8), bytes.u64_at(64)), (Ok(1), Ok(500_000), Ok(7)));
        assert_eq!(to_tms(&usage, &Usage::default()).u64_at(0), Ok(150));
        let names = to_utsname([b"Linux", b"host", b"6.1", b"#1", b"x86_64", b"(none)"]);
        assert_eq!(
            (&names[..6], &names[65..70], &names[260..267]),
            (&b"Linux\0"[..], &b"host\0"[..], &b"x86_64\0"[..])
        );
        let limits = Limit { soft: 1, hard: u64::MAX };
        assert_eq!(limit(&to_limit(limits)), Ok(limits));
        assert_eq!(resource(7), Ok(Resource::Files));
        assert_eq!(resource(16), Err(Error::EINVAL));
    }
}
