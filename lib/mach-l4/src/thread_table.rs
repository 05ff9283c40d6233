//! The table of threads by thread number, by which a worker finds the sender of a message. It also
//! counts the processor time of each thread, because the worker that looks up the sender of a
//! message knows how long that thread ran.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use l4::x2::ThreadId;
use rt::executor::OutOfMemory;

/// Processor time of a thread, in ticks of the time-stamp counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// Time used in the program.
    pub(crate) program: u64,
    /// Time used by the server on the thread's behalf.
    pub(crate) server: u64,
}

struct Entry<R> {
    record: Weak<R>,
    ticks: Ticks,
}

impl<R> Default for Entry<R> {
    fn default() -> Entry<R> {
        Entry { record: Weak::new(), ticks: Ticks::default() }
    }
}

/// The records of threads, by thread number. The caller has to compare a record's whole id with the
/// sender's: an earlier thread may have had the number.
pub(crate) struct ThreadTable<R> {
    /// The thread number that belongs to the first place.
    first: u32,
    places: Vec<Entry<R>>,
}

impl<R> ThreadTable<R> {
    /// A table for threads whose numbers begin at `first`.
    pub(crate) const fn new(first: u32) -> Self {
        Self { first, places: Vec::new() }
    }

    /// The place of a thread; `None` if its number is outside the table's range.
    fn place(&self, thread: ThreadId) -> Option<usize> {
        thread.number().checked_sub(self.first).map(|place| place as usize)
    }

    fn entry(&mut self, thread: ThreadId) -> Option<&mut Entry<R>> {
        let place = self.place(thread)?;
        self.places.get_mut(place)
    }

    /// Enters a thread, whose time begins at 0.
    ///
    /// # Errors
    /// There is no memory for its place.
    pub(crate) fn insert(&mut self, thread: ThreadId, record: Weak<R>) -> Result<(), OutOfMemory> {
        let place = self.place(thread).ok_or(OutOfMemory)?;
        if place >= self.places.len() {
            self.places.try_reserve(place + 1 - self.places.len()).map_err(|_| OutOfMemory)?;
            self.places.resize_with(place + 1, Entry::default);
        }
        self.places[place] = Entry { record, ticks: Ticks::default() };
        Ok(())
    }

    /// Charges time, as [`charge`](Self::charge) does, to a thread that may have sent a message.
    /// Returns the record at its place.
    #[inline]
    pub(crate) fn find_and_charge(&mut self, thread: ThreadId, more: Ticks) -> Option<&Weak<R>> {
        let Entry { record, ticks } = self.entry(thread)?;
        ticks.program += more.program;
        ticks.server += more.server;
        Some(record)
    }

    /// How many places the table has.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// The record at a place. The caller must not drop it while it holds a lock on the table.
    pub(crate) fn record(&self, place: usize) -> Option<Arc<R>> {
        self.places.get(place)?.record.upgrade()
    }

    /// Adds to the time of a thread, if the thread is in the table.
    #[inline]
    pub(crate) fn charge(&mut self, thread: ThreadId, more: Ticks) {
        self.find_and_charge(thread, more);
    }

    /// The time that a thread has used since it was entered.
    pub(crate) fn ticks(&self, thread: ThreadId) -> Ticks {
        let entry = self.place(thread).and_then(|place| self.places.get(place));
        entry.map_or(Ticks::default(), |entry| entry.ticks)
    }

    /// Removes a thread from the table.
    pub(crate) fn remove(&mut self, thread: ThreadId) {
        if let Some(entry) = self.entry(thread) {
            *entry = Entry::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> ThreadId {
        ThreadId::global(number, 1).unwrap()
    }

    #[test]
    fn records_are_found_by_number_until_they_are_removed() {
        let mut table = ThreadTable::new(100);
        let records: Vec<Arc<u32>> = (0..50).map(Arc::new).collect();
        for (index, record) in records.iter().enumerate().rev() {
            table.insert(id(100 + 7 * index as u32), Arc::downgrade(record)).unwrap();
        }
        let find = |table: &mut ThreadTable<u32>, number| {
            table.find_and_charge(id(number), Ticks::default()).and_then(Weak::upgrade).map(|record| *record)
        };
        assert_eq!([100, 107, 443].map(|number| find(&mut table, number)), [Some(0), Some(1), Some(49)]);
        // There are no records for numbers between, below and above the threads'.
        assert_eq!([101, 99, 444].map(|number| find(&mut table, number)), [None; 3]);
        table.remove(id(107));
        table.remove(id(5000));
        assert_eq!(find(&mut table, 107), None);
        assert!(table.insert(id(99), Weak::new()).is_err());
    }

    #[test]
    fn time_is_counted_from_the_entry_on() {
        let mut table = ThreadTable::<u32>::new(100);
        let ticks = |program, server| Ticks { program, server };
        table.insert(id(103), Weak::new()).unwrap();
        table.charge(id(103), ticks(5, 7));
        table.charge(id(103), ticks(1, 0));
        table.charge(id(104), ticks(9, 9));
        table.charge(ThreadId::NIL, ticks(9, 9));
        assert_eq!((table.ticks(id(103)), table.ticks(id(104))), (ticks(6, 7), Ticks::default()));
        table.insert(id(103), Weak::new()).unwrap();
        assert_eq!(table.ticks(id(103)), Ticks::default());
    }
}
