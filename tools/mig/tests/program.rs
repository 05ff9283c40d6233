//! The `mig` program: options, output files and exit status.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GOOD: &str = "#include \"types.defs\"\nsubsystem sample 100;\n/* Adds. */\nroutine add(port : mach_port_t; a : int; out b : int);\n\
                    simpleroutine go(port : mach_port_t);\n";
const TYPES: &str = "#ifdef WIDE\ntype mach_port_t = MACH_MSG_TYPE_MAKE_SEND;\n#else\n\
                     type mach_port_t = MACH_MSG_TYPE_COPY_SEND;\n#endif\n";

/// Creates an empty directory and writes `text` to `sample.defs` there.
fn directory(name: &str, text: &str) -> PathBuf {
    let directory = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests"))
        .join("../../target/tmp/mig")
        .join("program")
        .join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("sample.defs"), text).unwrap();
    fs::write(directory.join("types.defs"), TYPES).unwrap();
    directory
}

fn mig(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
    command.env_remove("CPP").env_remove("CC");
    command.current_dir(directory).args(arguments).output().unwrap()
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !["sample.defs", "types.defs"].contains(&name.as_str()));
    names.sort();
    names
}

fn succeed(directory: &Path, arguments: &[&str]) {
    let output = mig(directory, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the program, which must fail without writing a file. Returns its error output.
fn fail(directory: &Path, arguments: &[&str]) -> String {
    let before = files(directory);
    let output = mig(directory, arguments);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(files(directory), before, "a file was left");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_definition_becomes_the_usual_files() {
    let directory = directory("usual", GOOD);
    succeed(&directory, &["sample.defs"]);
    assert_eq!(files(&directory), ["sample.h", "sampleServer.c", "sampleUser.c"]);
    let user = fs::read_to_string(directory.join("sampleUser.c")).unwrap();
    assert!(user.contains("#include \"sample.h\""));
}

#[test]
fn options_name_the_files() {
    let directory = directory("named", GOOD);
    succeed(&directory, &["-n", "-list", "names", "sample.defs"]);
    assert_eq!(files(&directory), ["names"]);
    assert_eq!(
        fs::read_to_string(directory.join("names")).unwrap(),
        "sample 100 add 0 100 200\nsample 100 go 1 101 0\n"
    );
    succeed(
        &directory,
        &["-user", "/dev/null", "-server", "s.c", "-sheader", "s.h", "-header", "u.h", "sample.defs"],
    );
    assert_eq!(files(&directory), ["names", "s.c", "s.h", "u.h"]);
    succeed(
        &directory,
        &["-page", "page.md", "-l4-rust", "direct.rs", "-l4-c", "direct.h", "-layout", "l", "sample.defs"],
    );
    assert_eq!(files(&directory), ["direct.h", "direct.rs", "l", "names", "page.md", "s.c", "s.h", "u.h"]);
    assert!(fs::read_to_string(directory.join("page.md")).unwrap().contains("\nAdds.\n"));
}

#[test]
fn each_function_of_the_client_can_have_its_own_file() {
    let directory = directory("separate", GOOD);
    succeed(
        &directory,
        &["-i", "part_", "-prefix", "my_", "-server", "/dev/null", "-header", "u.h", "sample.defs"],
    );
    assert_eq!(files(&directory), ["part_add.c", "part_go.c", "u.h"]);
    assert!(fs::read_to_string(directory.join("part_add.c")).unwrap().contains("kern_return_t my_add\n"));
    assert!(fs::read_to_string(directory.join("u.h")).unwrap().contains("kern_return_t my_go\n"));
}

#[test]
fn the_server_can_have_a_table_of_names() {
    let directory = directory("symbols", GOOD);
    succeed(&directory, &["-n", "-s", "-server", "s.c", "sample.defs"]);
    let server = fs::read_to_string(directory.join("s.c")).unwrap();
    assert!(
        server.contains("{ \"add\", 100, (void *) _Xadd },")
            && server.contains("int _sampleSymTabEnd = 102;")
    );
}

#[test]
fn other_options_go_to_the_preprocessor() {
    let directory = directory("preprocessor", GOOD);
    succeed(&directory, &["-DWIDE", "-I", ".", "-layout", "wide", "sample.defs"]);
    succeed(&directory, &["-layout", "plain", "sample.defs"]);
    let user = |option: &str| {
        succeed(&directory, &[option, "-n", "-user", "u.c", "sample.defs"]);
        fs::read_to_string(directory.join("u.c")).unwrap()
    };
    assert!(user("-DWIDE").contains("MACH_MSGH_BITS(MACH_MSG_TYPE_MAKE_SEND,"));
    assert!(user("-q").contains("MACH_MSGH_BITS(MACH_MSG_TYPE_COPY_SEND,"));
}

#[test]
fn make_can_have_the_dependencies() {
    let directory = directory("dependencies", GOOD);
    succeed(&directory, &["-MD", "-n", "-user", "u.c", "-header", "u.h", "sample.defs"]);
    assert_eq!(files(&directory), ["sample-mig.d", "u.c", "u.h"]);
    let rule = fs::read_to_string(directory.join("sample-mig.d")).unwrap();
    assert!(rule.starts_with("u.h u.c: ") && rule.contains("types.defs"), "{rule}");
}

#[test]
fn an_error_leaves_no_file_and_says_where_it_is() {
    let bad = GOOD.replace("out b : int", "out b : integer");
    let directory = directory("error", &bad);
    let said = fail(&directory, &["sample.defs"]);
    assert!(said.contains("sample.defs:4:50") && said.contains("type `integer` is not defined"), "{said}");
    assert!(said.ends_with("mig: sample.defs: 1 error\n"), "{said}");
    // A failing run leaves an existing output file unchanged.
    fs::write(directory.join("u.c"), "old").unwrap();
    fail(&directory, &["-n", "-user", "u.c", "sample.defs"]);
    assert_eq!(fs::read_to_string(directory.join("u.c")).unwrap(), "old");
}

/// For every invalid definition the program exits with status 1, names a line and a column, and
/// writes no file.
#[test]
fn no_bad_definition_leaves_a_file() {
    let tests = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests")).join("tests");
    let outputs = ["-user", "u.c", "-server", "s.c", "-header", "h.h", "-sheader", "s.h", "-list", "l"];
    let more = ["-page", "p.md", "-layout", "y", "-l4-c", "d.h", "-l4-rust", "d.rs", "-rust", "m.rs"];
    let (directory, mut count) = (directory("bad", GOOD), 0);
    for entry in ["bad", "bad_rust"].iter().flat_map(|name| fs::read_dir(tests.join(name)).unwrap()) {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "defs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let dialect = if name.starts_with("untyped") { "untyped" } else { "typed" };
        // The definition comes from the standard input, which the program does not preprocess: the
        // preprocessor would refuse some of these definitions.
        let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
        command.current_dir(&directory).args(["-dialect", dialect]).args(outputs).args(more);
        let output = command.stdin(fs::File::open(&path).unwrap()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert_eq!(files(&directory), [""; 0], "{name}");
        let place = said.lines().find_map(|line| line.trim().strip_prefix("--> ")).expect("a place");
        let numbers: Vec<&str> = place.rsplit(':').take(2).collect();
        assert!(numbers.iter().all(|number| number.parse::<u32>().is_ok()), "{name}: {place}");
        count += 1;
    }
    assert!(count > 12, "{count}");
}

#[test]
fn what_cannot_be_written_leaves_no_file() {
    let directory = directory("unwritable", GOOD);
    let said = fail(&directory, &["-user", "u.c", "-server", "no/such/directory/s.c", "sample.defs"]);
    assert!(said.contains("cannot write no/such/directory/s.c"), "{said}");
}

#[test]
fn mistakes_of_the_command_line_are_errors() {
    let directory = directory("mistakes", GOOD);
    assert!(fail(&directory, &["-user"]).contains("-user needs a value"));
    assert!(fail(&directory, &["-target", "vax", "sample.defs"]).contains("there is no target `vax`"));
    assert!(fail(&directory, &["-dialect", "c", "sample.defs"]).contains("there is no dialect `c`"));
    assert!(fail(&directory, &["missing.defs"]).contains("missing.defs: there is no such file"));
    assert!(
        fail(&directory, &["-cc", "no-such-program", "sample.defs"]).contains("cannot run the preprocessor")
    );
    assert!(fail(&directory, &["types.defs"]).contains("no `subsystem`"));
    fs::write(directory.join("sample.defs"), "#error stop\n").unwrap();
    assert!(fail(&directory, &["sample.defs"]).contains("the preprocessor failed"));
    succeed(&directory, &["-check", "types.defs"]);
    assert!(files(&directory).is_empty());
}

#[test]
fn a_preprocessed_definition_can_come_from_the_standard_input() {
    let directory = directory("stdin", GOOD);
    let text = format!("# 7 \"there.defs\"\n{}", TYPES.lines().nth(3).unwrap());
    fs::write(
        directory.join("input"),
        format!("{text}\nsubsystem s 1; routine r(p : mach_port_t; x : y);\n"),
    )
    .unwrap();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
        command.current_dir(&directory).args(["-n", "-list", "l"]);
        command.stdin(fs::File::open(directory.join("input")).unwrap()).output().unwrap()
    };
    let output = run();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there.defs:8:47"));
    fs::write(directory.join("input"), format!("{text}\nsubsystem s 1; routine r(p : mach_port_t);\n"))
        .unwrap();
    assert!(run().status.success());
    assert_eq!(fs::read_to_string(directory.join("l")).unwrap(), "s 1 r 0 1 101\n");
}

/// A makefile in the form in which programs use other compilers of the language.
const MAKEFILE: &str = "
MIGFLAGS = -q -DWIDE
CFLAGS = -std=gnu11 -Wall -Werror -fno-strict-aliasing

all: sampleUser.o sampleServer.o

sampleUser.c sampleServer.c sample.h sample_server.h: sample.defs types.defs
\t$(MIG) $(MIGFLAGS) -maxonstack 1024 -user sampleUser.c -server sampleServer.c \\
\t\t-header sample.h -sheader sample_server.h sample.defs

%.o: %.c
\t$(CC) $(CFLAGS) -c -o $@ $<
";

#[test]
fn a_makefile_builds_with_it() {
    let tests = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests")).join("tests");
    let c = |name: &str| tests.join(name).display().to_string();
    for (dialect, headers) in [("typed", c("c")), ("untyped", c("c/untyped"))] {
        let types = "#ifdef WIDE\ntype int = MACH_MSG_TYPE_INTEGER_32;\n#endif\n";
        let directory = directory(&format!("make-{dialect}"), GOOD);
        fs::write(directory.join("types.defs"), format!("{types}{TYPES}")).unwrap();
        fs::write(directory.join("Makefile"), MAKEFILE).unwrap();
        let mut make = Command::new("make");
        make.current_dir(&directory).env_remove("CPP").env_remove("MAKEFLAGS").arg("CC=gcc");
        make.arg(format!("MIG={} -dialect {dialect}", env!("CARGO_BIN_EXE_mig")));
        make.arg(format!("CFLAGS=-std=gnu11 -Wall -Werror -I{headers} -I{}", c("c")));
        let output = make.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(directory.join("sampleServer.o").is_file());
    }
}
