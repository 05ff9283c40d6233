//! The counters of one processor, and the line of JSON that reports them.

use crate::cache::Cache;
use crate::decode::Special;
use crate::settings::Settings;
use std::collections::HashSet;
use std::fmt::Write;

/// The mode in which an instruction was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The instruction lies in the lower half of the address space.
    User,
    /// The instruction lies in the upper half of the address space.
    Kernel,
}

impl Mode {
    /// The mode of the instruction at `address`. (The kernel's stub page, which programs execute,
    /// is in the upper half. So its two instructions of a call count as the kernel's.)
    pub fn of(address: u64) -> Mode {
        if address >> 63 == 0 { Mode::User } else { Mode::Kernel }
    }
}

/// A data access of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The virtual address in the guest.
    pub virtual_address: u64,
    /// The physical address in the guest.
    pub physical_address: u64,
    /// The size in bytes.
    pub size: u64,
    /// Whether it is a store; otherwise it is a load.
    pub store: bool,
    /// Whether the address belongs to a device.
    pub device: bool,
    /// Whether it is a part of a `rep movs` or `rep stos`.
    pub bulk: bool,
}

/// The physical address of the local APIC's interrupt command register: a store to it sends an
/// interrupt.
const INTERRUPT_COMMAND: u64 = 0xfee0_0300;

#[derive(Clone, Debug, Default)]
struct ModeCounts {
    instructions: u64,
    special: [u64; Special::ALL.len()],
    loads: u64,
    stores: u64,
    bulk_bytes: u64,
    device_accesses: u64,
    interrupts_sent: u64,
    l1i_misses: u64,
    l1d_misses: u64,
    l2_misses: u64,
    itlb_misses: u64,
    dtlb_misses: u64,
    instruction_lines: HashSet<u64>,
    data_lines: HashSet<u64>,
    data_pages: HashSet<u64>,
}

/// The counters and the modelled caches of one processor.
#[derive(Clone, Debug)]
pub struct Processor {
    user: ModeCounts,
    kernel: ModeCounts,
    l1i: Cache,
    l1d: Cache,
    l2: Cache,
    itlb: Cache,
    dtlb: Cache,
}

impl Processor {
    /// A processor whose counters are zero and whose caches are empty.
    pub fn new(settings: &Settings) -> Processor {
        Processor {
            user: ModeCounts::default(),
            kernel: ModeCounts::default(),
            l1i: Cache::new(settings.l1i),
            l1d: Cache::new(settings.l1d),
            l2: Cache::new(settings.l2),
            itlb: Cache::new(settings.itlb),
            dtlb: Cache::new(settings.dtlb),
        }
    }

    /// Clears the counters. The caches keep their contents.
    pub fn clear(&mut self) {
        self.user = ModeCounts::default();
        self.kernel = ModeCounts::default();
    }

    /// Whether the processor has executed an instruction since the counters were cleared.
    pub fn has_run(&self) -> bool {
        self.user.instructions + self.kernel.instructions > 0
    }

    /// Counts an instruction at `address`, whose bytes lie at `place` (unique for each byte of
    /// physical memory).
    pub fn instruction(&mut self, address: u64, place: u64, special: Option<Special>) {
        let counts = match Mode::of(address) {
            Mode::User => &mut self.user,
            Mode::Kernel => &mut self.kernel,
        };
        counts.instructions += 1;
        if let Some(special) = special {
            counts.special[special as usize] += 1;
        }
        counts.instruction_lines.insert(place >> 6);
        counts.itlb_misses += u64::from(!self.itlb.access(address));
        if !self.l1i.access(place) {
            counts.l1i_misses += 1;
            counts.l2_misses += u64::from(!self.l2.access(place));
        }
        if special == Some(Special::Cr3Load) {
            // The model has no global pages and no process tags, so a load of CR3 empties both
            // TLBs. That is a pessimistic bound (docs/src/measuring.md).
            self.itlb.flush();
            self.dtlb.flush();
        }
    }

    /// Counts a data access by the instruction at `address`.
    pub fn access(&mut self, address: u64, access: Access) {
        let counts = match Mode::of(address) {
            Mode::User => &mut self.user,
            Mode::Kernel => &mut self.kernel,
        };
        if access.store {
            counts.stores += 1;
        } else {
            counts.loads += 1;
        }
        if access.bulk && access.store {
            counts.bulk_bytes += access.size;
        }
        if access.device {
            counts.device_accesses += 1;
            counts.interrupts_sent += u64::from(access.store && access.physical_address == INTERRUPT_COMMAND);
            return;
        }
        counts.dtlb_misses += u64::from(!self.dtlb.access(access.virtual_address));
        counts.data_pages.insert(access.virtual_address >> 12);
        let last = access.physical_address + access.size.max(1) - 1;
        for line in access.physical_address >> 6..=last >> 6 {
            counts.data_lines.insert(line);
            if !self.l1d.access(line << 6) {
                counts.l1d_misses += 1;
                counts.l2_misses += u64::from(!self.l2.access(line << 6));
            }
        }
    }

