//! Runs compiled C stubs: clients and servers exchange messages within one program.

mod programs;

use programs::{SUBJECTS, Stubs, build_and_run};

fn understand_each_other(target: &str) {
    for subject in SUBJECTS.into_iter().chain(["odd"]) {
        let stubs = Stubs::ours(subject, target);
        build_and_run(subject, target, &stubs, &stubs);
    }
}

#[test]
fn clients_and_servers_in_c_understand_each_other() {
    understand_each_other("mach64");
}

#[test]
fn clients_and_servers_in_c_understand_each_other_with_narrow_descriptors() {
    understand_each_other("mach64-2022");
}

#[test]
fn clients_and_servers_in_c_of_the_untyped_dialect_understand_each_other() {
    for subject in ["data", "trailers"] {
        let stubs = Stubs::ours(subject, "untyped64");
        build_and_run(subject, "untyped64", &stubs, &stubs);
    }
}
