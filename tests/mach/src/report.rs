//! Prints results as TAP through root.

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write};
use core::future::Future;
use core::pin::Pin;

use rt::root::Console;

use crate::system::System;

/// Why a test failed.
pub(crate) struct Failure(pub(crate) String);

impl<E: fmt::Debug> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(format!("{error:?}"))
    }
}

pub(crate) type TestResult = Result<(), Failure>;

type Run = for<'a> fn(&'a System) -> Pin<alloc::boxed::Box<dyn Future<Output = TestResult> + Send + 'a>>;

/// A test.
pub(crate) struct Test {
    pub(crate) id: &'static str,
    pub(crate) sentence: &'static str,
    pub(crate) run: Run,
}

/// Defines the tests of a module.
macro_rules! tests {
    ($($id:ident $sentence:literal $function:ident;)*) => {
        pub(crate) const TESTS: &[$crate::report::Test] = &[$($crate::report::Test {
            id: stringify!($id),
            sentence: $sentence,
            run: |system| alloc::boxed::Box::pin($function(system)),
        }),*];
    };
}
pub(crate) use tests;

/// Fails the test if the two values are not equal.
macro_rules! same {
    ($left:expr, $right:expr $(,)?) => {{
        let (left, right) = (&$left, &$right);
        if left != right {
            return Err($crate::report::Failure(alloc::format!(
                "line {}: {:?} is not {:?}",
                line!(),
                left,
                right
            )));
        }
    }};
}
pub(crate) use same;

/// Fails the test unless the condition holds.
macro_rules! holds {
    ($condition:expr $(,)?) => {
        if !$condition {
            return Err($crate::report::Failure(alloc::format!(
                "line {}: {} does not hold",
                line!(),
                stringify!($condition)
            )));
        }
    };
}
pub(crate) use holds;

/// Prints a line, in one request, so that no other program's text comes in between.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    // If the console does not work, there is no place to report that.
    let _ = Console.write_str(&format!("{line}\n"));
}

/// Runs all tests, one after the other. Each has to free everything that it has used.
pub(crate) async fn run(system: System, modules: &[&[Test]]) {
    let count: usize = modules.iter().map(|tests| tests.len()).sum();
    say(format_args!("1..{count}"));
    for (index, test) in modules.iter().flat_map(|tests| tests.iter()).enumerate() {
        let before = system.usage();
        let mut result = (test.run)(&system).await;
        let after = system.settled_usage(before).await;
        if result.is_ok() && before != after {
            result = Err(Failure(format!("left behind: {before:?}, then {after:?}")));
        }
        if let Err(Failure(reason)) = &result {
            say(format_args!("# {reason}"));
        }
        let not = if result.is_ok() { "" } else { "not " };
        say(format_args!("{not}ok {} - {} {}", index + 1, test.id, test.sentence));
    }
}
