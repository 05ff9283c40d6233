//! Compares this compiler with GNU's on every interface definition of GNU Mach. `tests/original.sh`
//! fetches both and runs this test.

#[path = "../programs/mod.rs"]
mod programs;
mod stubs;

use mig::interface::{Interface, Routine};
use mig::ipc_type::IpcType;
use mig::layout::{Complexity, ItemKind, Message};
use mig::list;
use mig::target::Target;
use mig::types::Placement;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use stubs::Stubs;

/// The directory with the unpacked packages.
fn root() -> PathBuf {
    PathBuf::from(std::env::var("MIG_ORIGINAL").expect("tests/original.sh sets MIG_ORIGINAL"))
}

fn target() -> Target {
    Target::by_name("mach64-2022").unwrap()
}

/// The paths of GNU Mach's definitions.
fn definitions() -> Vec<PathBuf> {
    let include = root().join("usr/include/x86_64-linux-gnu");
    let mut found = Vec::new();
    let mut directories = vec![include];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "defs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() >= 25, "GNU Mach has 25 interface files, here are {}", found.len());
    found
}

/// The preprocessor's output for a definition, with the options of GNU's script.
fn preprocessed(path: &Path, options: &[&str]) -> String {
    let include = root().join("usr/include/x86_64-linux-gnu");
    let mut command = Command::new("gcc");
    command.args(["-E", "-x", "c", "-undef", "-ansi", "-nostdinc"]).args(options);
    command.arg("-I").arg(&include).arg("-I").arg(include.join("mach")).arg(path);
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Compiles a definition with both compilers; none if GNU's compiler refuses it.
fn both(name: &str, text: &str) -> Option<(Interface, Stubs)> {
    let ours = mig::compile(target(), name, text);
    let theirs = Stubs::of(&root(), name, text);
    match (ours.interface.is_some(), theirs.is_some()) {
        (true, true) => Some((ours.interface.unwrap(), theirs.unwrap())),
        (true, false) => {
            // GNU's compiler refuses a definition without a subsystem, such as one of types alone.
            assert!(!ours.interface.unwrap().has_subsystem, "{name}: only this compiler takes it");
            None
        }
        (false, true) => panic!("{name}: only the original takes it:\n{}", ours.report()),
        (false, false) => None,
    }
}

fn compare_message(which: &str, message: &Message, theirs: &stubs::Message) {
    let sizes = (message.minimum, message.is_fixed());
    assert_eq!(sizes, (theirs.size, theirs.fixed), "{which}: sizes");
    let names: Vec<&str> = message.items.iter().map(|item| item.name.as_str()).collect();
    let their_names: Vec<&str> = theirs.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, their_names, "{which}: order");
    for (item, theirs) in message.items.iter().zip(&theirs.items) {
        if item.kind == ItemKind::ReturnCode {
            continue;
        }
        let descriptor = item.descriptor.unwrap();
        let name = IpcType::in_c(descriptor.sent);
        // GNU's compiler writes 0 as the number of elements of a fixed-size array out of line.
        let fixed_out_of_line = descriptor.placement == Placement::OutOfLine && !descriptor.variable;
        let count = if fixed_out_of_line { theirs.count } else { descriptor.count };
        let inline = descriptor.placement != Placement::OutOfLine;
        assert_eq!(
            (name.as_str(), descriptor.bits, count, inline, descriptor.long),
            (theirs.sent.as_str(), theirs.bits, theirs.count, theirs.inline, theirs.long),
            "{which}: {}",
            item.name
        );
    }
}

fn compare(interface: &Interface, stubs: &Stubs) -> usize {
    assert_eq!(list::names(interface), stubs.list);
    for routine in interface.present() {
        let name = |side: &str| format!("{} {} {side}", interface.name, routine.name);
        compare_message(&name("request"), &routine.request, &stubs.request(&user_name(interface, routine)));
        if let Some(reply) = &routine.reply {
            compare_message(
                &name("reply"),
                reply,
                &stubs.reply(&routine.name, &user_name(interface, routine)),
            );
        }
        let complex = stubs.is_complex(&user_name(interface, routine));
        assert_eq!(routine.request.complexity == Complexity::Complex, complex, "{}", name("complexity"));
    }
    interface.present().count()
}

fn user_name(interface: &Interface, routine: &Routine) -> String {
    format!("{}{}", interface.user_prefix, routine.name)
}

#[test]
#[ignore = "needs GNU's compiler: tests/original.sh"]
fn every_interface_of_gnu_mach_has_the_ids_sizes_and_order_of_the_original() {
    let (mut files, mut routines) = (0, 0);
    for options in [&["-DKERNEL_USER"][..], &["-DKERNEL_SERVER", "-DKERNEL"], &[]] {
        for path in definitions() {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if let Some((interface, stubs)) = both(&name, &preprocessed(&path, options)) {
                routines += compare(&interface, &stubs);
                files += 1;
            }
        }
    }
    println!("{files} files, {routines} routines are the same");
    assert!(files >= 54 && routines > 400, "{files} files, {routines} routines");
}

#[test]
#[ignore = "needs GNU's compiler: tests/original.sh"]
fn every_construct_of_the_typed_dialect_has_the_sizes_and_order_of_the_original() {
    let directory = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests"))
        .join("tests/good/typed");
    let mut routines = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "defs") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let (interface, stubs) = both(&name, &preprocessed(&path, &[])).expect("a subsystem");
            routines += compare(&interface, &stubs);
        }
    }
    assert!(routines >= 19, "{routines} routines");
}

/// The stubs that GNU's compiler writes for a definition of `good/typed`.
fn originals(subject: &str) -> programs::Stubs {
    let directory = root().join("programs").join(subject);
    std::fs::create_dir_all(&directory).unwrap();
    let text = preprocessed(&programs::tests().join(format!("good/typed/{subject}.defs")), &[]);
    let input = directory.join("in.defs");
    std::fs::write(&input, text).unwrap();
    let mut command = Command::new(root().join("usr/lib/mig/x86_64-gnu-migcom"));
    command.current_dir(&directory).args(programs::files(subject));
    command.stdin(std::fs::File::open(input).unwrap());
    programs::success(command.output().unwrap(), subject);
    programs::Stubs { directory, ours: false }
}

#[test]
#[ignore = "needs GNU's compiler: tests/original.sh"]
fn clients_and_servers_talk_to_those_of_the_original() {
    for subject in programs::SUBJECTS {
        let (ours, theirs) = (programs::Stubs::ours(subject, "mach64-2022"), originals(subject));
        programs::build_and_run(subject, "mach64-2022", &ours, &theirs);
        programs::build_and_run(subject, "mach64-2022", &theirs, &ours);
    }
}
