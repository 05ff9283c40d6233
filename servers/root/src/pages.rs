//! Cuts a mapping into the fewest runs of pages of one size.

/// `count` pages of 2^`size_log2` bytes, each after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The address at which the first page is mapped.
    pub address: u64,
    /// The address in root's space from which the first page is mapped.
    pub source: u64,
    /// The base-2 logarithm of the size of each page.
    pub size_log2: u32,
    /// How many pages there are.
    pub count: u32,
}

/// The base-2 logarithm of the largest page size of the processor.
const LARGEST_LOG2: u32 = 30;

/// The runs that map `size` bytes (or ports) from `source` at `address`: pages as large as both
/// sides allow.
pub fn runs(address: u64, source: u64, size: u64) -> impl Iterator<Item = Run> + Clone {
    let limit = (address ^ source).trailing_zeros().min(LARGEST_LOG2);
    let mut done = 0;
    core::iter::from_fn(move || {
        let left = size - done;
        if left == 0 {
            return None;
        }
        let (address, source) = (address + done, source + done);
        let size_log2 = address.trailing_zeros().min(limit).min(left.ilog2());
        // When the addresses are aligned to the largest page that both allow, the run goes on to
        // the end.
        let count = if size_log2 == limit { left >> size_log2 } else { 1 };
        done += count << size_log2;
        Some(Run { address, source, size_log2, count: count as u32 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn aligned_memory_is_one_run_of_the_largest_pages() {
        let all: Vec<Run> = runs(0x4000_0000, 0x8000_0000, 3 << 30).collect();
        assert_eq!(all, [Run { address: 0x4000_0000, source: 0x8000_0000, size_log2: 30, count: 3 }]);
        assert_eq!(runs(0x1000, 0x1000, 0).count(), 0);
    }

    #[test]
    fn unlike_alignment_is_one_run_of_small_pages() {
        let all: Vec<Run> = runs(0x1000, 0x2000, 100 << 20).collect();
        assert_eq!(all, [Run { address: 0x1000, source: 0x2000, size_log2: 12, count: 25600 }]);
    }

    proptest! {
        #[test]
        fn every_byte_is_mapped_once_by_aligned_pages(
            address in 0u64..1 << 22, shift in 0u32..20, apart in 0u64..1 << 20, pages in 0u64..1 << 20,
        ) {
            let (address, source, size) = (address << 12, (address << 12) + (apart << 12 << shift), pages << 12);
            let mut next = 0;
            let mut count = 0;
            for run in runs(address, source, size) {
                prop_assert_eq!((run.address, run.source), (address + next, source + next));
                prop_assert_eq!((run.address | run.source) & ((1 << run.size_log2) - 1), 0);
                next += u64::from(run.count) << run.size_log2;
                count += 1;
            }
            prop_assert_eq!(next, size);
            prop_assert!(count <= 64, "{} runs", count);
        }
    }
}
