//! Kernel memory by numbers of threads and of spaces.
//!
//! The memory of thread control blocks stays what it is once they have been used (K12), so every
//! measurement counts from before the first, and numbers grow from one to the next: what was kept
//! is then part of what is needed.

use crate::world::{delete, id, kernel_memory, make_space, make_thread, make_wide_space, numbers};
use crate::{AVERAGED, report, time};
use bench_framework::{Range, test};
use x2::ThreadId;

const COUNTS: Range = Range::geometric(1, 10_000, 10);

pub(crate) fn run() {
    let start = kernel_memory();
    report("base-memory", 0, "bytes", start);
    for count in COUNTS.values() {
        for (test, distance) in [("threads-consecutive", 1), ("threads-sparse", (numbers() - 1) / count)] {
            threads_in_one_space(count, distance, |space, last| {
                report(test, count, "bytes", kernel_memory() - start);
                time(test, count, AVERAGED, || {
                    delete(last);
                    make_thread(last, space, count - 1);
                });
            });
        }
        test(
            "thread-per-space",
            Range::linear(count, count, 1),
            "bytes",
            make_spaces,
            |_, ()| kernel_memory() - start,
            |count, ()| delete_spaces(count),
        );
    }
}

/// Bytes that are in use more than before after the same again.
pub(crate) fn lost() -> u64 {
    let before = kernel_memory();
    threads_in_one_space(1000, 1, |_, _| ());
    make_spaces(100);
    delete_spaces(100);
    kernel_memory() - before
}

/// Makes `count` spaces with one thread each.
fn make_spaces(count: u64) {
    for number in 0..count {
        make_space(id(number), 12);
        make_thread(id(number), id(number), 0);
    }
}

/// Deletes the spaces of [`make_spaces`].
fn delete_spaces(count: u64) {
    (0..count).for_each(|number| delete(id(number)));
}

/// Makes `count` active threads, whose numbers are `distance` apart, in a space of theirs, does
/// something with the space and the last, and deletes them.
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
