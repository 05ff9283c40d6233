//! Frames taken before a system call's first state change, so that nothing can fail after it (K4).
//!
//! Single objects are reserved by [`super::ObjectSlab::reserve`], page tables by `mapping`.
use super::{Account, Frame, OutOfMemory, Use, frame};

/// Up to `N` frames, freed again if they are not taken.
pub struct Reservation<const N: usize> {
    frames: [Option<Frame>; N],
}

impl<const N: usize> Reservation<N> {
    /// Reserves `count` (at most `N`) zeroed frames for `usage`: all or none.
    pub fn new(account: Account, usage: Use, count: usize) -> Result<Self, OutOfMemory> {
        let mut frames = [const { None }; N];
        for place in &mut frames[..count] {
            *place = Some(frame::alloc(account, usage)?);
        }
        Ok(Self { frames })
    }

    /// One of the reserved frames. Panics if more are taken than were reserved: that call's worst
    /// case was wrong.
    pub fn take(&mut self) -> Frame {
        self.frames.iter_mut().find_map(Option::take).expect("more frames used than reserved")
    }
}
