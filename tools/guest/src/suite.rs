//! Guest tests: scripts on an image, and what each printed compared with what it prints under
//! Debian's own kernel.

use super::piped::Piped;
use super::script::Script;
use super::session::{self, Kernel, Log, Printed, Session, Start};
use super::{Request, go, linux, make, power_cuts};
use anyhow::{Context, Result, bail};
use mac_build::scratch::{Guard, Scratch, file_name};
use mac_build::{command, guests, tree};
use mac_machine::boots::Verdict;
use mac_machine::qemu::Machine;
use mac_machine::shares::{Share, Shared};
use mac_machine::suites::{Run, Suite};
use mac_machine::tap::{self, Outcome, Test};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

/// How many lines of the log a failure report shows.
const TAIL: usize = 60;

/// Where scripts and recordings are.
pub(super) fn directory() -> PathBuf {
    tree::root().join("tests/guests")
}

/// The file that holds what a script prints under Debian's own kernel.
pub(super) fn recording(image: &str, test: &str) -> PathBuf {
    directory().join("expected").join(image).join(format!("{test}.txt"))
}

/// What came of one boot.
pub(super) struct Outcomes {
    /// Each script that has ended, in order, with what it printed and its status.
    pub(super) ended: Vec<(String, String)>,
    /// Why it stopped before all were done.
    pub(super) trouble: Option<String>,
    seconds: f64,
    log: PathBuf,
}

/// Boots a suite on Macadamia and compares.
pub(crate) fn run(run: &Run) -> Result<Verdict> {
    let outcomes = boot(run, Kernel::Macadamia)?;
    let image = run.suite.image.as_deref().unwrap_or_default();
    let mut verdict = Verdict { seconds: outcomes.seconds, log: outcomes.log.clone(), ..Verdict::default() };
    for name in &run.suite.guest {
        let (id, sentence) = about(name)?;
        let expected = fs::read_to_string(recording(image, name))
            .with_context(|| format!("what {name} prints has not been recorded: ./mac record"))?;
        let printed = outcomes.ended.iter().find(|(ended, _)| ended == name).map(|(_, printed)| printed);
        let outcome = if printed == Some(&expected) { Outcome::Passed } else { Outcome::Failed };
        if let Some(printed) = printed.filter(|_| outcome == Outcome::Failed) {
            verdict.tail.push(format!("{name}: what Linux prints (-) and what was printed (+):"));
            verdict.tail.extend(difference(run, name, image, printed)?);
        }
        verdict.tests.push(Test { id, sentence, outcome });
    }
    if let Some(trouble) = outcomes.trouble {
        verdict.failures.push(trouble);
        let log = fs::read(&outcomes.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(TAIL)..];
        verdict.tail.extend(session::explained(last.iter().copied()));
    }
    Ok(verdict)
}

/// The first lines in which what was printed differs from the recording.
fn difference(run: &Run, name: &str, image: &str, printed: &str) -> Result<Vec<String>> {
    let file =
        tree::target().join("test-logs").join(format!("{}.txt", file_name(&format!("{}-{name}", run.name))));
    fs::write(&file, printed).with_context(|| format!("cannot write {}", file.display()))?;
    let mut diff = Command::new("diff");
    let output = diff
        .args(["-a", "-U1"])
        .arg(recording(image, name))
        .arg(&file)
        .output()
        .context("cannot start diff")?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().skip(2).take(30).map(String::from).collect())
}

/// A script's test id and sentence, from its second line: `# GUEST0001 what it shows`.
fn about(name: &str) -> Result<(String, String)> {
    let path = directory().join("scripts").join(format!("{name}.sh"));
    let text = tree::read(&path)?;
    let line = text.lines().nth(1).and_then(|line| line.strip_prefix("# ")?.split_once(' '));
    match line {
        Some((id, sentence)) if tap::is_id(id) => Ok((id.to_string(), sentence.to_string())),
        _ => bail!("{}: the second line is not `# GUEST0001 what it shows`", path.display()),
    }
}

/// The ids of a suite's scripts and piped commands.
pub fn ids(suite: &Suite) -> Result<Vec<String>> {
    let guests = suite.guest.iter().map(|name| Ok(about(name)?.0));
    let interactive = suite.interactive.iter().map(|name| Ok(Script::read(name)?.id));
    let piped = suite.piped.iter().map(|name| Ok(Piped::read(name)?.id));
    guests.chain(interactive).chain(piped).collect()
}

