//! Measures for how long the kernel does not look for interrupts: the longest stretch of kernel
//! instructions between two moments at which an interrupt would have been noticed.
//!
//! Such moments are: an instruction of a user program, where interrupts are enabled; the return to
//! a program, even if an interrupt comes before its first instruction; STI and HLT, when the kernel
//! waits; and a load from the interrupt request registers of the local APIC, by which the kernel
//! polls in long operations. After a poll that has found an interrupt, the instructions up to the
//! STI at which it is taken are a stretch of their own. So an interrupt waits for two stretches at
//! most.

use std::collections::HashMap;
use std::fmt::Write;

/// Physical addresses of the local APIC's interrupt request registers.
const REQUESTS: std::ops::Range<u64> = 0xfee0_0200..0xfee0_0280;
/// The effect of an instruction on the stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The stretch continues.
    None,
    /// STI or HLT: interrupts are enabled.
    Opens,
    /// SYSRET or IRET: the processor returns to a program.
    Leaves,
}

/// How many places are reported in the longest stretch: the 64-byte blocks of code that were
/// executed most.
const PLACES: usize = 8;

/// A stretch of kernel instructions.
#[derive(Clone, Debug, Default)]
struct Stretch {
    instructions: u64,
    /// The number of instructions executed in each 64-byte block of code.
    lines: HashMap<u64, u64>,
}

/// The stretches of one processor.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// Whether the kernel has returned to a user program. Stretches before that belong to the start
    /// of the machine.
    started: bool,
    present: Stretch,
    longest: Stretch,
    /// The number of kernel instructions altogether.
    instructions: u64,
    /// The number of stretches by the binary logarithm of their lengths.
    lengths: [u64; 32],
}

impl Latency {
    /// Records that the processor executes an instruction at `address`.
    pub fn instruction(&mut self, address: u64, effect: Effect) {
        if address >> 63 == 0 {
            self.noticed();
        } else if self.started {
            self.present.instructions += 1;
            self.instructions += 1;
            *self.present.lines.entry(address >> 6).or_default() += 1;
            if effect != Effect::None {
                self.noticed();
            }
        } else if effect == Effect::Leaves {
            self.started = true;
        }
    }

    /// Records that the processor loads from the physical address of a device.
    pub fn device_load(&mut self, address: u64) {
        if REQUESTS.contains(&address) {
            self.noticed();
        }
    }

    /// Ends the stretch, since an interrupt would have been noticed now.
    fn noticed(&mut self) {
        if self.present.instructions == 0 {
            return;
        }
        self.lengths[self.present.instructions.ilog2().min(31) as usize] += 1;
        if self.present.instructions > self.longest.instructions {
            std::mem::swap(&mut self.present, &mut self.longest);
        }
        self.present.instructions = 0;
        self.present.lines.clear();
    }

    /// Begins to measure a region.
    pub fn clear(&mut self) {
        *self = Self { started: self.started, ..Self::default() };
    }

    /// A line of JSON about the region since [`Latency::clear`], in the form of the other counters.
    /// `None` if the kernel did not run.
    pub fn region(&self, region: u8, processor: usize) -> Option<String> {
        if self.longest.instructions == 0 {
            return None;
        }
        let stretches: u64 = self.lengths.iter().sum();
        let line = format!(
            "{{\"region\":{region},\"processor\":{processor},\"user\":{{}},\"kernel\":{{\"longest_stretch\":{},\
             \"stretches\":{stretches},\"instructions\":{}}},\"places\":{{{}}}}}",
            self.longest.instructions,
            self.instructions,
            self.places(),
        );
        Some(line)
    }

    /// The 64-byte blocks of code in which most of the longest stretch was, by address.
    fn places(&self) -> String {
        let mut places: Vec<_> = self.longest.lines.iter().collect();
        places.sort_unstable_by_key(|&(line, count)| (std::cmp::Reverse(count), line));
        let texts = places.iter().take(PLACES).map(|(line, count)| format!("\"{:#x}\":{count}", *line << 6));
        texts.collect::<Vec<_>>().join(",")
    }

    /// A line of JSON: the longest stretch, where most of its instructions were, and how many
    /// stretches there were of each length.
    pub fn report(&self, processor: usize) -> String {
        let (longest, places) = (self.longest.instructions, self.places());
        let mut text = format!("{{\"processor\":{processor},\"longest\":{longest},\"places\":{{{places}");
        text.push_str("},\"lengths\":{");
        let used = self.lengths.iter().enumerate().filter(|&(_, &count)| count != 0);
        for (index, (log2, count)) in used.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(text, "{comma}\"{}\":{count}", 1u64 << log2);
        }
        text.push_str("}}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8080_0000;

    fn run(latency: &mut Latency, instructions: u64) {
        (0..instructions).for_each(|_| latency.instruction(KERNEL, Effect::None));
    }

    #[test]
    fn a_stretch_ends_where_an_interrupt_would_be_noticed() {
        let mut latency = Latency::default();
        run(&mut latency, 1000);
        latency.instruction(KERNEL, Effect::Leaves);
        latency.instruction(0x1000, Effect::None);
        run(&mut latency, 30);
        latency.device_load(0xfee0_0210);
        run(&mut latency, 40);
        latency.device_load(0xfee0_0380);
        run(&mut latency, 10);
        latency.instruction(0x1000, Effect::None);
        run(&mut latency, 20);
        latency.instruction(KERNEL, Effect::Opens);
        let line = latency.report(0);
        assert!(line.starts_with("{\"processor\":0,\"longest\":50,"), "not the boot's 1000: {line}");
        assert!(line.ends_with("\"lengths\":{\"16\":2,\"32\":1}}"), "{line}");
        assert!(line.contains("\"places\":{\"0xffffffff80800000\":50}"), "{line}");
        run(&mut latency, 40);
        latency.instruction(KERNEL, Effect::Leaves);
        run(&mut latency, 40);
        latency.instruction(KERNEL, Effect::Leaves);
        assert!(latency.report(0).contains("\"longest\":50,"), "a return lets interrupts in");
    }

    #[test]
    fn a_region_is_measured_by_itself() {
        let mut latency = Latency::default();
        latency.instruction(KERNEL, Effect::Leaves);
        latency.instruction(0x1000, Effect::None);
        run(&mut latency, 1000);
        latency.instruction(0x1000, Effect::None);
        latency.clear();
        assert_eq!(latency.region(0, 0), None, "the kernel has not run");
        for length in [20, 30] {
            run(&mut latency, length);
            latency.instruction(0x1000, Effect::None);
        }
        let line = latency.region(3, 1).expect("the kernel has run");
        let counts = "\"kernel\":{\"longest_stretch\":30,\"stretches\":2,\"instructions\":50}";
        assert!(
            line.starts_with("{\"region\":3,\"processor\":1,\"user\":{},") && line.contains(counts),
            "{line}"
        );
    }
}
