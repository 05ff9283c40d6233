//! The image of a thread's extended registers as an owner reads and writes it (K15): XSAVE's
//! standard format. What a program wrote is checked here, so that restoring it cannot fault in the
//! kernel.

/// Where the legacy area and the header end: the least that an image can have.
pub const EXTENDED_STATE_HEADER_END: usize = 512 + 64;
/// Size of an image that has the upper halves of AVX registers, too.
pub const LARGEST_EXTENDED_STATE: usize = EXTENDED_STATE_HEADER_END + 256;

/// x87 and SSE: components 0 and 1.
pub const X87_SSE: u64 = 0b011;
/// AVX: component 2.
pub const AVX: u64 = 0b100;

/// Initial x87 control word: all exceptions masked, 64-bit precision.
pub const CONTROL_WORD: u16 = 0x37f;
/// Initial MXCSR: all exceptions masked.
pub const MXCSR: u32 = 0x1f80;
/// Offset of MXCSR in the image.
pub const MXCSR_OFFSET: usize = 24;
/// Offset of the header's word that says which components the image holds.
const XSTATE_BV: usize = 512;
/// From here to its end the header is zero: the compacted format is not used.
const HEADER_ZERO: usize = 520;
/// MXCSR bits that a 64-bit processor has.
const MXCSR_BITS: u32 = 0xffff;

/// An image. What a processor lacks is zero. Aligned so that it is copied by words.
#[derive(Clone)]
#[repr(align(8))]
pub struct ExtendedImage([u8; LARGEST_EXTENDED_STATE]);

impl ExtendedImage {
    /// All registers in their initial state.
    pub const fn new() -> Self {
        let mut bytes = [0; LARGEST_EXTENDED_STATE];
        let [low, high] = CONTROL_WORD.to_le_bytes();
        (bytes[0], bytes[1]) = (low, high);
        let mxcsr = MXCSR.to_le_bytes();
        let mut index = 0;
        while index < mxcsr.len() {
            bytes[MXCSR_OFFSET + index] = mxcsr[index];
            index += 1;
        }
        Self(bytes)
    }

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; LARGEST_EXTENDED_STATE] {
        &self.0
    }

    /// The bytes, to be filled in.
    pub fn bytes_mut(&mut self) -> &mut [u8; LARGEST_EXTENDED_STATE] {
        &mut self.0
    }

    /// Sets which components the image holds.
    pub fn set_components(&mut self, components: u64) {
        self.0[XSTATE_BV..XSTATE_BV + 8].copy_from_slice(&components.to_le_bytes());
    }

    /// Whether a processor with `components` restores the image, of which `size` bytes were given,
    /// without a fault.
    pub fn is_valid(&self, size: usize, components: u64) -> bool {
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|index| self.0[at + index]));
        let held = word(XSTATE_BV);
        let mxcsr = word(MXCSR_OFFSET) as u32;
        held & !components == 0
            && (held & AVX == 0 || size >= LARGEST_EXTENDED_STATE)
            && self.0[HEADER_ZERO..EXTENDED_STATE_HEADER_END].iter().all(|&byte| byte == 0)
            && mxcsr & !MXCSR_BITS == 0
    }
}

impl Default for ExtendedImage {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = X87_SSE | AVX;

    fn changed(at: usize, byte: u8) -> ExtendedImage {
        let mut image = ExtendedImage::new();
        image.bytes_mut()[at] = byte;
        image
    }

    #[test]
    fn the_initial_image_is_valid_everywhere() {
        assert!(ExtendedImage::new().is_valid(EXTENDED_STATE_HEADER_END, X87_SSE));
        assert!(ExtendedImage::new().is_valid(LARGEST_EXTENDED_STATE, ALL));
    }

    #[test]
    fn only_components_that_are_enabled_and_given_can_be_held() {
        let mut image = ExtendedImage::new();
        image.set_components(ALL);
        assert!(image.is_valid(LARGEST_EXTENDED_STATE, ALL));
        assert!(!image.is_valid(EXTENDED_STATE_HEADER_END, ALL));
        assert!(!image.is_valid(LARGEST_EXTENDED_STATE, X87_SSE));
        image.set_components(1 << 63);
        assert!(!image.is_valid(LARGEST_EXTENDED_STATE, ALL));
        image.set_components(1 << 9);
        assert!(!image.is_valid(LARGEST_EXTENDED_STATE, ALL));
    }

    #[test]
    fn what_xrstor_refuses_is_refused() {
        for at in [HEADER_ZERO, HEADER_ZERO + 7, HEADER_ZERO + 8, EXTENDED_STATE_HEADER_END - 1] {
            assert!(!changed(at, 1).is_valid(LARGEST_EXTENDED_STATE, ALL), "{at}");
        }
        assert!(!changed(MXCSR_OFFSET + 2, 1).is_valid(LARGEST_EXTENDED_STATE, ALL));
        assert!(changed(MXCSR_OFFSET, 0x40).is_valid(LARGEST_EXTENDED_STATE, ALL));
        assert!(changed(32, 0xff).is_valid(LARGEST_EXTENDED_STATE, ALL));
    }
}