/// The image of a suite for a kernel, with the scripts and the programs that they run. `share`: the
/// files of the directory that would be shared are in the image.
fn image(suite: &Suite, kernel: Kernel, share: bool) -> Result<PathBuf> {
    let mut request = Request::of(suite);
    if kernel == Kernel::Linux {
        // The other system's drivers are servers.
        request.files.extend(linux::modules(suite)?);
    }
    request.directories.push(("tests".into(), directory().join("scripts")));
    if share {
        request.directories.push((SHARE.into(), directory().join("share")));
    }
    for (name, file) in guests::tests()?.into_iter().chain([("go-program".to_string(), go::program()?)]) {
        request.files.push((format!("tests/bin/{name}"), file));
    }
    Ok(make(&request)?.path)
}

/// The directory of the guest where a directory of the host is.
const SHARE: &str = "mnt/share";

/// A directory that is shared with a guest, and the program that changes it on the host meanwhile.
struct SharedDirectory {
    path: PathBuf,
    _host: Guard,
}

impl SharedDirectory {
    fn make(scratch: &Path, machine: &mut Machine) -> Result<SharedDirectory> {
        let path = scratch.join("shared");
        let mut copy = Command::new("cp");
        command::output(copy.arg("-R").arg(directory().join("share")).arg(&path))?;
        let share = Share { directory: path.clone(), place: format!("/{SHARE}") };
        Shared::of(&[share])?.add_to(machine);
        let host = Command::new("sh").arg("host.sh").current_dir(&path).spawn().context("starting sh")?;
        Ok(SharedDirectory { path, _host: Guard(host) })
    }

    /// How the list of files that the guest has printed differs from that of the host's files.
    fn difference(&self, printed: &[u8]) -> Result<Option<String>> {
        let mut list = Command::new("sh");
        let host = command::output(list.arg("list.sh").current_dir(&self.path))?;
        let printed = String::from_utf8_lossy(printed).replace('\r', "");
        if printed.contains(&host) {
            return Ok(None);
        }
        let missing: Vec<&str> = host.lines().filter(|line| !printed.contains(line)).collect();
        Ok(Some(format!("the host has other files than the guest:\n{}", missing.join("\n"))))
    }
}

/// The image with the zeros that the suite wants in it.
fn filled(image: PathBuf, run: &Run, scratch: &Path) -> Result<PathBuf> {
    if run.suite.filling == 0 {
        return Ok(image);
    }
    let path = scratch.join(super::image::MODULE);
    fs::copy(&image, &path).with_context(|| format!("copying {}", image.display()))?;
    let mut file = fs::File::options().write(true).open(&path).context("opening the copy of the image")?;
    super::archive::append_zeros(&mut file, run.suite.filling)?;
    Ok(path)
}

/// Boots a suite and collects what its scripts print.
pub(super) fn boot(run: &Run, kernel: Kernel) -> Result<Outcomes> {
    let mut command = vec!["/tests/run".to_string()];
    command.extend(run.suite.guest.iter().cloned());
    let scratch = Scratch::new(&format!("{}-image", run.name))?;
    let mut machine = run.machine.clone();
    let recorded = match machine.disk.as_mut().filter(|disk| disk.power_cuts > 0) {
        Some(disk) if kernel == Kernel::Macadamia => {
            let log = scratch.0.join("disk.log");
            disk.log = Some(log.clone());
            Some((log, disk.power_cuts, disk.size << 20))
        }
        _ => None,
    };
    let shared = match (run.suite.share, kernel) {
        (true, Kernel::Macadamia) => Some(SharedDirectory::make(&scratch.0, &mut machine)?),
        _ => None,
    };
    let start = Start {
        kernel,
        mode: run.mode,
        image: Some(filled(
            image(&run.suite, kernel, run.suite.share && shared.is_none())?,
            run,
            &scratch.0,
        )?),
        command,
        streams: Default::default(),
        greet: false,
        environment: Vec::new(),
        machine,
    };
    let log = tree::target().join("test-logs").join(format!("{}.log", file_name(&run.name)));
    fs::create_dir_all(log.parent().unwrap_or(Path::new("/")))?;
    let started = Instant::now();
    let mut session = start.start(&run.name)?;
    let (printed, status) = watch(&mut session, run, &log)?;
    let mut trouble = match status {
        Ok(0) => None,
        Ok(status) => Some(format!("the tests ended with status {status}")),
        Err(trouble) => Some(trouble),
    };
    drop(session);
    if let Some(shared) = shared {
        trouble = trouble.or(shared.difference(&printed)?);
    }
    if let Some((log, cuts, size)) = recorded.filter(|_| trouble.is_none()) {
        trouble = power_cuts::check(&log, size, cuts).err().map(|error| format!("{error:#}"));
    }
    Ok(Outcomes { ended: ended(&printed), trouble, seconds: started.elapsed().as_secs_f64(), log })
}

