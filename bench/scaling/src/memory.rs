//! Kernel memory by numbers of threads and of spaces.
//!
//! The memory of thread control blocks stays what it is once they have been used (K12), so every measurement counts from
//! before the first, and numbers grow from one to the next: what was kept is then part of what is needed.

use crate::world::{delete, id, kernel_memory, make_space, make_thread, make_wide_space, numbers};
use crate::{AVERAGED, report, time};
use x2::ThreadId;

const COUNTS: [u64; 5] = [1, 10, 100, 1000, 10_000];
/// More spaces than this are not made: a space with its tables and its UTCB takes much more than a thread.
const SPACES: u64 = 1000;

pub(crate) fn run() {
    let start = kernel_memory();
    for count in COUNTS {
        for (test, distance) in [("threads-consecutive", 1), ("threads-sparse", (numbers() - 1) / count)] {
            threads_in_one_space(count, distance, |space, last| {
                report(test, count, "bytes", kernel_memory() - start);
                time(test, count, AVERAGED, |_| {
                    delete(last);
                    make_thread(last, space, count - 1);
                });
            });
        }
        if count <= SPACES {
            thread_per_space(count, || report("thread-per-space", count, "bytes", kernel_memory() - start));
        }
    }
}

/// Bytes that are in use more than before after the same again.
pub(crate) fn lost() -> u64 {
    let before = kernel_memory();
    threads_in_one_space(1000, 1, |_, _| ());
    thread_per_space(100, || ());
    kernel_memory() - before
}

/// Makes so many spaces with one thread each, does something, and deletes them.
fn thread_per_space(count: u64, then: impl FnOnce()) {
    for number in 0..count {
        make_space(id(number), 12);
        make_thread(id(number), id(number), 0);
    }
    then();
    (0..count).for_each(|number| delete(id(number)));
}

/// Makes so many active threads, whose numbers are `distance` apart, in a space of theirs, does something with the space
/// and the last, and deletes them.
fn threads_in_one_space(count: u64, distance: u64, then: impl FnOnce(ThreadId, ThreadId)) {
    let space = id(0);
    make_wide_space(space);
    let thread = |index: u64| -> ThreadId { id(1 + index * distance) };
    for index in 0..count {
        make_thread(thread(index), space, index);
    }
    then(space, thread(count - 1));
    (0..count).for_each(|index| delete(thread(index)));
    delete(space);
}
