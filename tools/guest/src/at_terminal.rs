//! Tests of commands at a terminal: `./mac run -- COMMAND` itself runs at a pseudo-terminal, whose
//! other end the test is.

use super::piped::{Expected, Piped};
use anyhow::{Context, Result, bail};
use mac_build::scratch::Guard;
use mac_machine::patience::Clock;
use mac_machine::suites::Run;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The size of the terminal's window.
const ROWS: u16 = 31;
const COLUMNS: u16 = 97;
/// How often the limit of time is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the command at a terminal. Returns what was wrong. What the terminal shows is kept in
/// `log`.
pub(super) fn play(test: &Piped, run: &Run, log: &Path) -> Result<Vec<String>> {
    let Expected::Text(last) = &test.output else { bail!("at a terminal, the output is a text") };
    let (mut keyboard, terminal) = pair()?;
    let screen = shown(keyboard.try_clone()?);
    let mut mac = Command::new(std::env::current_exe().context("the path of this program")?);
    mac.args(["run", "--image", run.suite.image.as_deref().unwrap_or_default()]);
    mac.args(["--mode", run.mode.name(), "--memory", &run.machine.memory, "--"]).args(&test.command);
    mac.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal.try_clone()?);
    let mut child = Guard(mac.spawn().context("starting ./mac run")?);
    let clock = Clock::of(child.0.id());
    let mut all = Vec::new();
    let mut wrong = Vec::new();
    let mut seen = 0;
    let steps = test.terminal.iter().map(|exchange| (&exchange.shows, exchange.typed.as_str()));
    'steps: for (text, typed) in steps.chain([(last, "")]) {
        loop {
            if let Some(at) = find(&all[seen..], text.as_bytes()) {
                seen += at + text.len();
                break;
            }
            match screen.recv_timeout(LOOK) {
                Ok(bytes) => all.extend(bytes),
                Err(RecvTimeoutError::Timeout) if clock.elapsed() < run.limit && is_running(&mut child)? => {}
                Err(_) => {
                    wrong.push(format!("{text:?} is not shown after: {}", all[seen..].escape_ascii()));
                    break 'steps;
                }
            }
        }
        keyboard.write_all(typed.as_bytes()).context("typing")?;
    }
    if wrong.is_empty() {
        let status = child.0.wait().context("waiting for ./mac run")?;
        if status.code() != Some(test.status) {
            wrong.push(format!("./mac run ended with {status} instead of {}", test.status));
        }
        let modes = tcgetattr(&terminal).context("the terminal's settings")?.local_modes;
        if !modes.contains(LocalModes::ICANON | LocalModes::ECHO) {
            wrong.push("the terminal is not as it was before".into());
        }
    }
    std::fs::write(log, &all).with_context(|| format!("writing {}", log.display()))?;
    Ok(wrong)
}

fn is_running(child: &mut Guard) -> Result<bool> {
    Ok(child.0.try_wait()?.is_none())
}

/// A pseudo-terminal: the end of its user, and that of programs.
fn pair() -> Result<(File, File)> {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).context("making a terminal")?;
    grantpt(&user)?;
    unlockpt(&user)?;
    let name = ptsname(&user, Vec::new())?;
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let programs = File::options().read(true).write(true).open(path).context("opening the terminal")?;
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&programs, size).context("setting the terminal's size")?;
    Ok((File::from(user), programs))
}

/// What the terminal shows, until its programs have closed it.
fn shown(mut terminal: File) -> Receiver<Vec<u8>> {
    let (sender, screen) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    screen
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|part| part == text)
}
