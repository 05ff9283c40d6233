//! Real programs' calls, recorded under Linux, made again on the simulated machine: what they
//! return has to be the same. `personality/linux/tests/traces/record` makes the recordings.

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
fn a_script_of_dash() {
    replay(include_str!("../../traces/dash.tree"), include_str!("../../traces/dash.trace"), 500);
}

#[test]
fn a_script_of_bash() {
    replay(include_str!("../../traces/bash.tree"), include_str!("../../traces/bash.trace"), 500);
}

#[test]
fn tar_find_and_sed() {
    replay(include_str!("../../traces/files.tree"), include_str!("../../traces/files.trace"), 500);
}

#[test]
fn calls_at_the_edges_of_what_they_accept() {
    replay(include_str!("../../traces/errors.tree"), include_str!("../../traces/errors.trace"), 400);
}