/// Reads both ports until the machine ends, keeping them in the log file; returns what the terminal
/// showed, and the status with which the command ended, or why there is none.
pub(super) fn watch(session: &mut Session, run: &Run, log: &Path) -> Result<(Vec<u8>, Result<i32, String>)> {
    let mut file = fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut said = Log::default();
    let mut terminal = Vec::new();
    loop {
        match session.clock.receive(&session.printed, run.quiet) {
            Ok(Printed::Terminal(bytes)) => {
                file.write_all(&bytes)?;
                terminal.extend_from_slice(&bytes);
            }
            Ok(Printed::Log(bytes)) => {
                file.write_all(&bytes)?;
                said.take(&bytes);
            }
            Err(RecvTimeoutError::Timeout) if session.stands_still() => {
                file.write_all(&session.interrogate())?;
                return Ok((terminal, Err(format!("hung: nothing printed for {} s", run.quiet.as_secs()))));
            }
            // A script may be at work for longer than that before it prints.
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if session.clock.elapsed() > run.limit {
            file.write_all(&session.interrogate())?;
            return Ok((terminal, Err(format!("still running after {} s", run.limit.as_secs()))));
        }
    }
    let status = session.status(&said).map_err(|error| format!("{error:#}"));
    Ok((terminal, status))
}

/// What stands between the marks that `tests/guests/scripts/run` prints: name, and output with
/// status.
fn ended(terminal: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(terminal).replace('\r', "");
    let mut rest = text.as_str();
    let mut ended = Vec::new();
    while let Some((_, behind)) = rest.split_once("=== begin ") {
        let Some((name, behind)) = behind.split_once('\n') else { break };
        let Some((output, behind)) = behind.split_once(&format!("\n=== end {name} ")) else { break };
        let Some((status, behind)) = behind.split_once('\n') else { break };
        ended.push((name.to_string(), format!("{output}\nstatus {status}\n")));
        rest = behind;
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_machine::suites;

    #[test]
    fn marks_divide_the_output() {
        let printed = b"noise\r\n=== begin one\r\na\r\nb\r\n\r\n=== end one 0\r\n=== begin two\r\n=== not a mark\r\n\n=== end two 3\n";
        let ended = ended(printed);
        assert_eq!(ended[0], ("one".to_string(), "a\nb\n\nstatus 0\n".to_string()));
        assert_eq!(ended[1], ("two".to_string(), "=== not a mark\n\nstatus 3\n".to_string()));
        assert_eq!(ended.len(), 2);
    }

    #[test]
    fn the_book_lists_every_package_that_is_used() {
        let book = fs::read_to_string(tree::root().join("docs/src/packages.md")).unwrap();
        for suite in suites::read(suites::GUESTS).unwrap() {
            for test in suite.guest.iter().filter(|test| test.starts_with("package/")) {
                let (_, sentence) = about(test).unwrap();
                let (package, what) = sentence.split_once(": ").unwrap();
                let row = format!("| `{package}` | {what} |");
                assert!(book.contains(&row), "{row} is not in docs/src/packages.md");
            }
        }
    }

    #[test]
    fn every_test_is_described_and_recorded() {
        let mut names = std::collections::HashMap::new();
        for suite in suites::read(suites::GUESTS).unwrap() {
            for test in &suite.guest {
                let (id, _) = about(test).unwrap();
                let other = names.insert(id, test.clone());
                assert!(other.is_none_or(|other| other == *test), "{test}: its id is another test's, too");
                let recording = recording(suite.image.as_deref().unwrap(), test);
                let is_there = suite.pending.is_some() || recording.is_file();
                assert!(is_there, "{} is missing: ./mac record", recording.display());
            }
        }
    }
}
