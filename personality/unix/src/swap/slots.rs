//! Which pages of a swap area are in use.

use alloc::vec::Vec;

/// The pages of an area, a bit for each.
pub(super) struct Slots {
    /// A bit is set if the page is in use, or cannot be used.
    words: Vec<u64>,
    pages: u32,
    free: u32,
    /// Where the next search begins: pages that are written one after the other lie one after the
    /// other, and a page that the disk has refused is not tried again next.
    next: u32,
}

impl Slots {
    /// All pages but the first one, the header, and the bad ones are free. `None`: memory is short.
    pub(super) fn new(pages: u32, bad: &[u32]) -> Option<Slots> {
        let mut words = Vec::new();
        words.try_reserve_exact(pages.div_ceil(64) as usize).ok()?;
        words.resize(pages.div_ceil(64) as usize, 0);
        let mut slots = Slots { words, pages, free: pages, next: 1 };
        core::iter::once(&0).chain(bad).for_each(|&page| slots.take(page));
        Some(slots)
    }

    pub(super) fn free_count(&self) -> u32 {
        self.free
    }

    fn is_free(&self, page: u32) -> bool {
        page < self.pages && self.words[page as usize / 64] >> (page % 64) & 1 == 0
    }

    fn take(&mut self, page: u32) {
        debug_assert!(self.is_free(page), "a page has one use");
        self.words[page as usize / 64] |= 1 << (page % 64);
        self.free -= 1;
    }

    /// Takes up to `most` pages, one after the other: the first one, and how many there are.
    pub(super) fn allocate(&mut self, most: u32) -> Option<(u32, u32)> {
        let first = self.find_free(self.next).or_else(|| self.find_free(0))?;
        let mut count = 0;
        while count < most && self.is_free(first + count) {
            self.take(first + count);
            count += 1;
        }
        self.next = first + count;
        Some((first, count))
    }

    /// The first free page from `from` on.
    fn find_free(&self, from: u32) -> Option<u32> {
        let mut at = from;
        while at < self.pages {
            let free = !self.words[at as usize / 64] >> (at % 64);
            if free != 0 {
                let page = at + free.trailing_zeros();
                return (page < self.pages).then_some(page);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Frees a page that was taken.
    pub(super) fn release(&mut self, page: u32) {
        debug_assert!(!self.is_free(page), "only a page in use is released");
        self.words[page as usize / 64] &= !(1 << (page % 64));
        self.free += 1;
    }
}
