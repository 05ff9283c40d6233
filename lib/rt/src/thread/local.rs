//! Thread-local values.

use crate::executor::OutOfMemory;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ptr;

/// A thread-local value. Each thread's value is made when the thread first uses it. When the thread
/// ends its values are dropped, the newest first. A `Local` must be a static: its address
/// identifies it.
///
/// A value is found by a search in the thread's list of values, which suits a few values, not
/// thousands. The list is referred to by the user-defined handle in the thread's UTCB, which
/// programs that use this must not change.
#[derive(Debug)]
pub struct Local<T: 'static> {
    make: fn() -> T,
    /// Statics of size zero could share an address.
    _place: u8,
}

/// A thread's value of one [`Local`].
struct Value {
    /// The address of the [`Local`] to which the value belongs.
    key: usize,
    value: *mut (),
    drop: fn(*mut ()),
}

/// A thread's values.
type Values = RefCell<Vec<Value>>;

impl<T: 'static> Local<T> {
    /// A thread-local value that `make` makes for each thread.
    pub const fn new(make: fn() -> T) -> Local<T> {
        Local { make, _place: 0 }
    }

    /// Calls `look` with the calling thread's value. Returns its result.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the value has to be made and there is no memory; `look` is not called
    /// then.
    #[allow(unsafe_code, reason = "values of all types are in one list")]
    pub fn with<R>(&'static self, look: impl FnOnce(&T) -> R) -> Result<R, OutOfMemory> {
        let key = ptr::from_ref(self) as usize;
        let values = values().map_or_else(new_values, Ok)?;
        let known = values.borrow().iter().find(|value| value.key == key).map(|value| value.value);
        let value = match known {
            Some(value) => value,
            None => {
                let value: *mut T = Box::into_raw(try_box((self.make)())?);
                let value = Value { key, value: value.cast(), drop: drop_value::<T> };
                let pointer = value.value;
                let mut list = values.borrow_mut();
                if list.try_reserve(1).is_err() {
                    drop(list);
                    (value.drop)(pointer);
                    return Err(OutOfMemory);
                }
                list.push(value);
                pointer
            }
        };
        // SAFETY: the pointer was made above or by an earlier call, from a box of a `T`, which
        // exists until the thread ends.
        Ok(look(unsafe { &*value.cast::<T>() }))
    }
}

#[allow(unsafe_code, reason = "values of all types are in one list")]
fn drop_value<T>(value: *mut ()) {
    // SAFETY: this is called once for each value, with the pointer that `Local::with` has made from
    // a box.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

/// Allocates a box, if there is memory for it.
fn try_box<T>(value: T) -> Result<Box<T>, OutOfMemory> {
    let mut room: Vec<T> = Vec::new();
    room.try_reserve_exact(1).map_err(|_| OutOfMemory)?;
    room.push(value);
    let array: Box<[T; 1]> = room.into_boxed_slice().try_into().map_err(|_| OutOfMemory)?;
    // A box of a value and a box of an array with one element have the same layout.
    #[allow(unsafe_code, reason = "see above")]
    // SAFETY: the array has one element, so a pointer to the array is a pointer to the element.
    Ok(unsafe { Box::from_raw(Box::into_raw(array).cast()) })
}

/// The calling thread's list of values, if it has one.
#[allow(unsafe_code, reason = "the list hangs on a word of the UTCB")]
fn values() -> Option<&'static Values> {
    // SAFETY: the handle is 0 or was set by `new_values`; only the thread itself frees the list, at
    // its end.
    unsafe { (handle::get() as *const Values).as_ref() }
}

fn new_values() -> Result<&'static Values, OutOfMemory> {
    let values: &'static Values = Box::leak(try_box(RefCell::new(Vec::new()))?);
    handle::set(ptr::from_ref(values) as u64);
    Ok(values)
}

/// Drops the values of the calling thread, which is ending. Values that their destructors make
/// again are dropped, too.
#[allow(unsafe_code, reason = "the list hangs on a word of the UTCB")]
pub(super) fn drop_all() {
    let Some(values) = values() else { return };
    loop {
        let last = values.borrow_mut().pop();
        let Some(Value { value, drop, .. }) = last else { break };
        drop(value);
    }
    handle::set(0);
    // SAFETY: the pointer is that of a leaked box, to which there are no other references.
    drop(unsafe { Box::from_raw(ptr::from_ref(values).cast_mut()) });
}

/// The user-defined handle in the UTCB.
#[cfg(not(test))]
mod handle {
    pub(super) use l4::utcb::{set_user_defined_handle as set, user_defined_handle as get};
}

/// The handle in host builds, whose threads have no UTCB.
#[cfg(test)]
mod handle {
    use core::cell::Cell;

    std::thread_local! {
        static HANDLE: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn get() -> u64 {
        HANDLE.get()
    }

    pub(super) fn set(value: u64) {
        HANDLE.set(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::sync::Mutex;

    static COUNTER: Local<Cell<u32>> = Local::new(|| Cell::new(100));

    #[test]
    fn each_thread_has_its_own() {
        let count = || {
            let next = || COUNTER.with(|counter| counter.replace(counter.get() + 1)).unwrap();
            let counted = [next(), next(), next()];
            drop_all();
            counted
        };
        assert_eq!(count(), [100, 101, 102]);
        assert_eq!(std::thread::spawn(count).join().unwrap(), [100, 101, 102]);
    }

    /// A value that records its name when it is dropped.
    struct Dropped(&'static str);

    static ORDER: Mutex<Vec<&str>> = Mutex::new(Vec::new());

    impl Drop for Dropped {
        fn drop(&mut self) {
            ORDER.lock().unwrap().push(self.0);
            if self.0 == "first" {
                LATE.with(|_| ()).unwrap();
            }
        }
    }

    static FIRST: Local<Dropped> = Local::new(|| Dropped("first"));
    /// A value whose destructor needs another value, which has to be made.
    static SECOND: Local<Dropped> = Local::new(|| FIRST.with(|_| Dropped("second")).unwrap());
    static LATE: Local<Dropped> = Local::new(|| Dropped("late"));

    #[test]
    fn values_are_dropped_at_the_end_the_last_first() {
        SECOND.with(|second| assert_eq!(second.0, "second")).unwrap();
        drop_all();
        assert_eq!(*ORDER.lock().unwrap(), ["second", "first", "late"]);
        assert!(values().is_none());
        drop_all();
    }
}
