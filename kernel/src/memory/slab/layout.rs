//! How the objects of a slab lie in its frames, and how they are treated.

use core::sync::atomic::{AtomicU16, AtomicU64};

use super::super::{PAGE_SIZE, PhysAddr};
use crate::arch;

pub(super) const LINE: u32 = 64;

/// Size and placement of a slab's objects in a frame.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) size: u32,
    /// Bytes in which places are counted: a line, if objects are whole lines, else an object.
    pub(super) unit: u32,
    pub(super) per_frame: u32,
    /// How many starting offsets, a cache line apart, are in use.
    colours: u32,
    /// Offset in a free object of the link to the next one.
    link_at: u32,
    pub(super) stable: bool,
    /// Objects are cleared when they are freed, so that the next user finds zeros.
    pub(super) cleared: bool,
}

impl Layout {
    pub(super) const fn packed(size: u32) -> Self {
        Self {
            size,
            unit: if size.is_multiple_of(LINE) { LINE } else { size },
            per_frame: PAGE_SIZE as u32 / size,
            colours: 1,
            link_at: 0,
            stable: false,
            cleared: false,
        }
    }

    /// The layout of objects that hold zeros when they are handed out.
    pub(super) const fn cleared(size: u32) -> Self {
        Self { cleared: true, ..Self::packed(size) }.with_colours()
    }

    /// The layout of objects whose memory holds objects of this type for ever, and is cleared only
    /// when it is first used. While an object is free, the word at `link_at` is the slab's.
    pub(super) const fn stable(size: u32, link_at: u32) -> Self {
        assert!(size.is_multiple_of(8) && link_at.is_multiple_of(8) && link_at < size);
        let full = PAGE_SIZE as u32 / size;
        let per_frame = if full * size == PAGE_SIZE as u32 && full > 1 { full - 1 } else { full };
        Self { per_frame, link_at, stable: true, ..Self::packed(size) }.with_colours()
    }

    const fn with_colours(mut self) -> Self {
        let slack = PAGE_SIZE as u32 - self.per_frame * self.size;
        // Objects smaller than a line need their natural alignment. An offset of a whole object
        // would be no new colour.
        let (offsets, lines) = (slack / LINE + 1, self.size / LINE);
        self.colours = match self.size % LINE {
            0 if lines < offsets => lines,
            0 => offsets,
            _ => 1,
        };
        assert!(self.per_frame >= 1 && self.per_frame <= 255);
        self
    }

    #[inline]
    pub(super) const fn start(self, number: u32) -> u32 {
        if self.colours == 1 { 0 } else { number % self.colours * LINE }
    }

    #[inline]
    pub(super) fn object(self, number: u32, index: u32) -> PhysAddr {
        PhysAddr::new(u64::from(number) * PAGE_SIZE + u64::from(self.start(number) + index * self.size))
    }

    /// The physical address of the object with this place in a frame.
    #[inline(always)]
    pub(super) fn object_at(self, number: u32, place: u32) -> PhysAddr {
        PhysAddr::new(u64::from(number) * PAGE_SIZE + u64::from(place * self.unit))
    }

    /// How far it is from an object to the next.
    #[inline(always)]
    pub(super) fn step(self) -> u32 {
        self.size / self.unit
    }

    /// The place of an object in its frame.
    #[inline(always)]
    pub(super) fn place(self, number: u32, object: PhysAddr) -> u32 {
        let offset = object.value() as u32 % PAGE_SIZE as u32;
        debug_assert!((offset - self.start(number)).is_multiple_of(self.size));
        offset / self.unit
    }

    #[inline]
    pub(super) fn link(self, object: PhysAddr) -> &'static AtomicU16 {
        let word = arch::phys_to_virt(object.offset(u64::from(self.link_at)));
        // SAFETY: a free object's link lies inside it, aligned, in kernel memory that is always
        // mapped.
        unsafe { &*word.cast::<AtomicU16>() }
    }

    /// Where an object at hand names the next one, in a stable slab.
    #[inline(always)]
    pub(super) fn next_at_hand(self, object: PhysAddr) -> &'static AtomicU64 {
        let word = arch::phys_to_virt(object.offset(u64::from(self.link_at)));
        // SAFETY: as for `link`.
        unsafe { &*word.cast::<AtomicU64>() }
    }
}
