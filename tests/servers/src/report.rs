//! Prints test results as TAP through root.

use core::fmt::Write;
use rt::root::Console;

/// Counts and prints results.
pub(crate) struct Report {
    number: usize,
}

impl Report {
    /// Announces this number of tests.
    pub(crate) fn plan(count: usize) -> Report {
        say(format_args!("1..{count}"));
        Report { number: 0 }
    }

    /// Prints the result of a test.
    pub(crate) fn test(&mut self, good: bool, id: &str, sentence: &str) {
        self.number += 1;
        let verdict = if good { "ok" } else { "not ok" };
        say(format_args!("{verdict} {} - {id} {sentence}", self.number));
    }
}

fn say(line: core::fmt::Arguments<'_>) {
    // Each line is one request, so that no other server's text comes in between.
    Console.write_str(&alloc::format!("{line}\n")).expect("root prints");
}
