//! Where the parts of a process's memory are placed, and how far they are moved at random
//! (address-space layout randomisation).

use super::Image;
use crate::{Error, Result};
use core::ops::Range;

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The part of the address space that programs may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Lowest address that may be mapped; a null pointer faults below it.
    pub low: u64,
    /// End of the addresses that programs may use; the system keeps those above for itself.
    pub high: u64,
    /// Whether the addresses of a process's parts are randomised.
    pub randomise: bool,
}

/// The addresses at which the parts of one process are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// End of the stack, the highest address; a multiple of 16.
    pub stack_top: u64,
    /// Mappings without a requested address are placed below this one, the highest free place
    /// first.
    pub mapping_top: u64,
    /// What is added to the addresses of a position-independent program.
    pub bias: u64,
    /// Where the heap (brk(2)) begins, a multiple of the page size.
    pub break_start: u64,
}

impl Layout {
    /// Chooses the places for `image` in a process whose stack may grow to `stack_limit` bytes;
    /// `random` gives 64 random bits each time. `ENOMEM` if the image does not fit.
    pub fn place(
        &self,
        image: &Image,
        stack_limit: u64,
        mut random: impl FnMut() -> u64,
    ) -> Result<Placement> {
        let mut pages = |bits: u32| if self.randomise { (random() & ((1 << bits) - 1)) * PAGE } else { 0 };
        let stack_top = self.high - pages(22);
        let gap = stack_limit.clamp(128 * MIB, self.high / 6 * 5) + 16 * GIB;
        let mapping_top = (self.high - gap.min(self.high / 6 * 5) - pages(28)) & !(PAGE - 1);
        let bias = match image.is_relocatable {
            false => 0,
            true => {
                let base = (self.high / 3 * 2 + pages(28)) & !(image.alignment - 1);
                base.wrapping_sub(image.span.start & !(image.alignment - 1))
            }
        };
        let span = relocated(image, bias, self.low..self.high)?;
        let break_start = (span.end + pages(13)).min(self.high);
        // The stack is moved by less than a page, too, by a multiple of 16 so that it stays
        // aligned.
        let stack_top = stack_top - if self.randomise { random() & 0xff0 } else { 0 };
        Ok(Placement { stack_top, mapping_top, bias, break_start })
    }
}

/// The range of addresses that `image` takes when it is moved by `bias`. `ENOMEM` if it leaves
/// `allowed`.
pub fn relocated(image: &Image, bias: u64, allowed: Range<u64>) -> Result<Range<u64>> {
    let start = image.span.start.wrapping_add(bias);
    let end = start.checked_add(image.span_size()).ok_or(Error::ENOMEM)?;
    if start < allowed.start || end > allowed.end { Err(Error::ENOMEM) } else { Ok(start..end) }
}

#[cfg(test)]
mod tests {
    use super::super::elf::tests::{file, load, parse};
    use super::*;

    fn image(kind: u16, address: u64) -> Image {
        parse(&file(kind, 0, &[load(5, 0, address, 0x1800, 0x1800)])).unwrap()
    }

    #[test]
    fn places_are_fixed_without_randomisation_and_differ_with_it() {
        let mut layout = Layout { low: 0x10000, high: 0x7fff_f000_0000, randomise: false };
        let placement = layout.place(&image(2, 0x400000), 8 * MIB, || !0).unwrap();
        assert_eq!((placement.stack_top, placement.bias, placement.break_start), (layout.high, 0, 0x402000));
        let relocatable = layout.place(&image(3, 0), 8 * MIB, || !0).unwrap();
        assert_eq!(relocatable.bias % PAGE, 0);
        assert_eq!(relocatable.break_start, relocatable.bias + 0x2000);
        layout.randomise = true;
        let random = layout.place(&image(3, 0), 8 * MIB, || !0).unwrap();
        assert!(
            random.bias > relocatable.bias
                && random.stack_top < layout.high
                && random.stack_top.is_multiple_of(16)
        );
        assert!(random.stack_top - random.mapping_top > 128 * MIB);
        assert!(random.mapping_top > random.break_start);
        assert_eq!(layout.place(&image(2, 0), 8 * MIB, || 0), Err(Error::ENOMEM), "below the lowest address");
        assert!(layout.place(&image(2, 0x400000), u64::MAX, || !0).is_ok());
    }
}
