//! The Test Anything Protocol as boot programs speak it on the serial port.
//!
//! A suite prints its plan first, then one line per test, numbered from 1, each with a stable id
//! and a sentence:
//!
//! ```text
//! 1..2
//! ok 1 - IPC0001 a send to a waiting partner delivers every word
//! not ok 2 - IPC0002 a timeout of zero does not wait
//! ok 3 - IPC0003 an interrupt is delivered # SKIP no such line on this machine
//! ```
//!
//! Every other line is console output. A result that breaks these rules is a failure: nothing that
//! a broken suite prints may count as success.

use std::collections::HashSet;

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The test has passed.
    Passed,
    /// The test has failed.
    Failed,
    /// The test was not run, for this reason.
    Skipped(String),
}

/// A test that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The stable id of the test, for instance `IPC0001`.
    pub id: String,
    /// The sentence of the test.
    pub sentence: String,
    /// The outcome that was reported.
    pub outcome: Outcome,
}

/// The tests that a suite has reported so far.
#[derive(Debug, Default)]
pub struct Report {
    plan: Option<usize>,
    /// The tests, in the order in which they were reported.
    pub tests: Vec<Test>,
    /// Violations of the protocol, each a sentence.
    pub(crate) breaches: Vec<String>,
    ids: HashSet<String>,
}

impl Report {
    /// Reads a line of the console.
    pub fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(count) = line.strip_prefix("1..").and_then(|count| count.parse().ok()) {
            if self.plan.is_some() {
                self.breaches.push("the suite announced a second plan: did it start again?".into());
            }
            self.plan = self.plan.or(Some(count));
        } else if let Some(reason) = line.strip_prefix("Bail out!") {
            self.breaches.push(format!("the suite gave up:{reason}"));
        } else if let Some(rest) = line.strip_prefix("ok ") {
            self.outcome(true, rest);
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            self.outcome(false, rest);
        }
    }

    /// Reads what follows `ok` or `not ok`.
    fn outcome(&mut self, passed: bool, rest: &str) {
        match parse_result(passed, rest) {
            Some((number, test)) => self.result(number, test),
            None => self.breaches.push(format!("not a test result with number, id and sentence: {rest:?}")),
        }
    }

    fn result(&mut self, number: usize, test: Test) {
        if number != self.tests.len() + 1 {
            self.breaches.push(format!("{} has number {number}, expected {}", test.id, self.tests.len() + 1));
        }
        if !self.ids.insert(test.id.clone()) {
            self.breaches.push(format!("{} was reported twice", test.id));
        }
        match self.plan {
            None => self.breaches.push(format!("{} was reported before the plan", test.id)),
            Some(plan) if number > plan => {
                self.breaches.push(format!("{} has number {number} of {plan} announced tests", test.id));
            }
            Some(_) => {}
        }
        self.tests.push(test);
    }

    /// Whether the plan was printed.
    pub fn announced(&self) -> bool {
        self.plan.is_some()
    }

    /// Whether every announced test has reported.
    pub fn complete(&self) -> bool {
        self.plan.is_some_and(|plan| self.tests.len() >= plan)
    }

    /// What is wrong with the report as a whole, after the machine has stopped. `expected` is the
    /// number of tests that the suite has at least.
    pub(crate) fn shortcomings(&self, expected: Option<usize>) -> Vec<String> {
        let mut wrong = self.breaches.clone();
        match self.plan {
            None => wrong.push("no plan (1..N) was printed".into()),
            Some(0) => wrong.push("the plan announces no test".into()),
            Some(plan) if self.tests.len() < plan => {
                wrong.push(format!("{} of {plan} announced tests reported", self.tests.len()));
            }
            Some(plan) => wrong.extend(
                expected
                    .filter(|expected| plan < *expected)
                    .map(|expected| format!("{plan} tests announced, the suite has at least {expected}")),
            ),
        }
        wrong
    }
}

