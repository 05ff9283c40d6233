//! System calls of real programs, recorded under Linux, are made again on the simulated machine,
//! and have to return the same. `personality/linux/tests/traces/record` makes the recordings.

mod parse;
mod replay;

use replay::Replay;

fn replay(tree: &str, trace: &str, at_least: usize) {
    let (differences, calls) = Replay::run(tree, trace);
    assert!(
        differences.is_empty(),
        "{} of {calls} calls differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(calls >= at_least, "only {calls} calls were made");
}

#[test]
fn the_calls_of_a_dash_script_return_as_on_linux() {
    replay(include_str!("../../traces/dash.tree"), include_str!("../../traces/dash.trace"), 500);
}

#[test]
fn the_calls_of_a_bash_script_return_as_on_linux() {
    replay(include_str!("../../traces/bash.tree"), include_str!("../../traces/bash.trace"), 500);
}

#[test]
fn the_calls_of_tar_find_and_sed_return_as_on_linux() {
    replay(include_str!("../../traces/files.tree"), include_str!("../../traces/files.trace"), 500);
}

#[test]
fn calls_with_arguments_at_their_limits_return_as_on_linux() {
    replay(include_str!("../../traces/errors.tree"), include_str!("../../traces/errors.trace"), 400);
}
