//! The host as the other side of the network of a test's machine: it serves files to the machine,
//! connects to its ports, and runs programs that do.

use super::packages;
use super::session::Session;
use anyhow::{Context, Result, bail, ensure};
use mac_build::scratch::Scratch;
use mac_machine::network::port_of_host;
use mac_machine::qemu::Machine;
use mac_machine::suites::Suite;
use serde::Deserialize;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The longest answer that is read before it counts as wrong.
const LONGEST: usize = 1 << 24;

/// How often a connection that waits for an answer looks whether another one has failed.
const LOOK: Duration = Duration::from_millis(200);

/// What the host does in a step of a script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Action {
    /// A command for the host's shell, in the directory whose files the machine gets. `PORT_80` is
    /// the host's port for port 80 of the machine. It must end with status 0.
    Run(String),
    /// Connections with questions and answers.
    Ask(Questions),
}

/// Questions to a port of the machine, and the answers that must come.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Questions {
    /// The port of the machine.
    port: u16,
    /// What is sent.
    question: String,
    /// What the answer begins with. Without it, nothing may come before what the answer ends with.
    begins: Option<String>,
    /// What the answer ends with, before the content of `file`.
    ends: String,
    /// A file of the directory that is served, with whose content the answer ends.
    file: Option<String>,
    /// How many questions are asked in all.
    times: usize,
    /// How many of them one connection has, one after the other.
    each: usize,
    /// How many connections there are at the same time.
    together: usize,
    /// Whether the machine closes the connection after the last answer.
    #[serde(default)]
    closes: bool,
}

/// The host's side of a machine's network.
pub(super) struct Host {
    /// The directory whose files the machine gets at port 80 of 10.0.2.100.
    served: Scratch,
    /// Ports of the machine.
    published: Vec<u16>,
}

impl Host {
    /// Makes the directory that is served, with the suite's packages in it, and opens the network
    /// of a machine that is to be started.
    pub(super) fn make(suite: &Suite, machine: &mut Machine) -> Result<Host> {
        let served = Scratch::new("served")?;
        if !suite.repository.is_empty() {
            packages::serve(&suite.repository, &served.0)?;
        }
        machine.open_network(&suite.publish, &served.0)?;
        Ok(Host { served, published: suite.publish.clone() })
    }

    /// Begins an action. The result comes when it has ended.
    pub(super) fn begin(&self, action: &Action, session: &Session) -> Result<Receiver<Result<()>>> {
        let usernet = session.monitor()?.ask("info usernet")?;
        let host = |&guest: &u16| {
            let port = port_of_host(&usernet, guest);
            Ok((guest, port.with_context(|| format!("QEMU has no port for {guest}:\n{usernet}"))?))
        };
        let ports = self.published.iter().map(host).collect::<Result<Vec<_>>>()?;
        let (action, directory) = (action.clone(), self.served.0.clone());
        let (sender, result) = channel();
        std::thread::spawn(move || sender.send(perform(&action, &ports, directory)));
        Ok(result)
    }
}

fn perform(action: &Action, ports: &[(u16, u16)], directory: PathBuf) -> Result<()> {
    match action {
        Action::Run(script) => run(script, ports, directory),
        Action::Ask(questions) => {
            let port = ports.iter().find(|(guest, _)| *guest == questions.port);
            let (_, port) = port.context("the suite does not publish this port")?;
            let mut ends = questions.ends.clone().into_bytes();
            if let Some(file) = &questions.file {
                ends.extend(fs::read(directory.join(file)).with_context(|| format!("reading {file}"))?);
            }
            questions.ask(*port, &ends)
        }
    }
}

/// Runs a command of the host.
fn run(script: &str, ports: &[(u16, u16)], directory: PathBuf) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(directory).stdin(Stdio::null());
    shell.envs(ports.iter().map(|(guest, host)| (format!("PORT_{guest}"), host.to_string())));
    let output = shell.output().context("cannot start sh")?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{script}: {}\n{}", output.status, String::from_utf8_lossy(&said));
    Ok(())
}

