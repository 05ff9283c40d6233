//! Alternate signal stacks (sigaltstack(2)).

use crate::{Error, Result};

/// A thread's alternate signal stack; with size 0 there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlternateStack {
    /// Lowest address of the stack.
    pub base: u64,
    /// Size in bytes; 0 if there is no alternate stack.
    pub size: u64,
    /// The stack is disarmed while a handler runs (SS_AUTODISARM).
    pub auto_disarm: bool,
}

impl AlternateStack {
    /// Whether an alternate stack is set.
    pub fn is_set(&self) -> bool {
        self.size != 0
    }

    /// Whether a thread with this stack pointer executes on the alternate stack; false for one that
    /// disarms itself.
    pub fn contains(&self, stack_pointer: u64) -> bool {
        !self.auto_disarm && self.holds(stack_pointer)
    }

    fn holds(&self, stack_pointer: u64) -> bool {
        stack_pointer > self.base && stack_pointer - self.base <= self.size
    }

    /// Where a signal frame starts (it grows down) for a thread with this stack pointer: at the top
    /// of the alternate stack if `on_stack` says so and the thread is not on it yet, else at the
    /// stack pointer.
    pub fn top_for(&self, stack_pointer: u64, on_stack: bool) -> u64 {
        match on_stack && self.is_set() && !self.contains(stack_pointer) {
            true => self.base.wrapping_add(self.size),
            false => stack_pointer,
        }
    }

    /// Whether a frame from `top` down to `bottom` stays on the alternate stack, if `top` lies on
    /// it. A frame that does not is a stack overflow.
    pub fn admits(&self, top: u64, bottom: u64) -> bool {
        !self.is_set() || !self.holds(top) || self.holds(bottom)
    }

    /// Checks and replaces the alternate stack, as sigaltstack(2) does for a thread with this stack
    /// pointer. `EPERM` while the thread is on the stack, `ENOMEM` if `new` is smaller than
    /// `minimum` bytes. A `new` of size 0 removes it.
    pub fn replace(&mut self, new: AlternateStack, stack_pointer: u64, minimum: u64) -> Result<()> {
        if self.is_set() && self.contains(stack_pointer) {
            return Err(Error::EPERM);
        }
        if new.is_set() && new.size < minimum {
            return Err(Error::ENOMEM);
        }
        *self = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_start_on_the_alternate_stack_if_asked_and_not_on_it() {
        let stack = AlternateStack { base: 0x1000, size: 0x2000, auto_disarm: false };
        assert_eq!(stack.top_for(0x9000, true), 0x3000);
        assert_eq!(stack.top_for(0x9000, false), 0x9000);
        assert_eq!(stack.top_for(0x2800, true), 0x2800);
        assert_eq!(AlternateStack::default().top_for(0x9000, true), 0x9000);
        assert!(stack.contains(0x3000) && !stack.contains(0x1000));
        assert!(
            stack.admits(0x3000, 0x2000) && !stack.admits(0x3000, 0x0800) && stack.admits(0x9000, 0x8000)
        );
        let disarming = AlternateStack { auto_disarm: true, ..stack };
        assert_eq!(disarming.top_for(0x2800, true), 0x3000);
    }

    #[test]
    fn an_alternate_stack_in_use_is_not_replaced() {
        let mut stack = AlternateStack::default();
        let new = AlternateStack { base: 0x1000, size: 0x1000, auto_disarm: false };
        assert_eq!(stack.replace(new, 0x9000, 0x800), Ok(()));
        assert_eq!(stack.replace(AlternateStack::default(), 0x1800, 0x800), Err(Error::EPERM));
        assert_eq!(stack.replace(AlternateStack { size: 0x7ff, ..new }, 0x9000, 0x800), Err(Error::ENOMEM));
        assert_eq!(stack, new);
        assert_eq!(stack.replace(AlternateStack::default(), 0x9000, 0x800), Ok(()));
        assert!(!stack.is_set());
    }
}
