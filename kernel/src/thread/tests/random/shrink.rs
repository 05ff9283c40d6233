//! Shortening what fails: parts are left out as long as what remains still fails in the same way.

use std::cell::Cell;
use std::fmt::{Debug, Display, Formatter};
use std::format;
use std::panic::{self, AssertUnwindSafe};
use std::string::{String, ToString};
use std::sync::Once;
use std::vec::Vec;

use super::Program;

/// A panic: where, and what it said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct Failure {
    place: String,
    message: String,
}

impl Failure {
    /// Whether the panic shows the same fault of the kernel: the same check has failed.
    fn is_like(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.place)
    }
}

std::thread_local! {
    /// Where the last panic of a thread that catches its own was.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Does something that may panic, which is not reported but returned.
pub(in super::super) fn caught<T>(body: impl FnOnce() -> T) -> Result<T, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(std::boxed::Box::new(move |info| {
            if CATCHES.get() {
                PLACE.set(info.location().map(ToString::to_string));
            } else {
                usual(info);
            }
        }));
    });
    CATCHES.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    CATCHES.set(false);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string));
        Failure { place: PLACE.take().unwrap_or_default(), message: text.unwrap_or_default() }
    })
}

/// A shorter list that still makes `run` fail like `failure`: no single element of it can be left
/// out. (Delta debugging: ever smaller parts are left out.)
pub(in super::super) fn shortest<T: Clone>(list: Vec<T>, failure: &Failure, run: impl Fn(&[T])) -> Vec<T> {
    let fails = |list: &[T]| caught(|| run(list)).is_err_and(|other| other.is_like(failure));
    let mut list = list;
    let mut part = list.len().div_ceil(2).max(1);
    loop {
        let mut begin = 0;
        let mut shorter = false;
        while begin < list.len() {
            let end = (begin + part).min(list.len());
            let rest = [&list[..begin], &list[end..]].concat();
            if fails(&rest) {
                list = rest;
                shorter = true;
            } else {
                begin = end;
            }
        }
        if part == 1 && !shorter {
            return list;
        }
        part = if part > 1 { part.div_ceil(2) } else { 1 };
    }
}

/// The program as a test to be added.
pub(in super::super) fn as_test(program: &Program) -> String {
    let Program { fast, interrupts, actions } = program;
    let mut text = String::from(
        "#[test]\nfn what_was_found() {\n    use super::action::{Action::*, Limit::*, Name::*};\n",
    );
    text += &format!("    let actions = [\n{}    ];\n", lines(actions));
    text += &format!(
        "    replay(&Program {{ fast: {fast}, interrupts: {interrupts}, actions: actions.into() }});\n}}\n"
    );
    text
}

/// A list as text, one element to a line.
pub(in super::super) fn lines<T: Debug>(list: &[T]) -> String {
    list.iter().map(|element| format!("        {element:?},\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::tests::random::model::FORGETFUL;
    use crate::thread::tests::random::{Action, replay, try_seed};

    #[test]
    fn a_list_becomes_as_short_as_it_can() {
        let run = |list: &[u32]| {
            let both = list.iter().position(|&it| it == 70).zip(list.iter().position(|&it| it == 31));
            assert!(both.is_none_or(|(later, earlier)| later < earlier), "31 comes before 70");
            assert!(!list.contains(&999), "something else is wrong");
        };
        let list: Vec<u32> = (0..100).chain([999]).collect();
        let failure = caught(|| run(&list)).expect_err("it fails");
        assert_eq!(shortest(list, &failure, run), [31, 70]);
    }

    #[test]
    fn a_seed_and_its_program_do_the_same() {
        let (program, outcome) = try_seed(9, 400, 1);
        assert_eq!(program.actions.len(), 400);
        let once = outcome.expect("no fault is known");
        assert_eq!(replay(&program), once);
    }

    #[test]
    fn a_fault_of_the_kernel_is_found_and_becomes_a_short_program() {
        FORGETFUL.set(true);
        let found = (1..20).map(|seed| try_seed(seed, 600, 1)).find(|(_, outcome)| outcome.is_err());
        let Some((program, Err(failure))) = found else { panic!("no run notices the fault") };
        let run = |actions: &[Action]| {
            replay(&Program { actions: actions.to_vec(), ..program.clone() });
        };
        let actions = shortest(program.actions.clone(), &failure, run);
        FORGETFUL.set(false);
        let text = as_test(&Program { actions: actions.clone(), ..program });
        assert!(actions.len() <= 4, "{text}");
        assert!(text.contains("Schedule { dest: ") && text.contains("priority: 255"), "{text}");
    }
}