impl Questions {
    /// Asks all questions at a port of the host. The first answer that is wrong ends it.
    fn ask(&self, port: u16, ends: &[u8]) -> Result<()> {
        ensure!(
            self.each > 0 && self.times.is_multiple_of(self.each),
            "each connection has `each` questions"
        );
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let connections = self.times / self.each;
        let one_after_the_other = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= connections || failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if let Err(error) = self.connection(port, ends, &failed) {
                    failed.store(true, Ordering::Relaxed);
                    return Err(error.context(format!("connection {number} of {connections}")));
                }
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.together).map(|_| scope.spawn(one_after_the_other)).collect();
            let joined = threads.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(_) => bail!("a thread that asks has panicked"),
            });
            joined.collect::<Vec<_>>().into_iter().collect()
        })
    }

    /// One connection. It is given up when another one has failed.
    fn connection(&self, port: u16, ends: &[u8], failed: &AtomicBool) -> Result<()> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        let read = |mut stream: &TcpStream, part: &mut [u8]| {
            loop {
                match stream.read(part) {
                    Err(error) if is_timeout(&error) && !failed.load(Ordering::Relaxed) => {}
                    result => return result,
                }
            }
        };
        let begins = self.begins.as_deref().unwrap_or_default().as_bytes();
        let mut answer = Vec::new();
        for number in 0..self.each {
            stream.write_all(self.question.as_bytes())?;
            answer.clear();
            let mut part = [0; 16384];
            while !(answer.len() >= begins.len() + ends.len() && answer.ends_with(ends)) {
                let length = read(&stream, &mut part).with_context(|| format!("question {number}"))?;
                answer.extend_from_slice(&part[..length]);
                if length == 0 || answer.len() > LONGEST {
                    bail!("the answer to question {number} is wrong: {}", shown(&answer));
                }
            }
            let is_whole = self.begins.is_some() || answer.len() == ends.len();
            ensure!(answer.starts_with(begins) && is_whole, "a wrong answer: {}", shown(&answer));
        }
        if self.closes {
            let more = read(&stream, &mut [0; 1]).context("waiting for the end")?;
            ensure!(more == 0, "more has come after the last answer: {}", shown(&answer));
        }
        Ok(())
    }
}

/// Whether nothing has come in time.
fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The beginning of an answer, for a message.
fn shown(answer: &[u8]) -> String {
    let beginning = &answer[..answer.len().min(300)];
    format!("{} bytes, {:?}", answer.len(), String::from_utf8_lossy(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that answers so many questions of five bytes on each connection.
    fn server(answer: &'static [u8], questions: usize) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                for _ in 0..questions {
                    let asked = stream.read_exact(&mut [0; 5]);
                    if asked.and_then(|()| stream.write_all(answer)).is_err() {
                        break;
                    }
                }
            }
        });
        port
    }

    fn questions(each: usize, closes: bool) -> Questions {
        Questions {
            port: 80,
            question: "what?".into(),
            begins: Some("head ".into()),
            ends: String::new(),
            file: None,
            times: 12,
            each,
            together: 3,
            closes,
        }
    }

    #[test]
    fn each_answer_is_compared() {
        let port = server(b"head of the answer", 4);
        questions(4, true).ask(port, b" answer").unwrap();
        questions(2, false).ask(port, b" answer").unwrap();
        let error =
            |questions: Questions, ends: &[u8]| format!("{:#}", questions.ask(port, ends).unwrap_err());
        // The server ends the connection before the sixth answer.
        let ended = error(questions(6, false), b" answer");
        assert!(ended.contains("question 4"), "{ended}");
        let other =
            |begins: Option<&str>| Questions { begins: begins.map(String::from), ..questions(4, false) };
        assert!(error(other(Some("foot")), b" answer").contains("wrong"));
        // Without a beginning, the answer is all that comes.
        other(None).ask(port, b"head of the answer").unwrap();
        assert!(error(other(None), b" answer").contains("wrong"));
        assert!(error(Questions { times: 13, ..questions(4, false) }, b" answer").contains("each"));
        let port = server(b"head answer", 1);
        assert!(questions(1, false).ask(port, b"another").is_err());
        // Beginning and end must not be the same bytes.
        assert!(questions(1, false).ask(port, b"head answer").is_err());
    }

    #[test]
    fn a_connection_that_fails_ends_those_that_wait() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let silent = std::thread::spawn(move || {
            let (silent, _) = listener.accept().unwrap();
            drop(listener.accept().unwrap());
            silent
        });
        let two = Questions { times: 2, together: 2, ..questions(1, false) };
        assert!(two.ask(port, b" answer").is_err());
        silent.join().unwrap();
    }

    #[test]
    fn a_command_knows_the_ports_and_must_succeed() {
        let scratch = Scratch::new("host-runs").unwrap();
        run("echo $PORT_22 >port", &[(80, 1), (22, 4000)], scratch.0.clone()).unwrap();
        assert_eq!(fs::read_to_string(scratch.0.join("port")).unwrap(), "4000\n");
        let error = run("echo complaint; false; true", &[], scratch.0.clone()).unwrap_err().to_string();
        assert!(error.contains("complaint"), "{error}");
    }

    #[test]
    fn a_file_is_served_and_nothing_outside_its_directory() {
        let scratch = Scratch::new("serves").unwrap();
        fs::create_dir_all(scratch.0.join("served")).unwrap();
        fs::write(scratch.0.join("served/file"), "content\n").unwrap();
        fs::write(scratch.0.join("secret"), "secret\n").unwrap();
        let answer = |request: &str| {
            let mut shell = Command::new("sh");
            shell
                .arg(mac_build::tree::root().join("tests/guests/host/serve.sh"))
                .arg(scratch.0.join("served"));
            let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let request = format!("{request} HTTP/1.1\r\nHost: 10.0.2.100\r\n\r\n");
            shell.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
            String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap()
        };
        assert_eq!(answer("GET /file"), "HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\ncontent\n");
        for missing in ["GET /other", "GET /../secret", "PUT /file", "GET /"] {
            assert!(answer(missing).starts_with("HTTP/1.0 404 "), "{missing}");
        }
    }
}