/// Parses `N - ID sentence [# SKIP reason]`.
fn parse_result(passed: bool, rest: &str) -> Option<(usize, Test)> {
    let (number, rest) = rest.split_once(' ')?;
    let description = rest.trim_start().strip_prefix("- ")?;
    let (description, directive) = match description.split_once(" # ") {
        Some((description, directive)) => (description, Some(directive)),
        None => (description, None),
    };
    let (id, sentence) = description.trim().split_once(' ')?;
    if !is_id(id) {
        return None;
    }
    let skipped = directive.and_then(|directive| directive.strip_prefix("SKIP"));
    let outcome = match (passed, skipped) {
        (true, Some(reason)) => Outcome::Skipped(reason.trim().to_string()),
        (true, None) => Outcome::Passed,
        (false, _) => Outcome::Failed,
    };
    Some((number.parse().ok()?, Test { id: id.into(), sentence: sentence.trim().into(), outcome }))
}

/// Whether a word is the id of a test: capital letters or digits, then four digits, as in `IPC0001`
/// or `X20007`.
pub fn is_id(word: &str) -> bool {
    let Some((area, number)) = word.len().checked_sub(4).and_then(|middle| word.split_at_checked(middle))
    else {
        return false;
    };
    area.starts_with(|first: char| first.is_ascii_uppercase())
        && area.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lines: &[&str]) -> Report {
        let mut report = Report::default();
        for line in lines {
            report.line(line);
        }
        report
    }

    #[test]
    fn a_complete_suite_has_no_shortcomings() {
        let report = report(&[
            "booting",
            "1..3",
            "ok 1 - IPC0001 words arrive\r",
            "ok 2 - IPC0002 a line # SKIP no such line",
            "not ok 3 - IPC0003 waits",
        ]);
        assert!(report.complete());
        assert_eq!(report.shortcomings(Some(3)), Vec::<String>::new());
        assert_eq!(report.tests[0].outcome, Outcome::Passed);
        assert_eq!(report.tests[1].outcome, Outcome::Skipped("no such line".into()));
        assert_eq!(report.tests[2].outcome, Outcome::Failed);
    }

    #[test]
    fn fewer_tests_than_announced_or_than_known_is_a_shortcoming() {
        assert!(!report(&["1..2", "ok 1 - A0001 one"]).complete());
        assert_eq!(report(&["1..2", "ok 1 - A0001 one"]).shortcomings(None).len(), 1);
        assert_eq!(report(&["1..1", "ok 1 - A0001 one"]).shortcomings(Some(2)).len(), 1);
        assert_eq!(report(&[]).shortcomings(None).len(), 1);
        assert_eq!(report(&["1..0"]).shortcomings(None).len(), 1);
    }

    #[test]
    fn breaches_of_the_protocol_never_count_as_success() {
        for lines in [
            &["1..1", "ok 1 - no id here"][..],
            &["1..1", "ok 2 - A0001 wrong number"],
            &["1..2", "ok 1 - A0001 one", "ok 2 - A0001 one again"],
            &["1..1", "ok 1 - A0001 one", "ok 2 - A0002 too many"],
            &["1..1", "ok 1 - A0001 one", "1..1"],
            &["1..1", "ok 1 - A0001 one", "Bail out! out of memory"],
            &["ok 1 - A0001 before the plan", "1..1"],
        ] {
            assert!(!report(lines).shortcomings(None).is_empty(), "{lines:?}");
        }
    }

    #[test]
    fn a_failed_test_stays_failed_whatever_its_directive() {
        let report = report(&["1..1", "not ok 1 - A0001 one # SKIP pretending"]);
        assert_eq!(report.tests[0].outcome, Outcome::Failed);
    }

    #[test]
    fn ids_are_capitals_and_four_digits() {
        for good in ["IPC0001", "X20007", "A0000"] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["", "0001", "ipc0001", "IPC001", "IPC", "20001", "äö0001"] {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
