//! The framework that runs tests.

pub(crate) mod arena;
pub(crate) mod confined;
pub(crate) mod edu;
pub(crate) mod failure;
pub(crate) mod fixture;
pub(crate) mod image;
pub(crate) mod leaks;
pub(crate) mod runner;
pub(crate) mod unit;

/// A test. It runs in a thread of its own in the root task's space, and passes unless it panics,
/// faults or hangs.
#[derive(Clone, Copy)]
pub(crate) struct Test {
    /// The stable id of the test: chapter and four digits, never used for another test.
    pub(crate) id: &'static str,
    /// What the test shows, as a sentence.
    pub(crate) sentence: &'static str,
    /// The function of the test.
    pub(crate) run: fn(),
}

/// The tests of one chapter of the interface.
pub(crate) struct Chapter {
    /// The chapter's name on the command line.
    pub(crate) name: &'static str,
    /// Its tests.
    pub(crate) tests: &'static [Test],
}

/// A list of tests: `tests! { ID [rules] "sentence" function; ... }`, where the rules are those of
/// the book's index that the test shows: `[7.1, ABI 5, EXT 2.1]`.
macro_rules! tests {
    ($($id:ident $([$($rules:tt)*])? $sentence:literal $run:path;)*) => {
        pub(crate) const TESTS: &[$crate::framework::Test] =
            &[$($crate::framework::Test { id: stringify!($id), sentence: $sentence, run: $run },)*];
    };
}
pub(crate) use tests;
