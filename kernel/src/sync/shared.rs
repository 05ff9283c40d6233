//! Words that one processor writes and others may read at any time, as hints or where something
//! else orders the accesses. They are used like cells; on this architecture they cost the same.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// A reference to something whose memory is never used as anything else, or none.
#[repr(transparent)]
pub struct SharedRef<T: 'static>(AtomicPtr<T>);

impl<T> SharedRef<T> {
    /// An empty reference.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// The reference.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // Acquire: what is referred to was complete before.
        // SAFETY: only 'static references are stored.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Sets the reference.
    #[inline]
    pub fn set(&self, value: Option<&'static T>) {
        self.0.store(
            value.map_or(null_mut(), |value| core::ptr::from_ref(value).cast_mut()),
            Ordering::Release,
        );
    }

    /// Sets the reference and returns what it was. Not one step: there is one writer.
    #[inline]
    pub fn replace(&self, value: Option<&'static T>) -> Option<&'static T> {
        let before = self.get();
        self.set(value);
        before
    }

    /// Sets the reference to none and returns the value before.
    #[inline]
    pub fn take(&self) -> Option<&'static T> {
        self.replace(None)
    }
}

impl<T> Default for SharedRef<T> {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! shared {
    ($(#[doc = $about:literal] $name:ident $atomic:ident $value:ty;)*) => { $(
        #[doc = $about]
        #[repr(transparent)]
        pub struct $name($atomic);

        impl $name {
            /// A cell with this value.
            pub const fn new(value: $value) -> Self {
                Self($atomic::new(value))
            }

            /// The value.
            #[inline]
            pub fn get(&self) -> $value {
                self.0.load(Ordering::Relaxed)
            }

            /// Sets the value.
            #[inline]
            pub fn set(&self, value: $value) {
                self.0.store(value, Ordering::Relaxed);
            }

            /// Sets the value and returns what it was. Not one step: there is one writer.
            #[inline]
            pub fn replace(&self, value: $value) -> $value {
                let before = self.get();
                self.set(value);
                before
            }
        }
    )* };
}

shared! {
    /// A word.
    SharedWord AtomicU64 u64;
    /// A 32-bit number.
    SharedHalf AtomicU32 u32;
    /// A byte.
    SharedByte AtomicU8 u8;
    /// A truth value.
    SharedFlag AtomicBool bool;
}
