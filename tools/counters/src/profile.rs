//! Counts how often each instruction is executed in a region, so that costs can be attributed to
//! functions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The count of a translated instruction. An instruction that was translated several times has
/// several.
#[derive(Debug)]
pub struct Count {
    address: u64,
    bytes: Vec<u8>,
    executed: AtomicU64,
}

impl Count {
    /// Counts an execution of the instruction.
    pub fn executed(&self) {
        self.executed.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the instruction was executed.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }
}

/// The counts of all translated instructions, and the file to which they are written.
pub struct Profile {
    out: Mutex<File>,
    counts: Mutex<Vec<&'static Count>>,
}

impl Profile {
    /// Makes an empty profile that is written to `file`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(file: &str) -> io::Result<Profile> {
        Ok(Profile { out: Mutex::new(File::create(file)?), counts: Mutex::default() })
    }

    /// Makes a count for an instruction. It is never freed, because the translation refers to it.
    pub fn count(&self, address: u64, bytes: &[u8]) -> &'static Count {
        let count: &'static Count =
            Box::leak(Box::new(Count { address, bytes: bytes.to_vec(), executed: AtomicU64::new(0) }));
        if let Ok(mut counts) = self.counts.lock() {
            counts.push(count);
        }
        count
    }

    /// Sets all counts to 0.
    pub fn clear(&self) {
        if let Ok(counts) = self.counts.lock() {
            counts.iter().for_each(|count| count.executed.store(0, Ordering::Relaxed));
        }
    }

    /// Writes the counts of a region that has ended, over all processors.
    pub fn report(&self, region: u8) {
        if let (Ok(counts), Ok(mut out)) = (self.counts.lock(), self.out.lock()) {
            let _ = writeln!(out, "{}", line(region, &counts));
            let _ = out.flush();
        }
    }
}

/// A line of JSON: for each executed instruction its address, its bytes and how often it was
/// executed. The bytes tell programs apart that have different instructions at this address.
fn line(region: u8, counts: &[&Count]) -> String {
    let mut sums: BTreeMap<(u64, &[u8]), u64> = BTreeMap::new();
    for count in counts {
        let executed = count.times();
        if executed > 0 {
            *sums.entry((count.address, &count.bytes)).or_default() += executed;
        }
    }
    let mut line = format!("{{\"region\":{region},\"instructions\":[");
    for (number, ((address, bytes), executed)) in sums.into_iter().enumerate() {
        let separator = if number > 0 { "," } else { "" };
        let _ = write!(line, "{separator}[{address},{bytes:?},{executed}]");
    }
    line.push_str("]}");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translations_of_one_instruction_are_summed_and_others_kept_apart() {
        let count = |address, byte, executed| Count {
            address,
            bytes: vec![byte],
            executed: AtomicU64::new(executed),
        };
        let counts =
            [count(16, 0x90, 2), count(8, 0x90, 1), count(16, 0x90, 3), count(16, 0xf4, 4), count(9, 1, 0)];
        let counts: Vec<&Count> = counts.iter().collect();
        assert_eq!(
            line(7, &counts),
            "{\"region\":7,\"instructions\":[[8,[144],1],[16,[144],5],[16,[244],4]]}"
        );
    }
}