    /// A line of JSON with the counters, for region `region` and processor `processor`, without the
    /// newline.
    pub fn report(&self, region: u8, processor: usize) -> String {
        let mut line = format!("{{\"region\":{region},\"processor\":{processor}");
        for (name, counts) in [("user", &self.user), ("kernel", &self.kernel)] {
            let _ = write!(line, ",\"{name}\":{{\"instructions\":{}", counts.instructions);
            for special in Special::ALL {
                let count = counts.special[special as usize];
                if count > 0 {
                    let _ = write!(line, ",\"{}\":{count}", special.name());
                }
            }
            for (name, count) in [
                ("loads", counts.loads),
                ("stores", counts.stores),
                ("bulk_bytes", counts.bulk_bytes),
                ("device_accesses", counts.device_accesses),
                ("interrupts_sent", counts.interrupts_sent),
                ("instruction_lines", counts.instruction_lines.len() as u64),
                ("data_lines", counts.data_lines.len() as u64),
                ("data_pages", counts.data_pages.len() as u64),
                ("l1i_misses", counts.l1i_misses),
                ("l1d_misses", counts.l1d_misses),
                ("l2_misses", counts.l2_misses),
                ("itlb_misses", counts.itlb_misses),
                ("dtlb_misses", counts.dtlb_misses),
            ] {
                let _ = write!(line, ",\"{name}\":{count}");
            }
            line.push('}');
        }
        line.push('}');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8080_0000;

    fn processor() -> Processor {
        Processor::new(&Settings::parse(["out=x"].into_iter()).unwrap())
    }

    fn load(at: u64) -> Access {
        Access {
            virtual_address: at,
            physical_address: at,
            size: 8,
            store: false,
            device: false,
            bulk: false,
        }
    }

    #[test]
    fn kernel_and_user_are_counted_apart() {
        let mut processor = processor();
        assert!(!processor.has_run());
        processor.instruction(0x1000, 0x1000, Some(Special::Syscall));
        processor.instruction(KERNEL, 0x80_0000, Some(Special::Swapgs));
        processor.access(KERNEL, load(0x5000));
        let line = processor.report(3, 1);
        assert!(line.starts_with(
            "{\"region\":3,\"processor\":1,\"user\":{\"instructions\":1,\"syscall\":1,\"loads\":0"
        ));
        assert!(line.contains("\"kernel\":{\"instructions\":1,\"swapgs\":1,\"loads\":1"));
        processor.clear();
        assert!(!processor.has_run());
    }

    #[test]
    fn lines_are_counted_once_and_a_second_touch_hits() {
        let mut processor = processor();
        processor.access(0, load(0x1000));
        processor.access(0, load(0x1008));
        processor.access(0, load(0x103c)); // crosses into the next line
        assert_eq!((processor.user.data_lines.len(), processor.user.l1d_misses), (2, 2));
        assert_eq!((processor.user.data_pages.len(), processor.user.dtlb_misses), (1, 1));
        processor.clear();
        processor.access(0, load(0x1000));
        assert_eq!((processor.user.data_lines.len(), processor.user.l1d_misses), (1, 0));
    }

    #[test]
    fn a_new_address_space_empties_the_tlb() {
        let mut processor = processor();
        processor.access(KERNEL, load(0x1000));
        processor.instruction(KERNEL, 0, Some(Special::Cr3Load));
        processor.access(KERNEL, load(0x1000));
        assert_eq!(processor.kernel.dtlb_misses, 2);
    }

    #[test]
    fn devices_and_interrupts_are_no_cache_traffic() {
        let mut processor = processor();
        let command = Access { device: true, store: true, ..load(INTERRUPT_COMMAND) };
        processor.access(KERNEL, command);
        processor.access(KERNEL, Access { store: false, ..command });
        assert_eq!((processor.kernel.device_accesses, processor.kernel.interrupts_sent), (2, 1));
        assert_eq!((processor.kernel.data_lines.len(), processor.kernel.l1d_misses), (0, 0));
    }

    #[test]
    fn bulk_bytes_are_the_bytes_written() {
        let mut processor = processor();
        for at in 0..512 {
            processor.access(KERNEL, Access { bulk: true, ..load(0x10000 + at * 8) });
            processor.access(KERNEL, Access { bulk: true, store: true, ..load(0x20000 + at * 8) });
        }
        assert_eq!(processor.kernel.bulk_bytes, 4096);
    }
}
